"""The page in a real browser, inside a real Airflow: seen, used and looked at from the outside.

TIDETABLE_SCREENSHOTS=1 makes the pictures docs/images/page*.png anew, from this project's own
indexes (make run ONCE=1 first); otherwise nothing is written outside of the test's folder.
"""

from __future__ import annotations

import itertools
import json
import os
import re
import shutil
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from rig.home import Airflow
from rig.services import Services, free_port
from tests.e2e.browser import PATIENCE_MS, ROOT, chromium, frame, log_in
from tests.page.pages import NASTY_KEYS, Project, full_project
from tidetable.pipeline.catalog import read_catalog
from tidetable.table.history import Updates

if TYPE_CHECKING:
    from playwright.sync_api import Browser, BrowserContext, Page

pytestmark = [pytest.mark.browser, pytest.mark.slow, pytest.mark.timeout(900)]

PICTURES = ROOT / "docs" / "images"
MAKES_PICTURES = os.environ.get("TIDETABLE_SCREENSHOTS", "") not in ("", "0")


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as found:
        yield found


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """Handmade indexes, with the history and the quality reports of real ones."""
    from tidetable.quality import validate

    made = full_project(tmp_path_factory.mktemp("browser"))
    for name in ("things", "gridded"):
        index = read_catalog(made.folder).entries[name].index
        Updates(index).record()
        shutil.rmtree(made.reports / name, ignore_errors=True)
        validate(index, due_slot=0, reports=made.reports)
    return made


@pytest.fixture(scope="module")
def airflow(
    browser: Browser, project: Project, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Airflow]:
    """A whole Airflow with a login. Its index DAGs are paused: nothing is updated here."""
    made = Airflow(
        home=tmp_path_factory.mktemp("airflow"),
        project=project.folder,
        port=free_port(8080),
        connections={},
        more={"AIRFLOW__CORE__DAGS_ARE_PAUSED_AT_CREATION": "True"},
    )
    with Services(made.home / "services") as services:
        migration = made.migration()
        assert migration is not None
        services.run(migration)
        for service in made.services():
            services.start(service)
        services.wait_ready()
        yield made


@pytest.fixture(scope="module")
def context(browser: Browser, airflow: Airflow) -> Iterator[BrowserContext]:
    """Somebody who has logged in."""
    found = browser.new_context(viewport={"width": 1360, "height": 900})
    found.set_default_timeout(PATIENCE_MS)
    log_in(found.new_page(), airflow.url, "admin", airflow.password())
    yield found
    found.close()


@pytest.fixture
def page(context: BrowserContext, airflow: Airflow) -> Iterator[Page]:
    """A new tab. A test fails if the browser complained about anything in it."""
    found = context.new_page()
    complaints: list[str] = []
    found.on(
        "console",
        lambda said: said.type == "error" and complaints.append(f"{said.text} {said.location}"),
    )
    found.on("pageerror", lambda error: complaints.append(str(error)))
    found.on("dialog", lambda dialog: complaints.append(f"dialog: {dialog.message}"))
    yield found
    found.close()
    # An answer with status 400 is what a wrong key gets; the browser notes it as an error.
    serious = [one for one in complaints if "status of 400" not in one]
    assert not serious, "\n".join([*serious, *_errors_of_the_server(airflow)])


def _errors_of_the_server(airflow: Airflow) -> list[str]:
    """Where its log speaks of errors: by the time anybody looks, the folder is gone."""
    lines = (airflow.home / "services" / "api-server.log").read_text().splitlines()
    bad = [number for number, line in enumerate(lines) if "[error" in line or "Error:" in line]
    return [line for number in bad[-5:] for line in lines[max(0, number - 3) : number + 4]]


def open_page(page: Page, airflow: Airflow, name: str = "things") -> None:
    """The page by itself, without Airflow around it."""
    page.goto(f"{airflow.url}/tidetable/#{name}")
    page.get_by_role("heading", name=name, exact=True).wait_for()
    page.locator("[data-cells] .cell").first.wait_for()


# -- without a login -------------------------------------------------------------------------------


def test_anonymous_requests_to_the_real_server_are_refused(airflow: Airflow) -> None:
    for path in ("", "static/page.js", "api/indexes", "api/indexes/things", "no/such/path",
                 "api/indexes/things/probe?key=k1", "reports/things/index.html"):  # fmt: skip
        with pytest.raises(urllib.error.HTTPError) as refused:
            urllib.request.urlopen(f"{airflow.url}/tidetable/{path}")
        assert refused.value.code == 401


# -- inside Airflow --------------------------------------------------------------------------------


def test_a_person_finds_the_page_and_gets_along_in_it(page: Page, airflow: Airflow) -> None:
    page.goto(airflow.url)
    page.get_by_test_id("nav-sidebar").get_by_text("Tidetable").click()
    inside = frame(page)
    inside.get_by_role("link", name="things").wait_for()
    listed = inside.locator("table.indexes tbody tr")
    assert listed.count() == 7
    assert "broken YAML" in listed.nth(0).inner_text()

    inside.get_by_role("link", name="gridded").click()
    inside.get_by_role("heading", name="gridded", exact=True).wait_for()
    assert inside.locator("[data-cells] .cell").count() == 6
    assert inside.locator("#history .chart").count() >= 3
    assert "passed" in inside.locator("#quality").inner_text()

    inside.get_by_role("button", name="Slot 2").click()
    inside.locator("[data-cells] .cell.touched").first.wait_for()
    touched = inside.locator("[data-cells] .cell.touched").count()
    assert 0 < touched < 6


def test_data_docs_open_from_the_page(page: Page, airflow: Airflow) -> None:
    page.goto(f"{airflow.url}/plugin/tidetable")
    inside = frame(page)
    inside.get_by_role("link", name="things").click()
    inside.get_by_role("heading", name="things", exact=True).wait_for()
    with page.expect_popup() as opened:
        inside.get_by_role("link", name="All Data Docs").click()
    docs = opened.value
    docs.get_by_role("heading", name="Quality of things").wait_for()
    docs.get_by_role("link", name="The newest report").click()
    docs.get_by_text("Great Expectations").wait_for()
    assert docs.url.startswith(f"{airflow.url}/tidetable/reports/things/")
    docs.close()


def test_an_index_has_a_tab_on_its_dag(page: Page, airflow: Airflow) -> None:
    page.goto(f"{airflow.url}/dags/tidetable__gridded")
    # By its address: names are matched loosely, and the DAG's own link is there before its tabs.
    page.locator("a[href$='/plugin/tidetable-index']").click()
    inside = frame(page)
    inside.get_by_role("heading", name="gridded", exact=True).wait_for()
    assert inside.locator("#list").is_hidden()
    page.goto(f"{airflow.url}/dags/tidetable__gridded-by-hand/plugin/tidetable-index")
    inside.get_by_role("heading", name="gridded", exact=True).wait_for()
    page.goto(f"{airflow.url}/dags/example_after_update/plugin/tidetable-index")
    inside.get_by_text("does not keep an index itself").wait_for()
    with page.expect_navigation(url="**/dags/tidetable__things*"):
        inside.get_by_role("link", name="things").click()
        inside.get_by_role("link", name="DAG", exact=True).click()


def test_the_page_follows_airflows_theme(page: Page, airflow: Airflow) -> None:
    grounds = {}
    for theme in ("light", "dark"):
        page.goto(airflow.url)
        page.evaluate("theme => localStorage.setItem('theme', theme)", theme)
        page.goto(f"{airflow.url}/plugin/tidetable")
        frame(page).get_by_role("link", name="things").wait_for()
        grounds[theme] = (
            frame(page).locator("body").evaluate("body => getComputedStyle(body).backgroundColor")
        )
    page.evaluate("localStorage.removeItem('theme')")
    assert grounds == {"light": "rgb(245, 248, 249)", "dark": "rgb(15, 22, 26)"}


def test_a_probe_is_triggered_by_hand_with_a_form(page: Page, airflow: Airflow) -> None:
    page.goto(f"{airflow.url}/dags/tidetable__things-by-hand")
    page.get_by_role("button", name="Trigger").first.click()
    form = page.get_by_role("dialog")
    form.locator("#element_action").get_by_role("combobox").fill("probe")
    page.keyboard.press("Enter")
    form.locator("#element_key").fill(NASTY_KEYS[0])
    form.get_by_role("button", name="Trigger").click()
    run = _finished_run(page, airflow, "tidetable__things-by-hand")
    assert (run["state"], run["conf"]["action"]) == ("success", "probe")
    tasks = f"dags/{run['dag_id']}/dagRuns/{run['dag_run_id']}/taskInstances/probe"
    result = page.request.get(f"{airflow.url}/api/v2/{tasks}/xcomEntries/return_value").text()
    assert re.search(r"live_rows\W+1\b", result), result
    log = page.request.get(f"{airflow.url}/api/v2/{tasks}/logs/1?full_content=true").text()
    assert "1 live row as of" in log
    for kept in (result, log):
        assert NASTY_KEYS[0] not in kept, "rows would live on there after they have expired"


def _finished_run(page: Page, airflow: Airflow, dag_id: str) -> dict[str, Any]:
    for _ in range(60):
        answer = page.request.get(f"{airflow.url}/api/v2/dags/{dag_id}/dagRuns")
        runs = json.loads(answer.text())["dag_runs"]
        if runs and runs[0]["state"] in ("success", "failed"):
            return dict(runs[0])
        page.wait_for_timeout(1000)
    pytest.fail(f"no run of {dag_id} has ended")


# -- the page by itself ----------------------------------------------------------------------------


def test_a_probe_answers_at_once_and_shows_what_it_found_as_text(
    page: Page, airflow: Airflow
) -> None:
    open_page(page, airflow)
    for key in NASTY_KEYS[:5]:
        page.get_by_label("Key").fill(key)
        page.keyboard.press("Enter")
        found = page.locator("#probe-answer .found code")
        found.get_by_text(key, exact=True).wait_for()
        assert page.locator("#probe-answer tbody tr").count() == 1
        assert page.locator("#probe-answer script").count() == 0
        assert page.locator("#probe-answer tbody td").nth(1).inner_text() == key
    page.get_by_role("button", name="Try").click()
    page.locator("#probe-answer tbody tr").nth(1).wait_for()
    page.get_by_role("link", name="numbers").click()
    page.get_by_role("heading", name="numbers", exact=True).wait_for()
    page.get_by_label("Key").fill("seven")
    page.keyboard.press("Enter")
    assert "whole number" in page.get_by_role("alert").filter(has_text="seven").inner_text()


def test_everything_can_be_reached_and_read_by_keyboard(page: Page, airflow: Airflow) -> None:
    open_page(page, airflow, "gridded")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Skip to content"
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "main-content"
    reached = []
    for _ in range(60):
        page.keyboard.press("Tab")
        reached.append(page.evaluate("document.activeElement.dataset.key ?? ''"))
    for wanted in ("index things", "cell 0,0", "coming 1", "expiring chart", "chart live"):
        assert wanted in reached
    page.locator("[data-key='cell 0,0']").focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowDown")
    assert page.evaluate("document.activeElement.dataset.key") == "cell 1,1"
    label = page.evaluate("document.activeElement.getAttribute('aria-label')")
    assert label.startswith("Cell g 1, e 1, ")
    assert page.locator("#tip").is_visible()
    chart = page.locator("[data-key='expiring chart']")
    chart.focus()
    page.keyboard.press("ArrowRight")
    assert "Slot 2, 8 rows will expire" in (chart.get_attribute("aria-valuetext") or "")
    outline = chart.evaluate("element => getComputedStyle(element).outlineStyle")
    assert outline == "solid"


def test_a_refresh_keeps_focus_and_what_was_typed(
    page: Page, airflow: Airflow, project: Project
) -> None:
    open_page(page, airflow)
    page.locator("#cells details summary").click()
    page.locator("[data-key='cell 0,1']").focus()
    page.evaluate("document.querySelector('#probe-key').value = 'half a k'")
    scrolled = page.evaluate("scrollTo(0, 300), scrollY")
    index = project.describe("meanwhile")
    try:
        # What ten seconds would bring.
        page.evaluate("document.dispatchEvent(new Event('visibilitychange'))")
        page.get_by_role("link", name="meanwhile").wait_for()
    finally:
        (project.indexes / f"{index.name}.yaml").unlink()
    page.evaluate("document.dispatchEvent(new Event('visibilitychange'))")
    page.get_by_role("link", name="meanwhile").wait_for(state="detached")
    assert page.evaluate("document.activeElement.dataset.key") == "cell 0,1"
    assert page.evaluate("document.querySelector('#probe-key').value") == "half a k"
    assert page.evaluate("document.querySelector('#cells details').open")
    assert page.evaluate("scrollY") == scrolled


def test_a_tooltip_does_not_outlive_its_index(page: Page, airflow: Airflow) -> None:
    open_page(page, airflow)
    page.locator("#history .chart").first.hover()
    assert page.locator("#tip").is_visible()
    # By the address, as a link elsewhere does it: the pointer stays where it is.
    page.evaluate("location.hash = '#planned'")
    page.get_by_role("heading", name="planned", exact=True).wait_for()
    page.locator("#tip").wait_for(state="hidden")


def test_a_cut_table_says_that_it_scrolls(page: Page, airflow: Airflow) -> None:
    page.set_viewport_size({"width": 820, "height": 900})
    open_page(page, airflow)
    page.locator("#history-table summary").click()
    hint = page.locator("#history-table .cut")
    hint.wait_for()
    page.locator("#history-table .scroll").evaluate("box => box.scrollTo(9999, 0)")
    hint.wait_for(state="hidden")


def test_bad_rows_are_shown_as_text_when_somebody_asks(page: Page, airflow: Airflow) -> None:
    open_page(page, airflow)
    details = page.locator("#quarantine details")
    details.locator("summary").click()
    details.get_by_text("<script>alert(1)</script>").first.wait_for()
    assert details.locator("tbody tr").count() == 50
    assert details.locator("script").count() == 0


def test_the_way_to_read_the_table_can_be_copied(
    page: Page, airflow: Airflow, project: Project
) -> None:
    open_page(page, airflow)
    reading = page.locator("#reading")
    reading.get_by_role("button", name="DuckDB").click()
    code = reading.locator("pre code")
    assert code.inner_text() == f"SELECT * FROM delta_scan('{project.read('things').table}');"
    reading.get_by_role("button", name="Copy").click()
    # Where the clipboard is not ours, the text is marked.
    reading.get_by_role("button", name=re.compile("Copied|Marked")).wait_for()


@pytest.mark.parametrize("width", [1000, 1440, 1920])
def test_labels_of_an_axis_do_not_touch(page: Page, airflow: Airflow, width: int) -> None:
    page.set_viewport_size({"width": width, "height": 900})
    open_page(page, airflow)
    boxes = page.locator(".chart svg").evaluate_all(
        "pictures => pictures.map(one => [...one.querySelectorAll('.tick.middle.time')]"
        ".map(label => label.getBoundingClientRect()).map(box => [box.left, box.right]))"
    )
    assert any(len(labels) > 1 for labels in boxes)
    for labels in boxes:
        ordered = sorted(labels)
        for before, after in itertools.pairwise(ordered):
            assert before[1] < after[0]


@pytest.mark.parametrize("width", [360, 820, 1360])
def test_nothing_is_wider_than_the_window(page: Page, airflow: Airflow, width: int) -> None:
    page.set_viewport_size({"width": width, "height": 800})
    for name in ("things", "gridded", "damaged", "broken", "planned"):
        page.goto(f"{airflow.url}/tidetable/#{name}")
        page.get_by_role("heading", name=name, exact=True).wait_for()
        page.wait_for_load_state("networkidle")
        assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_every_chart_has_a_table_behind_it(page: Page, airflow: Airflow) -> None:
    open_page(page, airflow, "gridded")
    for part in ("cells", "coming", "expiring", "history-table"):
        details = page.locator(f"#{part} details")
        details.locator("summary").click()
        assert details.locator("tbody tr").count() > 0
    assert page.locator("#cells tbody tr").count() == 6


# -- pictures for the documentation ----------------------------------------------------------------


@pytest.mark.skipif(not MAKES_PICTURES, reason="pictures are made if TIDETABLE_SCREENSHOTS is set")
def test_pictures(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> None:
    home = Path(os.environ.get("TIDETABLE_HOME", ROOT))
    folder = tmp_path_factory.mktemp("pictures") / "flights"
    shutil.copytree(home / "include" / "indexes", folder / "include" / "indexes")
    shutil.copytree(home / ".tidetable", folder / ".tidetable")
    # With some slots to come: an index at its end has no next update to show.
    yaml = folder / "include" / "indexes" / "flights_rebuild.yaml"
    yaml.write_text(re.sub(r"(?m)^end: .*", "end: 2013-01-02T21:00:00Z", yaml.read_text()))
    made = Airflow(
        home=tmp_path_factory.mktemp("airflow"), project=folder, port=free_port(8080),
        connections={}, more={"AIRFLOW__CORE__DAGS_ARE_PAUSED_AT_CREATION": "True"},
    )  # fmt: skip
    with Services(made.home / "services") as services:
        migration = made.migration()
        assert migration is not None
        services.run(migration)
        for service in made.services()[:2]:
            services.start(service)
        services.wait_ready()
        for file, theme, width, height in (
            ("page.png", "light", 1400, 1000),
            ("page-dark.png", "dark", 1400, 1000),
            ("page-narrow.png", "light", 390, 844),
        ):
            _picture(browser, made, PICTURES / file, theme, width, height)


def _picture(
    browser: Browser, airflow: Airflow, file: Path, theme: str, width: int, height: int
) -> None:
    context = browser.new_context(
        viewport={"width": width, "height": height}, device_scale_factor=1.5, timezone_id="UTC"
    )
    context.set_default_timeout(PATIENCE_MS)
    page = context.new_page()
    log_in(page, airflow.url, "admin", airflow.password())
    page.evaluate("theme => localStorage.setItem('theme', theme)", theme)
    if width < 600:
        page.goto(f"{airflow.url}/tidetable/#flights_rebuild")
        inside: Any = page
    else:
        page.goto(f"{airflow.url}/plugin/tidetable")
        inside = frame(page)
    inside.get_by_role("link", name="flights_rebuild").click()
    inside.get_by_role("heading", name="flights_rebuild", exact=True).wait_for()
    inside.locator("[data-key^='coming']").first.click()
    page.mouse.move(0, 0)
    inside.locator("body").evaluate("() => scrollTo(0, 0)")
    page.wait_for_timeout(1500)
    page.screenshot(path=file)
    if file.name == "page.png":
        inside.locator("#history").screenshot(path=file.with_name("page-updates.png"))
    context.close()
