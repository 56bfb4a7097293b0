"""From the name of an index, or the path of its file, to a checked `Index`."""

from __future__ import annotations

from pathlib import Path

from pydantic import TypeAdapter, ValidationError
from pydantic.dataclasses import dataclass

from tidetable.config import located, wording
from tidetable.config.index import Index
from tidetable.config.mistakes import ConfigError, Mistake, suggestion
from tidetable.config.names import with_names_of_code
from tidetable.config.scheme import AutoConfig, SchemeChoice, SchemeConfig

INDEXES = Path("include/indexes")
SUFFIXES = (".yaml", ".yml")
BYTES_MAX = 1_000_000

_INDEX = TypeAdapter(Index)


@dataclass(frozen=True)
class _OnlyScheme:
    scheme: SchemeChoice


_ONLY_SCHEME = TypeAdapter(_OnlyScheme)


def index_files(project_root: Path) -> list[Path]:
    """The files of all indexes of a project, in order of their names."""
    folder = project_root / INDEXES
    return sorted(path for path in folder.glob("*") if path.suffix in SUFFIXES)


def find_index(name_or_path: str, project_root: Path) -> Path:
    """The file of an index: NAME is include/indexes/NAME.yaml; a slash or a suffix make a path.

    A relative path starts at the working directory or, if nothing is there, at the project.
    """
    if "/" in name_or_path or name_or_path.endswith(SUFFIXES):
        candidates = [Path(name_or_path), project_root / name_or_path]
    else:
        candidates = [project_root / INDEXES / f"{name_or_path}{suffix}" for suffix in SUFFIXES]
    for path in candidates:
        if path.is_file():
            return path
    raise ConfigError(name_or_path, [_no_such_file(Path(name_or_path).stem, project_root)])


def load_index(path: Path, project_root: Path) -> Index:
    """The index in the file. Raises `ConfigError` with all mistakes that are in it."""
    root = project_root.resolve()
    inside = path.resolve().is_relative_to(root)
    file = str(path.resolve().relative_to(root)) if inside else str(path)
    try:
        document = with_names_of_code(located.read(_text(path, project_root)))
    except located.Unreadable as error:
        raise ConfigError(file, [error.mistake]) from error
    mistakes = list(document.mistakes)
    if not isinstance(document.value, dict):
        found = "a list" if isinstance(document.value, list) else "a single value"
        message = f"the file holds {found}; write the fields of an index, as name: value"
        raise ConfigError(file, [*mistakes, Mistake(document.line(()), "", message)])
    _keep_options_as_written(document)
    base = str((project_root if inside else path.parent).absolute())
    try:
        index = _INDEX.validate_python(document.value, context={"base": base})
    except ValidationError as error:
        raise ConfigError(file, [*mistakes, *wording.mistakes(error, document)]) from error
    if mistakes:
        raise ConfigError(file, mistakes)
    return index


def load_scheme(text: str, period: int, called: str) -> SchemeConfig:
    """A scheme as a YAML file has it behind `scheme:`, for a window of so many slots.

    Raises `ConfigError` with all mistakes that are in it; `called` says where it was written.
    """
    try:
        document = located.read(f"scheme: {text}")
    except located.Unreadable as error:
        raise ConfigError(called, [error.mistake._replace(line=None)]) from error
    try:
        scheme = _ONLY_SCHEME.validate_python(document.value).scheme
    except ValidationError as error:
        mistakes = wording.mistakes(error, document)
    else:
        if isinstance(scheme, AutoConfig):
            misfits = [("name", "auto is the advisor's to choose; write one of the schemes")]
        else:
            misfits = list(scheme.misfits(period))
            if not misfits and not document.mistakes:
                return scheme
        mistakes = (Mistake(None, f"scheme.{field}", message) for field, message in misfits)
    # What is written on one line needs no number of it.
    told = [one._replace(line=None) for one in (*document.mistakes, *mistakes)]
    raise ConfigError(called, told)


def _text(path: Path, project_root: Path) -> str:
    try:
        with path.open("rb") as file:
            data = file.read(BYTES_MAX + 1)
    except FileNotFoundError:
        raise located.Unreadable(_no_such_file(path.stem, project_root)) from None
    except OSError as error:
        message = f"the file cannot be read: {error.strerror}"
        raise located.Unreadable(Mistake(None, "", message)) from error
    if len(data) > BYTES_MAX:
        message = f"the file is larger than {BYTES_MAX} bytes; an index needs a few hundred"
        raise located.Unreadable(Mistake(None, "", message))
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        message = "a byte that is not UTF-8; save the file as UTF-8"
        raise located.Unreadable(Mistake(line, "", message)) from error


def _no_such_file(name: str, project_root: Path) -> Mistake:
    names = [path.stem for path in index_files(project_root)]
    there = f"there are {', '.join(names)}" if names else "there are none"
    message = f"no such file; in {INDEXES} {there}{suggestion(name, names)}"
    return Mistake(None, "", message)


def _keep_options_as_written(document: located.Located) -> None:
    """Options are text to Spark: 1.10 must not become 1.1 by way of a number."""
    source = document.value.get("source") if isinstance(document.value, dict) else None
    options = source.get("options") if isinstance(source, dict) else None
    if isinstance(options, dict):
        for name, value in options.items():
            if isinstance(value, str | int | float):
                options[name] = document.written["source", "options", name]
