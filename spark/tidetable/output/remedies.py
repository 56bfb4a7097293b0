"""What to do about an error, in the words of the command line."""

from __future__ import annotations

from tidetable.core.errors import ReadEarlier, Remedy, Replay, Update


def as_command(remedy: Remedy) -> str:
    """For somebody with a shell: the command to type."""
    match remedy:
        case Update():
            return f"Make it: tidetable update {remedy.index}"
        case Replay(from_slot=None):
            source = " --from-source" if remedy.from_source else ""
            return _sentences(
                remedy.also,
                f"Load it again: tidetable replay {remedy.index} --from J{source}, J being the "
                "first slot to apply again.",
            )
        case Replay():
            return _sentences(
                remedy.also,
                f"Put it right with: tidetable replay {remedy.index} --from {remedy.from_slot} "
                "(it restores the slot before and goes again).",
            )
        case ReadEarlier():
            return "Ask for that time or a later one, or read an earlier update with --slot."
    return remedy


def _sentences(*parts: str) -> str:
    return " ".join(part for part in parts if part)
