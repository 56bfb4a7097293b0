"""One DAG for each index in include/indexes: tidetable__NAME, scheduled at its update interval.

Parsing reads YAML and nothing else. A broken YAML file shows as an import error of
index_mistakes.py beside this file (airflow keeps one error per file).
"""

from tidetable.pipeline import index_dags

globals().update(index_dags())
