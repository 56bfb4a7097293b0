"""Airflow, Spark and PostgreSQL on one machine, for `make run`, `make cluster` and the tests."""
