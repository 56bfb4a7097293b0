"""Runs once before the rest: Airflow's database, its user's password, and the sample.

Safe to repeat: it does what is missing.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

HOME = Path(os.environ["TIDETABLE_HOME"])


def main() -> None:
    subprocess.run(["airflow", "db", "migrate"], check=True)
    passwords = Path(os.environ["AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_PASSWORDS_FILE"])
    passwords.touch(mode=0o600)
    passwords.write_text(json.dumps({"admin": os.environ["AIRFLOW_ADMIN_PASSWORD"]}))
    if os.environ.get("TIDETABLE_SAMPLE", "1") != "0":
        subprocess.run([sys.executable, str(HOME / "include/sample/flights.py")], check=True)


if __name__ == "__main__":
    main()
