"""A scheme that is registered from here goes all the way, and nothing else has to know it."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import jsonschema
import pytest
from pyspark.sql import SparkSession

from tests.cli.runner import tidetable
from tests.page.pages import Project
from tests.schemes.ring import Ring, RingConfig
from tests.workspace import Workspace, at, row
from tidetable.advisor import Calibration, Wishes, Workload, advise
from tidetable.config import ConfigError, index_schema
from tidetable.config.scheme import as_written
from tidetable.core.plan import Action
from tidetable.core.schemes import SCHEMES, register
from tidetable.engine.updater import Updater
from tidetable.page.picture import picture
from tidetable.page.standing import entries, stand
from tidetable.pipeline.catalog import read_catalog
from tidetable.table.status import outlook, status

RING = {"name": "ring"}
CALIBRATION = Calibration.read(Path(__file__).resolve().parents[2] / "include/calibration.json")


@pytest.fixture(autouse=True)
def registered(monkeypatch: pytest.MonkeyPatch) -> None:
    """Until the end of the test, that is."""
    monkeypatch.delitem(SCHEMES, RingConfig.name, raising=False)
    register(RingConfig)


def test_a_yaml_may_say_it_and_mistakes_in_it_are_named(workspace: Workspace) -> None:
    index = workspace.index(scheme={"name": "ring", "spare": 2})
    assert index.scheme == RingConfig(spare=2)
    assert index.build_scheme() == Ring(6, 2)
    assert index.layout_fingerprint["scheme"] == {"name": "ring", "spare": 2}
    with pytest.raises(ConfigError) as caught:
        workspace.index(scheme={"name": "ring", "spare": 0, "spokes": 3})
    assert [(one.field, one.message) for one in caught.value.mistakes] == [
        ("scheme.spare", "0 is too small; write at least 1"),
        ("scheme.spokes", "unknown field; allowed are name, spare"),
    ]
    with pytest.raises(ConfigError, match="spare: 10005 cells are too many; write less"):
        workspace.index(scheme={"name": "ring", "spare": 9999})
    with pytest.raises(ConfigError, match=r"allowed are .*, ring, auto; did you mean 'ring'"):
        workspace.index(scheme={"name": "rings"})


def test_the_json_schema_has_it() -> None:
    schema = index_schema()
    described = {"$defs": schema["$defs"], **schema["properties"]["scheme"]}
    jsonschema.validate({"name": "ring", "spare": 2}, described)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({"name": "ring", "spare": 0}, described)


@pytest.mark.spark
def test_a_table_lives_under_it(spark: SparkSession, workspace: Workspace) -> None:
    rows = [row(number, number / 4, number / 4 + 1 + number % 5) for number in range(-8, 40)]
    workspace.add(rows)
    index = workspace.index(scheme=RING)
    reports = list(Updater(spark, index).catch_up(4))
    reports += Updater(spark, index).catch_up(8, fold=True)
    reports += Updater(spark, index).catch_up(9)

    alive = [one["id"] for one in rows if one["arrived_at"] <= at(9) < one["expires_at"]]
    assert workspace.ids() == sorted(alive)
    assert reports[-1].live == len(alive)
    scheme = Ring(6)
    for one in workspace.stored():
        cell = scheme.initial_cell(one["_insertion_slot"], one["_expiration_slot"])
        assert (one["_g"], one["_e"]) == cell
    # Whatever is due goes unread.
    assert {cell["action"] for one in reports[1:5] for cell in one.touched} == {"append", "drop"}

    found = status(index)
    assert (found.scheme, found.slot, found.live) == ("Ring of 7", 9, len(alive))
    planned = outlook(index, None)
    due = scheme.e.part_of(10)
    assert {cell.e: touch.action for cell, touch in planned.plan.touched.items()}[
        due
    ] is Action.DROP
    for command in ("check", "plan", "status"):
        assert tidetable(command, workspace.yaml).status == 0, command
    assert "Ring of 7" in tidetable("status", workspace.yaml).out


def test_the_page_draws_it(tmp_path: Path) -> None:
    project = Project(tmp_path / "own")
    project.make("things", [row(1, 0, 3), row(2, 0, 5)], scheme=RING)
    (entry,) = entries(read_catalog(project.folder))
    drawn = picture(stand(entry, at(0), project.reports), at(0))
    assert drawn["scheme"] == "Ring of 7"
    assert {name: drawn["layout"][name] for name in ("kind", "g", "e", "log")} == {
        "kind": "groups", "g": 1, "e": 7, "log": False,
    }  # fmt: skip
    assert [cell["rows"] for cell in drawn["cells"]].count(1) == 2
    assert drawn["coming"][2]["cells"]


def test_it_is_simulated() -> None:
    (found,) = tidetable("simulate", "--json", "--period", 24, "--scheme", "{name: ring}").objects
    assert found["scheme"] == "Ring of 25"
    assert (found["written_avg"], found["dead_avg"]) == (1.0, 0.0)
    assert found["files_avg"] == 24 * 25 / 2
    bare = tidetable("simulate", "--json", "--period", 24, "--scheme", "ring")
    assert bare.objects == [found]
    refused = tidetable("simulate", "--period", 24, "--scheme", "{name: ring, spare: 0}")
    assert refused.status == 2
    assert "scheme.spare: 0 is too small" in refused.sentence


def test_the_advisor_looks_at_it() -> None:
    slots = 8
    workload = Workload(
        lifetimes=(1e6 / slots,) * slots,
        bytes_per_row=1000.0,
        update_every=timedelta(minutes=10),
        keep_versions_for=timedelta(hours=24),
    )
    assert CALIBRATION is not None
    wishes = Wishes(probes_per_update=0, scans_per_update=0)
    advice = advise(workload, CALIBRATION, wishes, shown=1000)
    (ring,) = [one for one in advice.best if isinstance(one.setting, RingConfig)]
    assert ring.scheme == as_written(RingConfig()) == {"name": "ring"}
    assert ring.prediction.written_per_inserted == pytest.approx(1.0)
