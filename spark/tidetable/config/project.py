"""Where the project is: the folder whose include/indexes describes the indexes. One rule for all.

The command line is called anywhere below it, Airflow's programs anywhere at all.
"""

from __future__ import annotations

import os
from pathlib import Path

from tidetable.config.loading import INDEXES

HOME = "TIDETABLE_HOME"


def project_root() -> Path:
    """The project of this process.

    TIDETABLE_HOME, or the nearest folder upwards that has include/indexes, or the folder that
    Airflow's dags/ lie in if it has one, or the checkout of this code, or else this folder.
    """
    if home := os.environ.get(HOME):
        return Path(home).resolve()
    here = Path.cwd()
    for folder in (here, *here.parents, *_of_airflow()):
        if (folder / INDEXES).is_dir():
            return folder
    return repository() or here


def repository() -> Path | None:
    """The checkout that this code is in; None if it was installed as a package."""
    folder = Path(__file__).resolve().parents[3]
    return folder if (folder / "spark" / "tidetable").is_dir() else None


def _of_airflow() -> list[Path]:
    """Where an Airflow project keeps its include/, beside dags/ or in AIRFLOW_HOME."""
    dags = os.environ.get("AIRFLOW__CORE__DAGS_FOLDER")
    home = os.environ.get("AIRFLOW_HOME")
    return [
        *([Path(dags).resolve().parent] if dags else []),
        *([Path(home).resolve()] if home else []),
    ]
