"""Where the newest rows of a table lie, by the statistics of its files."""

from __future__ import annotations

from deltalake import DeltaTable

from tidetable.table.log import arrow


def lowest_of_newest(table: DeltaTable, column: str, number: int) -> int | None:
    """No row among the `number` with the highest values of the column has a lower one than this.

    None if the statistics do not say: then every row has to be looked at.
    """
    actions = arrow(table.get_add_actions(flatten=True)).read_all()
    names = [f"max.{column}", f"min.{column}", "num_records"]
    if not set(names) <= set(actions.column_names):
        return None
    columns = [actions.column(name).to_pylist() for name in names]
    if any(value is None for values in columns for value in values):
        return None
    seen, lowest = 0, None
    for _, low, rows in sorted(zip(*columns, strict=True), reverse=True):
        if seen >= number:
            break
        lowest = low if lowest is None else min(lowest, low)
        seen += rows
    return lowest
