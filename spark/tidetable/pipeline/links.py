"""Buttons on a task in Airflow's UI: to the index's page and to its quality reports."""

from __future__ import annotations

from typing import TYPE_CHECKING

from airflow.sdk import BaseOperatorLink

if TYPE_CHECKING:
    from airflow.sdk import BaseOperator
    from airflow.sdk.types import TaskInstanceKey

PAGE = "/tidetable/"


def page_url(name: str) -> str:
    return f"{PAGE}#{name}"


def reports_url(name: str) -> str:
    return f"{PAGE}reports/{name}/index.html"


class PageLink(BaseOperatorLink):
    """To the pictures of the index."""

    name = "Index page"

    def get_link(self, operator: BaseOperator, *, ti_key: TaskInstanceKey) -> str:
        return page_url(getattr(operator, "index_name", ""))


class ReportsLink(BaseOperatorLink):
    """To the Data Docs of the index."""

    name = "Data Docs"

    def get_link(self, operator: BaseOperator, *, ti_key: TaskInstanceKey) -> str:
        return reports_url(getattr(operator, "index_name", ""))
