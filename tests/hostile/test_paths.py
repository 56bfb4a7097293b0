"""Paths as people write them: one form for every spelling, and no table inside its source."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli.handmade import make_table
from tests.cli.runner import tidetable
from tests.workspace import Workspace, row
from tidetable.config import ConfigError, load_index
from tidetable.config.location import overlap, resolved

# -- one form --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("written", "form"),
    [
        ("/x/t", "/x/t"),
        ("/x//t", "/x/t"),
        ("//x/t", "/x/t"),
        ("/x/t/", "/x/t"),
        ("/x/./t", "/x/t"),
        ("/x/y/../t", "/x/t"),
        ("file:/x/t", "/x/t"),
        ("file:///x/t", "/x/t"),
        ("FILE:///x//t/", "/x/t"),
        ("file://localhost/x/t", "/x/t"),
        ("~/t", "/at_home/me/t"),
        ("~", "/at_home/me"),
        ("~nobody_at_all/t", "/base/~nobody_at_all/t"),
        ("./main.sales.coupons", "/base/main.sales.coupons"),
        ("t", "/base/t"),
        ("s3a://bucket/a//b/", "s3a://bucket/a//b/"),
    ],
)
def test_every_spelling_has_one_form(
    written: str, form: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", "/at_home/me")
    assert resolved(written, "/base") == form


def test_dots_behind_a_link_lead_to_where_the_link_leads(tmp_path: Path) -> None:
    (tmp_path / "far" / "away").mkdir(parents=True)
    (tmp_path / "link").symlink_to(tmp_path / "far" / "away")
    assert resolved(f"{tmp_path}/link/../t", "/base") == str(tmp_path.resolve() / "far" / "t")


@pytest.mark.parametrize(
    ("table", "told"),
    [
        ("main.sales.coupons", "is a name in a catalog, not a path; write a folder or a URI, or"),
        ("sales.coupons", "or ./sales.coupons if a folder of that name is meant"),
        ("`main`.sales.coupons", "is a name in a catalog"),
        ("file:t", "is no folder of this machine; write file:///folder, or the folder alone"),
        ("file://elsewhere/t", "is no folder of this machine"),
        ("a[b]", "has [ in it, which not all readers of Delta tables can cope with"),
        ("a]b", "has ] in it"),
        ("a|b", "has | in it"),
        ("a^b", "has ^ in it"),
        ("a\\b", "has \\ in it"),
        ("a%20b", "has %20 in it"),
        ("a%5Bb", "has %5B in it"),
        ("a\x01b", "has \\x01 in it"),
        ("a\nb", "has \\n in it"),
        ("s3a://bucket/a[b", "has [ in it"),
        ("{%Y}", "has a time placeholder"),
    ],
)
def test_where_no_table_can_be_is_refused_with_the_line(
    workspace: Workspace, table: str, told: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        workspace.index(table=table)
    (mistake,) = caught.value.mistakes
    assert mistake.field == "table"
    assert mistake.line is not None
    assert told in mistake.message
    assert str(caught.value).isprintable()


@pytest.mark.parametrize("table", ["100%", "a b", "a#b", "a?b", "münchen", "a`b", "a:b", "v1.x-y"])
def test_other_odd_paths_are_fine(workspace: Workspace, table: str) -> None:
    assert workspace.index(table=table).table == str(workspace.folder / table)


def test_a_table_that_was_made_under_a_dotted_name_stays(workspace: Workspace) -> None:
    (workspace.folder / "main.sales" / "_delta_log").mkdir(parents=True)
    assert workspace.index(table="main.sales").table == str(workspace.folder / "main.sales")


# -- apart -----------------------------------------------------------------------------------------


@pytest.fixture
def places(tmp_path: Path) -> Path:
    """Folders `data`, `data/t` and a link to each; `other` is empty."""
    for folder in ("data/t", "data/x", "other"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "link_to_data").symlink_to(tmp_path / "data")
    (tmp_path / "link_to_t").symlink_to(tmp_path / "data" / "t")
    return tmp_path


@pytest.mark.parametrize(
    ("source", "table"),
    [
        ("data", "data"),
        ("data", "data/t"),
        ("data/t", "data"),
        ("data", "data/"),
        ("data/", "data"),
        ("data", "other/../data/t"),
        ("data", "/data//t"),
        ("data", "file:data/t"),
        ("data", "file://data/t"),
        ("file:data", "data/not_yet"),
        ("data", "link_to_data/t"),
        ("data", "link_to_t"),
        ("link_to_data", "data/t"),
        ("link_to_t/deep", "data/t"),
        ("data", "link_to_data/not/yet"),
        ("not_yet", "not_yet/t"),
        ("data/*", "data/t"),
        ("data/t*", "data/t"),
        ("data/?", "data/t/deep"),
        ("data/[st]", "data/t"),
        ("data/*/deep", "data/t"),
        ("data/{t,x}", "data/t"),
        ("data/{x,t/deep}", "data/t"),
        ("link_to_data/*", "data/t"),
        ("data/{%Y-%m-%d}", "data/2024-03-01"),
        ("data/{%Y/%m}", "data/2024/03/t"),
        ("data/{%Y}/x", "data/2024"),
        ("data/day={%Y-%m-%d}", "data"),
        ("data/t_quarantine", "data/t"),
        ("data/t_updates/x", "data/t"),
    ],
)
def test_a_table_in_its_source_or_around_it_is_refused(
    places: Path, source: str, table: str
) -> None:
    with pytest.raises(ConfigError, match="lie in each other; write a folder of its own"):
        described(places, source, table)


@pytest.mark.parametrize(
    ("source", "table"),
    [
        ("data/x", "data/t"),
        ("data", "data_t"),
        ("data/t", "data/t2"),
        ("data/x*", "data/t"),
        ("data/{x,y}", "data/t"),
        ("data/*.parquet", "data/t"),
        ("data/{%Y-%m-%d}", "data/t"),
        ("data/{%Y}/{%m}", "data/t"),
        ("data/{%Y-%m-%d}", "data/2024-3-1"),
        ("link_to_data", "other/t"),
    ],
)
def test_a_table_beside_its_source_is_fine(places: Path, source: str, table: str) -> None:
    described(places, source, table)


@pytest.mark.parametrize(
    ("source", "table", "do"),
    [
        ("s3a://b/d", "s3://b/d/t", True),
        ("s3a://B/d/", "s3n://b//d/x/../t", True),
        ("s3a://b/d/*", "s3a://b/d/t", True),
        ("s3a://b/d/{%Y}", "s3a://b/d/t", False),
        ("s3a://b/d", "s3a://c/d/t", False),
        ("s3a://b/d", "hdfs://b/d", False),
        ("s3a://b/d", "/b/d", False),
    ],
)
def test_object_stores_too(source: str, table: str, do: bool) -> None:
    assert overlap(source, table) is do


def described(places: Path, source: str, table: str) -> None:
    """Loads an index with these two, `file:` and slashes before the folder of the test."""
    changes: dict[str, Any] = {"table": _at(places, table), "source": {"path": _at(places, source)}}
    (places / "work").mkdir()
    workspace = Workspace(places / "work")
    load_index(workspace.describe(**changes), places / "work")


def _at(places: Path, written: str) -> str:
    scheme = next((one for one in ("file://", "file:") if written.startswith(one)), "")
    return f"{scheme}{places}/{written.removeprefix(scheme)}"


# -- somebody else's tables ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("feature", "told"),
    [
        ("catalogManaged", "A catalog manages the table there"),
        ("catalogOwned-preview", "A catalog manages the table there"),
        ("somethingNew", "This version cannot do that with this table"),
    ],
)
@pytest.mark.parametrize("command", ["check", "status", "update"])
def test_a_table_that_cannot_be_ours_is_a_sentence(
    workspace: Workspace, command: str, feature: str, told: str
) -> None:
    make_table(workspace, [row(1, 0, 3)])
    first = workspace.table / "_delta_log" / f"{0:020d}.json"
    actions = [json.loads(line) for line in first.read_text().splitlines()]
    versions = {"minReaderVersion": 3, "minWriterVersion": 7}
    for action in actions:
        if "protocol" in action:
            action["protocol"] = {
                **versions, "readerFeatures": [feature], "writerFeatures": [feature]
            }  # fmt: skip
    first.write_text("".join(json.dumps(action) + "\n" for action in actions))
    found = tidetable(command, workspace.yaml)
    assert (found.status, found.out) == (2, "")
    assert told in found.sentence
    assert len(found.err.splitlines()) <= 2
