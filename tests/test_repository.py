"""What a newcomer relies on: make explains itself, the lock is complete, nothing is private."""

from __future__ import annotations

import re
import shutil
import subprocess
import tomllib
from pathlib import Path
from typing import Any

import pytest

from tidetable import __version__

ROOT = Path(__file__).resolve().parents[1]


def names(requirements: str) -> set[str]:
    """The packages that a requirements file names, spelled as package indexes compare them."""
    found = re.findall(r"^([A-Za-z0-9][\w.-]*)", requirements, flags=re.MULTILINE)
    return {re.sub(r"[-_.]+", "-", name).lower() for name in found}


def project() -> dict[str, Any]:
    """What pyproject.toml says about the package."""
    found: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    return found


def files_for_version_control() -> list[Path]:
    """Tracked files, and new ones that git does not ignore."""
    if shutil.which("git") is None or not (ROOT / ".git").exists():
        pytest.skip("not a git clone")
    listed = subprocess.run(
        ["git", "-c", f"safe.directory={ROOT}", "ls-files", "-z", "-co", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    return [ROOT / name for name in listed.split("\0") if name and (ROOT / name).is_file()]


def lines_that_match(pattern: re.Pattern[str]) -> list[str]:
    found = []
    for file in files_for_version_control():
        try:
            text = file.read_text(encoding="utf-8")
        except UnicodeDecodeError:
            continue  # a picture
        for number, line in enumerate(text.splitlines(), start=1):
            if pattern.search(line):
                found.append(f"{file.relative_to(ROOT)}:{number}: {line.strip()[:120]}")
    return found


def test_make_help_lists_every_target() -> None:
    makefile = (ROOT / "Makefile").read_text()
    targets = re.findall(r"^([a-z][\w-]*):(?!=)", makefile, flags=re.MULTILINE)
    shown = subprocess.run(
        ["make", "--no-print-directory"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout
    assert targets == re.findall(r"^  make ([\w-]+)  +\S", shown, flags=re.MULTILINE)


def test_every_target_is_phony() -> None:
    makefile = (ROOT / "Makefile").read_text()
    targets = re.findall(r"^(\.?[a-z][\w-]*):(?!=)", makefile, flags=re.MULTILINE)
    phony = re.search(r"^\.PHONY: (.*)$", makefile, flags=re.MULTILINE)
    assert phony is not None
    assert sorted(phony[1].split()) == sorted(targets)


def test_lock_pins_everything_that_is_asked_for() -> None:
    lock = (ROOT / "requirements.txt").read_text()
    pins = [line for line in lock.splitlines() if line and not line.lstrip().startswith("#")]
    assert [pin for pin in pins if not re.match(r"[\w.-]+(\[[\w,-]+\])?==[\w.]+", pin)] == []
    assert names((ROOT / "requirements.in").read_text()) <= names(lock)
    extras = project()["optional-dependencies"].values()
    package = [*project()["dependencies"], *(one for extra in extras for one in extra)]
    assert names("\n".join(package)) - {"tidetable"} <= names(lock)


def test_all_is_every_extra() -> None:
    extras = project()["optional-dependencies"]
    (whole,) = extras["all"]
    assert whole == f"tidetable[{','.join(name for name in extras if name != 'all')}]"


def test_the_changelog_tells_of_this_version() -> None:
    titles = re.findall(r"^## (\S+)", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert titles[0] == "Unreleased"
    assert __version__ in titles


def test_fixed_versions_are_the_locked_ones() -> None:
    fixed = re.findall(r"^[\w.-]+==\S+", (ROOT / "requirements.in").read_text(), re.MULTILINE)
    lock = (ROOT / "requirements.txt").read_text().lower().splitlines()
    assert fixed
    assert [pin for pin in fixed if pin.lower() not in lock] == []


def test_no_file_names_a_folder_of_somebodys_machine() -> None:
    folders = "|".join(["home", "root", "work", "Users"])
    assert lines_that_match(re.compile(rf"(?<![\w.)}}>*/-])/(?:{folders})/[\w.]")) == []


def test_no_file_names_a_package_registry() -> None:
    # Where packages come from is for each machine to say (proxies, mirrors).
    # The names are spelled apart here, or this file would be found.
    hosts = [
        "py" + "pi.org",
        "python" + "hosted.org",
        "repo1." + "maven.org",
        "deb." + "debian.org",
    ]
    hosts += ["repo.maven." + "apache.org", "repos." + "spark-packages.org", "registry." + "npmjs"]
    assert lines_that_match(re.compile("|".join(map(re.escape, hosts)))) == []
