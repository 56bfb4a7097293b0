"""The wheel in an empty environment, in a folder that has nothing of this repository."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

pytestmark = [pytest.mark.slow, pytest.mark.spark]

ROOT = Path(__file__).resolve().parents[2]
OURS = ("TIDETABLE_", "AIRFLOW", "PYTHON", "SPARK_", "PYSPARK_", "VIRTUAL_ENV", "UV_PROJECT")


@dataclass(frozen=True)
class Environment:
    """A virtual environment, and a project to work in."""

    bin: Path
    project: Path
    variables: Mapping[str, str]

    def run(self, program: str, *arguments: str, status: int = 0) -> str:
        """What it prints, both ways; it must end with this status."""
        done = subprocess.run(
            [str(self.bin / program), *arguments],
            cwd=self.project,
            env={**self.variables, "PATH": f"{self.bin}{os.pathsep}{os.environ['PATH']}"},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=300,
            check=False,
        )
        assert done.returncode == status, done.stdout
        return done.stdout


def uv() -> str:
    """The program that set-up uses; without it there is no quick way to an environment."""
    found = shutil.which("uv") or shutil.which("uv", path=str(ROOT / ".tools" / "bin"))
    if found is None:
        pytest.skip("there is no uv")
    return found


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("dist")
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    subprocess.run(build, cwd=ROOT, check=True, capture_output=True)
    (built,) = folder.glob("*.whl")
    return built


def installed(wheel: Path, extras: str, folder: Path) -> Environment:
    """The wheel with these extras, in the versions that the lock names, and an empty project."""
    variables = {name: value for name, value in os.environ.items() if not name.startswith(OURS)}
    variables["TZ"] = "UTC"
    venv, project = folder / "venv", folder / "project"
    project.mkdir()
    make = [uv(), "venv", "--quiet", "--python", sys.executable, str(venv)]
    subprocess.run(make, check=True, capture_output=True, env=variables)
    install = [
        uv(), "pip", "install", "--quiet", "--python", str(venv / "bin" / "python"),
        "--constraint", str(ROOT / "requirements.txt"), f"tidetable{extras} @ file://{wheel}",
    ]  # fmt: skip
    done = subprocess.run(install, capture_output=True, text=True, env=variables, check=False)
    assert done.returncode == 0, done.stderr
    return Environment(venv / "bin", project, variables)


@pytest.fixture(scope="module")
def alone(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Environment:
    """Without any extra."""
    return installed(wheel, "", tmp_path_factory.mktemp("alone"))


@pytest.fixture(scope="module")
def whole(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Environment:
    """With all of them; the jars come from the cache that set-up has filled."""
    folder = tmp_path_factory.mktemp("whole")
    environment = installed(wheel, "[all]", folder)
    conf = folder / "conf"
    conf.mkdir()
    (conf / "spark-defaults.conf").write_text(f"spark.jars.ivy {ROOT / '.cache' / 'ivy'}\n")
    project = environment.project
    variables = {
        **environment.variables,
        "SPARK_CONF_DIR": str(conf),
        "TIDETABLE_JAVA_OPTIONS": "-XX:+UseSerialGC -XX:TieredStopAtLevel=1",
        "AIRFLOW_HOME": str(project / ".airflow"),
        "AIRFLOW__CORE__DAGS_FOLDER": str(project / "dags"),
        "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
    }
    return Environment(environment.bin, project, variables)


# -- alone -----------------------------------------------------------------------------------------


def test_without_extras_it_proposes_plans_and_simulates(alone: Environment) -> None:
    alone.run("tidetable", "init", "--project", ".")
    alone.run("tidetable", "check", "example", "--yaml-only")
    assert "first update makes it" in alone.run("tidetable", "plan", "example")
    alone.run("tidetable", "simulate", "--scheme", "{name: sweep, groups: 4}", "--period", "24")


def test_what_needs_an_extra_says_which(alone: Environment) -> None:
    if not (alone.project / "dags").exists():
        alone.run("tidetable", "init", "--project", ".")
    told = " ".join(alone.run("tidetable", "update", "example", status=2).split())
    assert "pip install 'tidetable[spark]'" in told
    told = alone.run("python", "dags/indexes.py", status=1)
    assert "pip install 'tidetable[airflow]'" in told


# -- with everything -------------------------------------------------------------------------------


def test_an_index_over_a_csv_from_its_proposal_to_a_report(whole: Environment) -> None:
    source = whole.project / "rows"
    source.mkdir()
    hours = [f"2024-03-{1 + hour // 24:02}T{hour % 24:02}:30:00Z" for hour in range(48)]
    lines = ["device,seen_at,expires_at"]
    lines += [f"d{place % 5},{at},{hours[place + 6]}" for place, at in enumerate(hours[:40])]
    (source / "rows.csv").write_text("\n".join(lines) + "\n")

    whole.run("tidetable", "init", "seen", "--source", "rows")
    assert "The YAML is right" in whole.run("tidetable", "check", "seen")
    reports = _objects(whole.run("tidetable", "update", "seen", "--slots", "2", "--json"))
    assert [report["slot"] for report in reports] == [0, 1, 2]
    found = _objects(whole.run("tidetable", "probe", "seen", "d4", "--json"))
    assert found
    assert {row["device"] for row in found} == {"d4"}
    told = whole.run("tidetable", "validate", "seen")
    assert re.search(r"\d+ of \d+ checks hold", told)


def test_airflow_shows_the_page_and_has_the_dags(whole: Environment) -> None:
    whole.run("tidetable", "init", "--project", ".")
    whole.run("airflow", "db", "migrate")
    (plugin,) = json.loads(_json(whole.run("airflow", "plugins", "-o", "json")))
    assert plugin["name"] == "tidetable"
    assert "tidetable" in whole.run("airflow", "providers", "list", "-o", "plain")
    dags = json.loads(_json(whole.run("airflow", "dags", "list", "--local", "-o", "json")))
    ids = {dag["dag_id"] for dag in dags}
    assert {"tidetable__example", "tidetable__example-by-hand"} <= ids
    assert whole.run("python", "dags/index_mistakes.py") == ""


def _objects(printed: str) -> list[dict[str, object]]:
    return [json.loads(line) for line in printed.splitlines() if line.startswith("{")]


def _json(printed: str) -> str:
    """The array in what airflow prints, whatever it logs before."""
    return printed[printed.index("[{") :]
