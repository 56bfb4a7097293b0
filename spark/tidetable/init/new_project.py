"""A folder for Airflow that uses the installed package: DAGs, an example, how to run it."""

from __future__ import annotations

import csv
import io
from datetime import UTC, datetime, timedelta
from pathlib import Path

from tidetable.config import format_time
from tidetable.core.errors import UserError
from tidetable.init.look import look
from tidetable.init.proposal import propose
from tidetable.init.written import as_yaml

EXAMPLE = "example"
_SOURCE = Path("include/data/example")
_START = datetime(2024, 3, 1, tzinfo=UTC)

_FILES = {
    "dags/indexes.py": '''\
"""The DAGs of all indexes in include/indexes, for airflow."""
from tidetable.pipeline import dags
globals().update(dags())
''',
    "dags/index_mistakes.py": '''\
"""No DAG: an import error for airflow that names file and line if an index cannot be read."""
from tidetable.pipeline import check_indexes
check_indexes()
''',
    "requirements.txt": "tidetable[all]\n",
    ".gitignore": "/.airflow/\n/.cache/\n/.tidetable/\n",
    "README.md": """\
# Indexes

Each file in `include/indexes` describes a table whose rows expire. Airflow makes a DAG of each.

```
pip install -r requirements.txt      # Python 3.11 or newer; Spark needs a Java, 17 or newer

tidetable check example              # is the YAML right, and what would be read?
tidetable update example             # make the table, without Airflow
tidetable scan example --count
tidetable init NAME --source PATH    # a YAML for a source of yours
```

With Airflow, all of it on this machine:

```
export AIRFLOW_HOME=$PWD/.airflow
export AIRFLOW__CORE__DAGS_FOLDER=$PWD/dags
export AIRFLOW__CORE__LOAD_EXAMPLES=False
export AIRFLOW_CONN_SPARK_DEFAULT='{"conn_type": "spark", "host": "local[*]"}'
airflow standalone
```

Then http://localhost:8080, where *Tidetable* in the navigation shows the tables. Switch on the DAG
`tidetable__example`. Spark fetches Delta's jars once, into ~/.ivy2.
""",
}


def new_project(folder: Path) -> list[Path]:
    """Makes the project and says which files it has. UserError if one of them is there already."""
    example = Path("include/indexes") / f"{EXAMPLE}.yaml"
    texts = {**_FILES, str(_SOURCE / "visits.csv"): _visits()}
    there = [name for name in (*texts, str(example)) if (folder / name).exists()]
    if there:
        raise UserError(
            f"{folder} has {', '.join(there)} already, and nothing is overwritten. "
            "Give a new folder."
        )
    for name, text in texts.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    root = folder.resolve()
    found = propose(look(str(root / _SOURCE)))
    (root / example).parent.mkdir(parents=True, exist_ok=True)
    (root / example).write_text(as_yaml(found, EXAMPLE, f".tidetable/{EXAMPLE}", root))
    return [folder / name for name in (*texts, str(example))]


def _visits() -> str:
    """A day of visits, each of one to six hours, as CSV."""
    text = io.StringIO()
    rows = csv.writer(text, lineterminator="\n")
    rows.writerow(["visitor", "room", "arrived_at", "leaves_at"])
    for number in range(288):
        arrived = _START + number * timedelta(minutes=5)
        stays = timedelta(minutes=60 + 7919 * number % 300)
        rows.writerow(
            [f"v{number % 40:02}", number % 7, format_time(arrived), format_time(arrived + stays)]
        )
    return text.getvalue()
