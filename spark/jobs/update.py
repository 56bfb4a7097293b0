"""spark-submit entry point: `spark-submit spark/jobs/update.py INDEX [--until TIME] [--json]`.

The same as the command `tidetable update`, with the master and the settings of whoever submits.
"""

from __future__ import annotations

import sys

from tidetable.cli import app

if __name__ == "__main__":
    app(["update", *sys.argv[1:]])
