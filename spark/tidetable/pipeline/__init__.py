"""The pipeline: Airflow runs the updates of every index (DAGs, tasks, services)."""
