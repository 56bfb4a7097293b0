"""The documentation is complete and true: its commands run, its figures and its links are right."""

from __future__ import annotations

import json
import re
import shlex
import shutil
from collections.abc import Iterator
from contextlib import redirect_stdout
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import typer
from typer.testing import CliRunner, Result

import tidetable
from tidetable.cli import app
from tidetable.config import SCHEMA_PATH, load_index
from tidetable.core.placement import Placement
from tidetable.core.schemes import NoRebuild, Rebuild, Scheme, Sweep, Tiers
from tidetable.core.simulate import simulate
from tidetable.table.note import Note
from tidetable.table.report import UpdateReport

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"
WITH_EXAMPLES = (ROOT / "README.md", DOCS / "commands.md", DOCS / "schemes.md")
COMMANDS = {
    name: command
    for name, command in typer.main.get_command(app).commands.items()  # type: ignore[attr-defined]
    if not command.hidden  # by a name of before
}


# -- what is in the pages ------------------------------------------------------------------------


@dataclass(frozen=True)
class Example:
    """A command in a page, and what the page says it prints."""

    where: str
    arguments: tuple[str, ...]
    printed: str

    @property
    def needs_nothing(self) -> bool:
        """Neither a table nor a JVM."""
        return self.arguments[0] == "simulate" or "--yaml-only" in self.arguments

    def run(self) -> Result:
        return CliRunner().invoke(app, list(self.arguments), env={"COLUMNS": "100"})


def blocks(page: Path, language: str) -> Iterator[tuple[int, str]]:
    """The code blocks of a page in this language, each with its first line's number."""
    text = page.read_text()
    for found in re.finditer(rf"^```{language}\n(.*?)^```$", text, re.MULTILINE | re.DOTALL):
        yield text.count("\n", 0, found.start()) + 2, found[1]


def examples(page: Path) -> list[Example]:
    found = []
    for first, block in blocks(page, "console"):
        assert block.startswith("$ "), f"{page.name}:{first}: begins with no command"
        for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            command, _, printed = part.partition("\n")
            program, *arguments = shlex.split(command)
            if program == "tidetable":
                found.append(Example(f"{page.name}: {command}", tuple(arguments), printed.strip()))
    return found


def sections(page: Path) -> dict[str, str]:
    parts = re.split(r"^## (.+)\n", page.read_text(), flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


def table_rows(text: str) -> list[list[str]]:
    lines = [line for line in text.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


ALL = [example for page in WITH_EXAMPLES for example in examples(page)]


# -- complete ------------------------------------------------------------------------------------


def options(command: str) -> set[str]:
    return {
        name
        for parameter in COMMANDS[command].params
        if parameter.param_type_name == "option"
        for name in [*parameter.opts, *parameter.secondary_opts]
    }


def test_every_command_has_a_section_and_there_are_no_others() -> None:
    assert list(sections(DOCS / "commands.md")) == list(COMMANDS)


@pytest.mark.parametrize("command", COMMANDS)
def test_every_option_is_in_the_table_of_its_command(command: str) -> None:
    rows = table_rows(sections(DOCS / "commands.md")[command])
    documented = {name for row in rows for name in re.findall(r"`(--[a-z-]+)", row[0])}
    assert documented == options(command)


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_an_example(command: str) -> None:
    here = examples(DOCS / "commands.md")
    assert [one for one in here if one.arguments[0] == command] != []


def test_every_field_of_an_update_is_documented() -> None:
    documented = re.findall(r"`(\w+)`", sections(DOCS / "commands.md")["update"])
    assert set(UpdateReport.__dataclass_fields__) - set(documented) == set()


def test_every_field_of_a_note_is_documented() -> None:
    documented = re.findall(r"`(\w+)`", sections(DOCS / "concepts.md")["The note in a commit"])
    assert set(Note.__dataclass_fields__) - set(documented) == set()


def test_every_module_is_on_the_map() -> None:
    told = (DOCS / "layout.md").read_text()
    package = ROOT / "spark" / "tidetable"
    floors = [folder for folder in package.iterdir() if (folder / "__init__.py").is_file()]
    modules = {
        f"{floor.name}/{module.stem}" for floor in floors for module in floor.glob("[a-z]*.py")
    }
    named: dict[str, str] = {}
    floor = ""
    for first, said in re.findall(r"^\| ?(`\w+/`)? ?\| (.*) \|$", told, re.MULTILINE):
        floor = first.strip("`/") or floor
        named[floor] = f"{named.get(floor, '')} {said}"
    assert {floor.name for floor in floors} <= set(named)
    assert (
        sorted(
            module
            for module in modules
            if f"`{module.split('/')[1]}`" not in named[module.split("/")[0]]
        )
        == []
    )


def yaml_fields() -> dict[str, Any]:
    """Every field that an index file may have, by its dotted name, with what the schema says."""
    schema = json.loads(SCHEMA_PATH.read_text())
    definitions = schema["$defs"]
    # Older names are told with the documented ones.
    fields = {name: f for name, f in schema["properties"].items() if not f.get("deprecated")}
    parts = [
        ("source", "Source"),
        ("quality", "Quality"),
        ("quality.volume", "Volume"),
        ("quarantine", "QuarantineRules"),
    ]
    parts += [("scheme", name) for name in definitions if name.endswith("Config")]
    for section, name in parts:
        for field, said in definitions[name]["properties"].items():
            fields[f"{section}.{field}"] = said
    return fields


def documented_fields() -> dict[str, list[str]]:
    rows = table_rows((DOCS / "configuration.md").read_text())
    return {row[0].strip("`"): row for row in rows if re.fullmatch(r"`[a-z_.]+`", row[0])}


def test_every_yaml_field_is_documented_and_there_are_no_others() -> None:
    # The name of a scheme is told in the text: it decides which table to look at.
    assert {*documented_fields(), "scheme.name"} == set(yaml_fields())


@pytest.mark.parametrize("field", sorted(documented_fields()))
def test_the_documented_default_is_the_real_one(field: str) -> None:
    said = yaml_fields()[field]
    default = said.get("default")
    if isinstance(default, bool):
        default = str(default).lower()
    documented = documented_fields()[field][2]
    assert documented == ("" if default is None else f"`{default}`") or (
        default is None and documented == "none"
    )


# -- true ----------------------------------------------------------------------------------------


def scheme(period: int, label: str) -> Scheme:
    """`Rebuild 4x4`, `R-ins 12`, `Sweep(8,1) without deletion vectors` or the like."""
    numbers = [int(number) for number in re.findall(r"\d+", label)]
    if label.startswith("Sweep"):
        groups, every, merge_log = [*numbers, 0][:3]
        return Sweep(period, groups, every, "without" not in label, merge_log)
    if label.startswith("Tiers"):
        return Tiers(period, *numbers)
    if label.startswith("R-ins"):
        return Rebuild.by_insertion(period, numbers[0])
    kind = NoRebuild if label.startswith("NoRebuild") else Rebuild
    return kind(period, *numbers, Placement.ROUND_ROBIN)


def figures() -> Iterator[tuple[int, list[str]]]:
    """Each line of the tables with the p of its table."""
    period = 0
    for row in table_rows(sections(DOCS / "schemes.md")["Figures"]):
        if row[0].startswith("p = "):
            period = int(row[0].removeprefix("p = "))
        elif "." in row[1]:
            yield period, row


FIGURES = list(figures())


@pytest.mark.parametrize(
    ("period", "row"), FIGURES, ids=[f"p={period} {row[0]}" for period, row in FIGURES]
)
def test_figures_are_the_simulators(period: int, row: list[str]) -> None:
    found = simulate(scheme(period, row[0]))
    said = [f"{found.written_avg:.2f}", f"{found.written_max:.2f}", f"{found.files_avg:.1f}"]
    assert row[1:] == [*said, str(found.files_max), f"{found.dead_avg:.2f}"]


@pytest.mark.parametrize("page", [ROOT / "README.md", DOCS / "configuration.md"])
def test_index_files_in_the_pages_have_no_mistake(page: Path, tmp_path: Path) -> None:
    whole = [text for _, text in blocks(page, "yaml") if text.startswith("name:")]
    assert len(whole) == 1
    file = tmp_path / "index.yaml"
    file.write_text(whole[0])
    assert load_index(file, tmp_path).build_scheme().label


def pages() -> list[Path]:
    made = {"node_modules", "site-packages"}
    found = [*ROOT.glob("*.md"), *ROOT.glob("[a-z]*/**/*.md")]
    return sorted(page for page in found if not made & set(page.parts))


def anchors(page: Path) -> set[str]:
    headings = re.findall(r"^#+ (.+)$", page.read_text(), re.MULTILINE)
    plain = (re.sub(r"[^\w\- ]", "", heading).strip().lower() for heading in headings)
    return {heading.replace(" ", "-") for heading in plain}


@pytest.mark.parametrize("page", pages(), ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    text = re.sub(r"^```.*?^```$", "", page.read_text(), flags=re.MULTILINE | re.DOTALL)
    dead = []
    for link in re.findall(r"\]\(([^)\s]+)\)", text):
        if re.match(r"[a-z]+:", link):
            continue
        path, _, anchor = link.partition("#")
        target = (page.parent / path) if path else page
        if not target.exists() or (anchor and anchor not in anchors(target)):
            dead.append(link)
    assert dead == []


# -- the examples run ----------------------------------------------------------------------------


def words(line: str) -> set[str]:
    """The words of a line; numbers and times are another matter."""
    return {word for word in re.findall(r"\S+", line) if not re.search(r"\d", word)}


def check(example: Example, result: Result) -> None:
    assert result.exit_code == 0, f"{example.where}: {result.output}"
    assert example.printed, f"{example.where}: shows no output"
    first = example.printed.splitlines()[0]
    if "--json" in example.arguments:
        real = json.loads(result.stdout.splitlines()[0])
        assert list(json.loads(first)) == list(real), example.where
    else:
        assert words(first) <= words(result.output), example.where


@pytest.mark.parametrize(
    "example", [one for one in ALL if one.needs_nothing], ids=lambda one: one.where
)
def test_an_example_that_needs_no_table_runs(example: Example) -> None:
    check(example, example.run())


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of the project with the shipped indexes over the real flights, and no table yet."""
    shutil.copytree(ROOT / "include" / "indexes", tmp_path / "include" / "indexes")
    shutil.copy(ROOT / "include" / "calibration.json", tmp_path / "include")
    data = ROOT / "include" / "data"
    if not (data / "flights" / "day=2013-01-02").is_dir():
        from rig.sample import prepare_sample

        prepare_sample(ROOT)
    (tmp_path / "include" / "data").symlink_to(data)
    monkeypatch.setenv("TIDETABLE_HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_the_other_examples_run_one_after_the_other(spark: SparkSession, project: Path) -> None:
    for example in ALL:
        if not example.needs_nothing:
            check(example, example.run())
    for _, code in blocks(ROOT / "README.md", "python"):
        printed = StringIO()
        with redirect_stdout(printed):
            exec(code, {})  # the reader's own lines
        assert re.fullmatch(r"\d+ planes in the air\n", printed.getvalue())


def test_papers_md_names_files_that_are_there() -> None:
    """What became of each section of the papers is a module or a test."""
    page = (DOCS / "papers.md").read_text()
    links = re.findall(r"\]\(\.\./([^)#]+)\)", page)
    assert len(links) > 5
    assert [link for link in links if not (ROOT / link).is_file()] == []


def test_the_examples_of_the_api_run_in_order(spark: SparkSession, project: Path) -> None:
    code = [text for _, text in blocks(DOCS / "api.md", "python")]
    assert code
    names: dict[str, Any] = {"spark": spark}
    for text in code:
        exec(text, names)


def test_every_function_of_the_api_has_a_row() -> None:
    documented = [
        re.findall(r"`(\w+)", row[0]) for row in table_rows((DOCS / "api.md").read_text())
    ]
    functions = [name for name in tidetable.__all__ if not name.startswith("_")]
    assert sorted(name for names in documented for name in names) == functions
