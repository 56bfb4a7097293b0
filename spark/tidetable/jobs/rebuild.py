"""spark-submit entry point: `spark-submit .../tidetable/jobs/rebuild.py INDEX [--json]`.

The same as the command `tidetable rebuild`, with the master and the settings of whoever submits.
"""

from __future__ import annotations

import sys
from pathlib import Path

# For a Python that has the packages but not Tidetable itself.
sys.path.append(str(Path(__file__).resolve().parents[2]))

from tidetable.cli import app

if __name__ == "__main__":
    app(["rebuild", *sys.argv[1:]])
