"""One DAG for each index in include/indexes: tidetable__NAME, scheduled at its update interval.

Parsing reads YAML and nothing else. What the tasks do is in tidetable.pipeline; a broken YAML file
shows as an import error of index_mistakes.py beside this file (airflow keeps one error per file).
"""

from tidetable.pipeline.catalog import read_catalog
from tidetable.pipeline.dag import index_dag

_catalog = read_catalog()

for _entry in _catalog.entries.values():
    _dag = index_dag(_entry)
    globals()[_dag.dag_id] = _dag
