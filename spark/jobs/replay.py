"""spark-submit entry point: `spark-submit spark/jobs/replay.py INDEX --from J [--json]`.

The same as the command `tidetable replay`, with the master and the settings of whoever submits.
"""

from __future__ import annotations

import sys

from tidetable.cli import app

if __name__ == "__main__":
    app(["replay", *sys.argv[1:]])
