"""spark-submit entry point: `spark-submit .../tidetable/jobs/update.py INDEX [--until TIME]`.

The same as the command `tidetable update`, with the master and the settings of whoever submits.
"""

from __future__ import annotations

import sys
from pathlib import Path

# For a Python that has the packages but not Tidetable itself.
sys.path.append(str(Path(__file__).resolve().parents[2]))

from tidetable.cli import app

if __name__ == "__main__":
    app(["update", *sys.argv[1:]])
