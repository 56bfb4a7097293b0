"""The page in Airflow's UI, for an Airflow that has Tidetable beside it and not installed.

An installed Tidetable names its plugin itself (entry point `airflow.plugins`). Airflow takes a
plugin once, whichever of the two it meets first.
"""

from tidetable.page.plugin import TidetablePlugin

__all__ = ["TidetablePlugin"]
