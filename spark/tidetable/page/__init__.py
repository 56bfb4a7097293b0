"""The page about the indexes inside Airflow's UI."""
