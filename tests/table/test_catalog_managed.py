"""Tables of a catalog are refused: their log alone does not tell which versions there are."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, write_deltalake

from tidetable.core.errors import TidetableError
from tidetable.table.log import CatalogManaged, open_log

FEATURES = ("catalogManaged", "catalogOwned-preview")


def protocol(feature: str) -> dict[str, object]:
    features = {"readerFeatures": [feature], "writerFeatures": [feature]}
    return {"minReaderVersion": 3, "minWriterVersion": 7, **features}


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """Somebody's Delta table of two versions."""
    path = tmp_path / "table"
    for _ in range(2):
        write_deltalake(str(path), pa.table({"id": [1]}), mode="append")
    return path


def version(table: Path, number: int) -> Path:
    return table / "_delta_log" / f"{number:020d}.json"


@pytest.mark.parametrize("feature", FEATURES)
@pytest.mark.parametrize("at", [0, 2], ids=["from the start", "taken over later"])
def test_a_table_of_a_catalog_is_refused(table: Path, feature: str, at: int) -> None:
    lines = version(table, at).read_text().splitlines() if at == 0 else []
    kept = [line for line in lines if '"protocol"' not in line]
    said = json.dumps({"protocol": protocol(feature)})
    version(table, at).write_text("\n".join([*kept, said]) + "\n")
    check_refused(table)


@pytest.mark.parametrize("feature", FEATURES)
def test_the_commit_that_says_so_may_be_gone(table: Path, feature: str) -> None:
    """The log is cleaned up to its checkpoint."""
    DeltaTable(str(table)).create_checkpoint()
    (checkpoint,) = (table / "_delta_log").glob("*.checkpoint.parquet")
    whole = pq.read_table(checkpoint)
    place = whole.schema.get_field_index("protocol")
    values = [value and protocol(feature) for value in whole.column(place).to_pylist()]
    column = pa.array(values, whole.schema.field(place).type)
    pq.write_table(whole.set_column(place, whole.schema.field(place), column), checkpoint)
    for number in range(2):
        version(table, number).unlink()
    check_refused(table)


def check_refused(table: Path) -> None:
    with pytest.raises(CatalogManaged) as refused:
        open_log(str(table))
    assert isinstance(refused.value, TidetableError)
    assert not refused.value.retry_can_help
    assert str(refused.value) == (
        f"A catalog manages the table there, {table}, and only by way of it may it be read and "
        "written; Tidetable knows tables by their path alone. Choose another place in the YAML "
        "(table:). It was not touched."
    )


def test_another_feature_is_not_taken_for_it(table: Path) -> None:
    lines = [line for line in version(table, 0).read_text().splitlines() if "protocol" not in line]
    said = json.dumps({"protocol": protocol("somethingNew")})
    version(table, 0).write_text("\n".join([*lines, said]) + "\n")
    with pytest.raises(Exception, match="somethingNew") as refused:
        open_log(str(table))
    assert not isinstance(refused.value, TidetableError)
