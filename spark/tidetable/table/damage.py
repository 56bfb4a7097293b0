"""A Delta log that cannot be read: which of its files is the cause, and a way round it.

delta-rs says what it stumbled over, with a Rust back trace, but seldom in which file. So the log is
looked through here, once it is known that something is wrong: the newest checkpoint, then each
commit after it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from tidetable.core.errors import Replay, TidetableError, UserError
from tidetable.table.storage import is_on_file_system, reader_uri, storage

LOG = "_delta_log"
_HINT = "_last_checkpoint"
_COMMIT = re.compile(r"^(\d{20})\.json$")
_CHECKPOINT = re.compile(r"^(\d{20})\.checkpoint(?:\.(\d{10})\.(\d{10}))?\.parquet$")
_OTHER_CHECKPOINT = re.compile(r"^(\d{20})\.checkpoint\.[0-9a-f-]{36}\.(?:json|parquet)$")
_ASIDE = re.compile(rf"^{LOG}\.damaged-(\d+)$")


class DamagedTable(TidetableError):
    """The table does not hold what its notes say; somebody has to decide, a retry does not help."""

    code = "damaged_table"


class DamagedLog(DamagedTable):
    """The log of a table cannot be read."""

    code = "damaged_log"

    def __init__(self, path: str, damage: Damage, index: str | None = None) -> None:
        self.path = path
        self.damage = damage
        super().__init__(
            f"The log of {path} cannot be read: {LOG}/{damage.file} {damage.what}. Nothing was "
            "changed.",
            remedy="Put that file back from a backup, or move the folder away: the next update "
            "makes a new one."
            if index is None
            else Replay(
                index,
                None,
                from_source=True,
                also="Put that file back from a backup, or go back to the source.",
            ),
        )

    def of(self, index: str) -> DamagedLog:
        """The same of an index's own table, with the command that helps."""
        return DamagedLog(self.path, self.damage, index)


@contextmanager
def told_for(index: str) -> Iterator[None]:
    """What is found damaged inside is told with the command for this index."""
    try:
        yield
    except DamagedLog as error:
        raise error.of(index) from error.__cause__


@dataclass(frozen=True)
class Damage:
    """The first file of a log that is not as it should be."""

    file: str
    what: str


class LogFiles:
    """The files of a table's log, as they are stored."""

    def __init__(self, path: str) -> None:
        import pyarrow.fs as pafs

        self.path = path
        self.storage = storage(path)
        selector = pafs.FileSelector(LOG, allow_not_found=True)
        self.sizes = {
            found.path.rsplit("/", 1)[-1]: found.size
            for found in self.storage.get_file_info(selector)
            if found.type == pafs.FileType.File
        }
        self.commits = {int(m[1]): name for name in self.sizes if (m := _COMMIT.match(name))}

    def read(self, name: str) -> bytes:
        with self.storage.open_input_file(f"{LOG}/{name}") as file:
            return bytes(file.read())

    def checkpoints(self) -> dict[int, list[str]]:
        """Version -> the files of its checkpoint, of the classic kind."""
        found: dict[int, list[str]] = {}
        for name in sorted(self.sizes):
            if match := _CHECKPOINT.match(name):
                found.setdefault(int(match[1]), []).append(name)
        return found

    def first_damage(self) -> Damage | None:
        """The first file that is not as it should be; None if all of them are."""
        start, damage = self._newest_checkpoint()
        return damage or next(self._damaged_commits(start), None)

    def _newest_checkpoint(self) -> tuple[int, Damage | None]:
        """The first version that has to be read from a commit, and what is wrong before it."""
        import pyarrow.parquet as pq

        hinted = self._hinted()
        whole = self.checkpoints()
        newest = max(whole, default=-1)
        if any(_OTHER_CHECKPOINT.match(name) for name in self.sizes):
            others = [int(m[1]) for name in self.sizes if (m := _OTHER_CHECKPOINT.match(name))]
            newest = max(newest, *others)  # not looked into
        if hinted is not None and hinted > newest:
            name = f"{hinted:020d}.checkpoint.parquet"
            return hinted + 1, Damage(name, f"is missing, though {_HINT} names it")
        for name in whole.get(newest, []):
            if not self.sizes[name]:
                return newest + 1, Damage(name, "is empty")
            try:
                pq.read_table(pa.BufferReader(self.read(name)), columns=["add", "remove"])
            except (pa.ArrowException, OSError) as error:
                why = str(error).splitlines()[0].rstrip(".")
                return newest + 1, Damage(name, f"is no whole Parquet file ({why})")
        return newest + 1, None

    def _hinted(self) -> int | None:
        if _HINT not in self.sizes:
            return None
        try:
            return int(json.loads(self.read(_HINT))["version"])
        except (ValueError, KeyError, TypeError):
            return None  # only a hint: readers do without it

    def _damaged_commits(self, start: int) -> Iterator[Damage]:
        last = max(self.commits, default=-1)
        for version in range(start, last + 1):
            name = self.commits.get(version)
            if name is None:
                later = min(at for at in self.commits if at > version)
                yield Damage(f"{version:020d}.json", f"is missing, though {later:020d}.json is not")
                continue
            what = damaged_text(self.read(name))
            if what is not None:
                yield Damage(name, what)

    # -- whose it is -----------------------------------------------------------------------------

    def metadata(self) -> Iterator[Mapping[str, Any]]:
        """What the files that can be read say about the table as a whole, the oldest first."""
        import pyarrow.parquet as pq

        for names in self.checkpoints().values():
            for name in names:
                try:
                    table = pq.read_table(pa.BufferReader(self.read(name)), columns=["metaData"])
                except (pa.ArrowException, OSError):
                    continue
                for row in table.column("metaData").to_pylist():
                    if row and row.get("id"):
                        yield {**row, "configuration": dict(row.get("configuration") or [])}
        for action in self._actions():
            if "metaData" in action:
                yield action["metaData"]

    def features(self) -> frozenset[str]:
        """What the newest protocol that can be read asks of whoever reads or writes the table."""
        import pyarrow.parquet as pq

        told: Mapping[str, Any] = {}
        for names in self.checkpoints().values():
            for name in names:
                with suppress(pa.ArrowException, OSError):
                    table = pq.read_table(pa.BufferReader(self.read(name)), columns=["protocol"])
                    told = next(filter(None, table.column("protocol").to_pylist()), told)
        for action in self._actions():
            told = action.get("protocol", told)
        asked = ((told.get(f"{kind}Features") or ()) for kind in ("reader", "writer"))
        return frozenset(feature for features in asked for feature in features)

    def user_metadata(self) -> Iterator[str]:
        """What writers have put into the commits that can be read."""
        for action in self._actions():
            said = action.get("commitInfo", {}).get("userMetadata")
            if isinstance(said, str):
                yield said

    def _actions(self) -> Iterator[dict[str, Any]]:
        for _, name in sorted(self.commits.items()):
            for line in self.read(name).splitlines():
                try:
                    action = json.loads(line)
                except ValueError:
                    continue
                if isinstance(action, dict):
                    yield action

    # -- out of the way --------------------------------------------------------------------------

    def next_aside(self) -> str:
        """The name that the log would get."""
        last = next(reversed(asides(self.path)), f"{LOG}.damaged-0")
        return f"{LOG}.damaged-{int(last.rpartition('-')[2]) + 1}"

    def set_aside(self) -> str:
        """Gives the log another name, under which nobody reads it; that name. Deletes nothing."""
        aside = self.next_aside()
        if is_on_file_system(self.path):
            root = Path(reader_uri(self.path))
            (root / LOG).rename(root / aside)
            return aside
        # The oldest first: what is left of the log at any moment is either as it was or unreadable.
        for name in sorted(self.sizes, key=lambda name: (name != _HINT, name)):
            self.storage.move(f"{LOG}/{name}", f"{aside}/{name}")
        return aside


def damaged_text(text: bytes) -> str | None:
    """What is wrong with a commit, if anything."""
    if not text.strip():
        return "is empty, as after a power cut"
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip():
            continue
        try:
            is_action = isinstance(json.loads(line), dict)
        except ValueError:
            is_action = False
        if not is_action:
            return f"is cut off or overwritten: line {number} is no JSON object"
    return None


def asides(path: str) -> list[str]:
    """The logs of a table that were set aside, the oldest first."""
    import pyarrow.fs as pafs

    if is_on_file_system(path) and not Path(reader_uri(path)).is_dir():
        return []
    listed = storage(path).get_file_info(pafs.FileSelector("", allow_not_found=True))
    names = [found.path.strip("/").rsplit("/", 1)[-1] for found in listed]
    numbers = sorted(int(match[1]) for name in names if (match := _ASIDE.match(name)))
    return [f"{LOG}.damaged-{number}" for number in numbers]


def set_aside(damage: DamagedLog, index: str, owner_property: str) -> str:
    """Gives the damaged log another name, if it is this index's; the name."""
    files = LogFiles(damage.path)
    check_owner(files, index, owner_property)
    return files.set_aside()


def check_owner(files: LogFiles, index: str, owner_property: str) -> None:
    """UserError unless what can be read of the log says that the table is this index's."""
    owners = [one.get("configuration", {}).get(owner_property) for one in files.metadata()]
    if not owners:
        marks = (said for said in files.user_metadata() if said.startswith('{"tidetable"'))
        owners = [json.loads(said).get("index") for said in marks]
    owner = owners[-1] if owners else None
    if owner == index:
        return
    found = "nobody that it names" if owner is None else f"the index {owner!r}"
    raise UserError(
        f"By what can be read of its log, {files.path} belongs to {found}, not to {index!r}. It "
        "was not touched. Choose another place in the YAML (table:)."
    )
