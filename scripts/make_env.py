"""Write .env for docker-compose.yaml from .env.example, with a fresh secret for each <...> in it.

An .env that is there is left alone: the database and the store know its passwords.
"""

from __future__ import annotations

import base64
import os
import re
import secrets
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
MAKERS = {
    "<password>": lambda: secrets.token_hex(24),  # goes into URLs: no character that needs quoting
    "<fernet>": lambda: base64.urlsafe_b64encode(secrets.token_bytes(32)).decode(),
}


def filled(example: str) -> str:
    """The example with every <...> replaced."""
    return re.sub(
        r"^(\w+=)(<\w+>)$", lambda line: line[1] + MAKERS[line[2]](), example, flags=re.MULTILINE
    )


def main(folder: Path = ROOT) -> str:
    """Writes the file; returns what there is to say."""
    target = folder / ".env"
    try:
        descriptor = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        return f"{target.name} is there already and stays as it is; remove it for new secrets."
    with os.fdopen(descriptor, "w") as file:
        file.write(filled((folder / ".env.example").read_text()))
    return f"{target.name} is written. The password of `admin` is in it: AIRFLOW_ADMIN_PASSWORD."


if __name__ == "__main__":
    sys.exit(print(main()))
