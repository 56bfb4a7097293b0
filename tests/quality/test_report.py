"""The reports: what is written, how much of it is kept, and that nothing gets in its way.

No JVM: the tables are made by hand.
"""

from __future__ import annotations

import fcntl
import json
import re
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from tests.cli.handmade import make_table
from tests.workspace import Workspace, row
from tidetable.config import Index
from tidetable.core.errors import TransientError, UserError
from tidetable.quality import Outcome, QualityFailed, latest, report, reports_home, validate
from tidetable.quality.figures import gather
from tidetable.quality.outcome import advice
from tidetable.quality.suite import SIZE, checks
from tidetable.table.state import DamagedTable

pytestmark = pytest.mark.slow  # Great Expectations takes seconds to be imported

MOMENT = datetime(2024, 3, 1, 12, tzinfo=UTC)


@pytest.fixture
def index(workspace: Workspace) -> Index:
    return made(workspace)


def made(workspace: Workspace, **changes: Any) -> Index:
    return make_table(workspace, [row(number, -0.5, 1.5 + number % 4) for number in range(12)],
                      **changes)  # fmt: skip


@pytest.fixture
def reports(tmp_path: Path) -> Path:
    return tmp_path / "reports"


def times(number: int) -> list[datetime]:
    return [MOMENT + timedelta(minutes=minute) for minute in range(number)]


def files(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


# -- what is written -------------------------------------------------------------------------------


def test_an_outcome_and_its_summary(index: Index, reports: Path) -> None:
    assert latest(reports, index.name) is None
    outcome = validate(index, due_slot=1, reports=reports, run_name="by hand", at=MOMENT)
    assert (outcome.index, outcome.slot, outcome.checked) == ("things", 0, SIZE)
    assert [finding.name for finding in outcome.failed] == ["fresh"]
    assert outcome.failed[0].sentence == (
        "The table stands at the slot that is due, 1. Found: it stands at slot 0."
    )
    summary = latest(reports, index.name)
    assert summary is not None
    assert {
        name: summary[name]
        for name in ("index", "slot", "as_of", "at", "run", "version", "success")
    } == {
        "index": "things",
        "slot": 0,
        "as_of": "2024-03-01T00:00:00Z",
        "at": "2024-03-01T12:00:00Z",
        "run": "by hand",
        "version": 0,
        "success": False,
    }
    assert summary["failed"] == [vars(outcome.failed[0])]
    assert summary["checked"] == SIZE
    assert {one["name"] for one in summary["skipped"]} > {"rows_read", "balance"}
    assert summary["skipped"] == [vars(one) for one in outcome.skipped]
    held = SIZE - len(outcome.skipped) - 1
    assert outcome.tally == (
        f"{held} of {SIZE} checks hold, {len(outcome.skipped)} had nothing to look at"
    )
    assert reports / "things" / summary["report"] == outcome.report
    assert outcome.report.is_file()
    assert summary["figures"] == outcome.figures
    json.dumps(outcome.as_json())


def test_an_outcome_that_must_be_a_success(index: Index, reports: Path) -> None:
    good = validate(index, due_slot=0, reports=reports)
    assert good.require() is good
    bad = validate(index, due_slot=5, reports=reports)
    with pytest.raises(QualityFailed, match=f"1 of {SIZE} checks of 'things' failed") as raised:
        bad.require()
    assert (raised.value.retry_can_help, raised.value.exit_status) == (False, 2)
    assert str(bad.report) in str(raised.value)


def test_where_reports_are(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("TIDETABLE_REPORTS", raising=False)
    assert reports_home(tmp_path) == tmp_path / ".tidetable" / "_reports"
    monkeypatch.setenv("TIDETABLE_REPORTS", str(tmp_path / "elsewhere"))
    assert reports_home(tmp_path) == tmp_path / "elsewhere"


class Links(HTMLParser):
    """What a page refers to, and what of it a browser would fetch or run by itself."""

    def __init__(self, page: Path) -> None:
        super().__init__()
        self.page = page
        self.tags: set[str] = set()
        self.hrefs: list[str] = []
        self.fetched: list[str] = []
        self.feed(page.read_text())

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        for name, value in attrs:
            if name == "href" and tag == "a":
                self.hrefs.append(str(value))
            elif name in ("src", "href", "srcset", "data", "style", "onload", "onclick"):
                self.fetched.append(str(value))


def test_the_pages_fetch_nothing_and_lead_to_each_other(index: Index, reports: Path) -> None:
    """Nothing from another host, no script, and every link leads to a page that is there."""
    for at in times(2):
        validate(index, due_slot=3, reports=reports, at=at)
    site = reports / "things" / "site"
    pages = sorted(site.rglob("*.html"))
    assert len(pages) == 3
    for page in pages:
        text = page.read_text()
        assert not re.search(r"https?:|//[a-z]|@import|url\(", text)
        links = Links(page)
        assert "script" not in links.tags
        assert links.fetched == ["data:,"]  # no favicon either
        for href in links.hrefs:
            assert (page.parent / href).resolve() in pages
    assert {str(page.parent / href) for page in pages[:1] for href in Links(page).hrefs}


def test_a_page_says_what_was_checked(index: Index, reports: Path) -> None:
    outcome = validate(index, due_slot=3, reports=reports, run_name="by hand", at=MOMENT)
    text = outcome.report.read_text()
    for said in (
        "<title>things, slot 0: failed</title>",
        "As of 2024-03-01 00:00:00 UTC",
        "No row has expired by slot 0",
        "The table stands at the slot that is due, 3",
        f"1 of {SIZE} checks failed",
        "Run tidetable update things to bring it up to date.",
        "expect_column_values_to_be_between(",
    ):
        assert said in text
    assert text.count("<code>expect_") == SIZE


def test_what_people_write_is_never_taken_for_html(workspace: Workspace, reports: Path) -> None:
    index = made(workspace, description="rows that <script>alert(1)</script> live")
    outcome = validate(index, due_slot=0, reports=reports, run_name="<b>&'\"../../x")
    site = reports / "things" / "site"
    assert outcome.report.is_relative_to(site)
    for page in site.rglob("*.html"):
        assert "<script" not in page.read_text()
        assert "<b>" not in page.read_text()
    assert "&lt;script&gt;" in (site / "index.html").read_text()


@pytest.mark.parametrize(
    "run", ["scheduled__2013-01-02T12:00:00+00:00", "..", "a" * 300, "ä/ö\\ü", "profiling"]
)
def test_any_name_of_a_run_makes_a_report(index: Index, reports: Path, run: str) -> None:
    outcome = validate(index, due_slot=0, reports=reports, run_name=run)
    assert outcome.report.is_file()
    assert (latest(reports, "things") or {})["run"] == run


# -- how much is kept ------------------------------------------------------------------------------


def test_reports_are_kept_to_a_limit_and_their_files_stay_as_many(
    workspace: Workspace, reports: Path
) -> None:
    """What each further validation finds and leaves behind is the same: so is its cost."""
    index = made(workspace, quality={"bad_rows_max": "100%", "keep_reports": 2})
    folder = reports / "things"
    pages, left = [], []
    for minute, at in enumerate(times(5)):
        pages.append(validate(index, due_slot=0, reports=reports, run_name=f"r{minute}", at=at))
        left.append(len(files(folder)))
    assert left == [left[0], *[left[0] + 2] * 4]
    assert [one.report.is_file() for one in pages] == [False] * 3 + [True] * 2
    assert len(list((folder / "validations").rglob("*.json"))) == 2
    assert len(json.loads((folder / "history.json").read_text())) == 2
    runs = {path.name for path in (folder / "site" / "validations" / "things").iterdir()}
    assert (
        runs
        == {"r3", "r4"}
        == {path.name for path in (folder / "validations" / "things").iterdir()}
    )
    listed = Links(folder / "site" / "index.html").hrefs
    assert listed == [
        str(one.report.relative_to(folder / "site")) for one in (pages[4], *reversed(pages[3:]))
    ]


def test_a_lower_limit_is_followed_and_what_nobody_knows_goes(
    workspace: Workspace, reports: Path
) -> None:
    """Reports that a validation left behind when it was killed are among them."""
    index = made(workspace)
    for at in times(3):
        validate(index, due_slot=0, reports=reports, at=at)
    folder = reports / "things"
    lost = folder / "validations" / "things" / "lost" / "20240301T000000.000000Z" / "x.json"
    lost.parent.mkdir(parents=True)
    lost.write_text("{")
    lower = workspace.index(quality={"keep_reports": 2})
    validate(lower, due_slot=0, reports=reports, at=MOMENT + timedelta(hours=1))
    assert len(list((folder / "site" / "validations").rglob("*.html"))) == 2
    assert len(list((folder / "validations").rglob("*.json"))) == 2
    assert not lost.parent.parent.exists()


def test_a_history_that_cannot_be_read_starts_anew(index: Index, reports: Path) -> None:
    validate(index, due_slot=0, reports=reports, at=MOMENT)
    for hour, text in enumerate(["{", "[1]", '[{"slot": 1}]', "null"], start=1):
        (reports / "things" / "history.json").write_text(text)
        at = MOMENT + timedelta(hours=hour)
        assert validate(index, due_slot=0, reports=reports, at=at).success
        assert len(json.loads((reports / "things" / "history.json").read_text())) == 1


def test_the_same_run_again_replaces_its_report(index: Index, reports: Path) -> None:
    for _ in range(2):
        validate(index, due_slot=0, reports=reports, run_name="same", at=MOMENT)
    assert len(json.loads((reports / "things" / "history.json").read_text())) == 1


# -- two at once -----------------------------------------------------------------------------------


def test_validations_at_once_make_a_report_each(tmp_path: Path, reports: Path) -> None:
    """Of the same index and of different ones."""
    indexes = []
    for name in ("things", "others"):
        (tmp_path / name).mkdir()
        indexes.append(made(Workspace(tmp_path / name), name=name))

    def one(number: int) -> Outcome:
        return validate(indexes[number % 2], due_slot=0, reports=reports, run_name=f"r{number}")

    with ThreadPoolExecutor(4) as pool:
        outcomes = list(pool.map(one, range(4)))
    assert len({outcome.report for outcome in outcomes}) == 4
    assert all(outcome.success and outcome.report.is_file() for outcome in outcomes)
    for index in indexes:
        assert len(json.loads((reports / index.name / "history.json").read_text())) == 2


def test_a_validation_waits_for_another_process_but_not_for_ever(
    index: Index, reports: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = reports / "things"
    folder.mkdir(parents=True)
    monkeypatch.setattr(report, "WAIT_MAX_S", 0.2)
    with (folder / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with pytest.raises(TransientError, match="Another validation of 'things'"):
            validate(index, due_slot=0, reports=reports)
    assert validate(index, due_slot=0, reports=reports).success


# -- tables that cannot be judged ------------------------------------------------------------------


def test_without_a_table_there_is_nothing_to_check(workspace: Workspace, reports: Path) -> None:
    with pytest.raises(UserError, match=r"has no table yet .* Update things"):
        validate(workspace.index(), due_slot=0, reports=reports)
    assert latest(reports, "things") is None


def test_a_table_whose_log_tells_no_slot_is_refused(
    workspace: Workspace, index: Index, reports: Path
) -> None:
    first = workspace.table / "_delta_log" / f"{0:020d}.json"
    first.write_text(first.read_text().replace("userMetadata", "nothing"))
    with pytest.raises(DamagedTable, match="no longer says at which slot"):
        validate(index, due_slot=0, reports=reports)


def test_reports_that_are_removed_come_again(index: Index, reports: Path) -> None:
    validate(index, due_slot=0, reports=reports)
    shutil.rmtree(reports)
    assert validate(index, due_slot=0, reports=reports).report.is_file()


# -- what is imported ------------------------------------------------------------------------------


def run_python(code: str) -> list[str]:
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=120
    )
    return done.stdout.split()


def test_importing_the_package_imports_nothing_large() -> None:
    """DAG files and the command line import it."""
    large = ["great_expectations", "pandas", "numpy", "pyspark", "jinja2", "scipy", "airflow"]
    code = f"import sys, tidetable.quality; print(*(set(sys.modules) & set({large})))"
    assert run_python(code) == []


def test_great_expectations_comes_without_the_engines_it_does_not_need() -> None:
    """What was kept out can be imported afterwards, and is the real thing."""
    code = (
        "import sys\n"
        "from tidetable.quality.gx_import import great_expectations\n"
        "gx = great_expectations()\n"
        "assert gx is great_expectations()\n"
        "print(*(set(sys.modules) & {'pyspark', 'sqlalchemy', 'scipy', 'altair'}))\n"
        "print(len(gx.expectations.ExpectColumnSumToBeBetween.__name__))\n"
        "import scipy, sqlalchemy\n"
        "print(scipy.__version__ > '1', sqlalchemy.create_engine.__name__)\n"
    )
    assert run_python(code) == ["26", "True", "create_engine"]


# -- documentation ---------------------------------------------------------------------------------


def test_every_check_is_documented(index: Index) -> None:
    page = Path(__file__).parents[2].joinpath("docs", "quality.md").read_text()
    names = [check.name for check in checks(gather(index))]
    assert [name for name in names if f"`{name}`" not in page] == []
    assert f"a suite of {SIZE} expectations" in page


# -- what to do ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("first", "failed", "said"),
    [
        (3, {"expired", "fresh"}, "tidetable replay things --from 3"),
        (None, {"live_rows"}, "remove it, and the next update makes it again"),
        (3, {"fresh"}, "tidetable update things"),
        (3, {"bad_rows"}, "quality.bad_rows_max"),
        (3, {"balance", "files"}, "tidetable rebuild things"),
    ],
)
def test_advice_fits_what_failed(first: int | None, failed: set[str], said: str) -> None:
    """A table that is late or uneven is not to be replayed."""
    told = advice("things", {"slot": 4, "replay_from": first}, failed)
    assert said in told
    assert ("replay" in told) == ("replay" in said)
