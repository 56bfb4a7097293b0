"""No DAG: an import error that names file and line if an index cannot be read.

Airflow keeps one error for each file in dags/. The DAGs of the good indexes come from another file,
so a mistake in one YAML file shows here and takes no other index down.
"""

from tidetable.pipeline.catalog import read_catalog

mistakes = read_catalog().mistakes
if mistakes:
    text = "\n".join(str(mistake) for mistake in mistakes)
    raise ValueError(f"These indexes have no DAG (airflow runs the others):\n{text}") from None
