"""No DAG: an import error that names file and line if an index cannot be read.

Airflow keeps one error for each file in dags/. The DAGs of the good indexes come from another file,
so a mistake in one YAML file shows here and takes no other index down.
"""

from tidetable.pipeline import check_indexes

check_indexes()
