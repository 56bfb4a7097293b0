"""The rules of the index in plain Python: no Spark, no Airflow, no clock."""
