"""The page in Airflow's UI, for an Airflow that has Tidetable beside it and not installed.

An installed Tidetable names its plugin itself (entry point `airflow.plugins`); Airflow would call
a second one of the same name an error, so then there is none here.
"""

from importlib.metadata import PackageNotFoundError, version

try:
    version("tidetable")
except PackageNotFoundError:
    from tidetable.page.plugin import TidetablePlugin

    __all__ = ["TidetablePlugin"]
