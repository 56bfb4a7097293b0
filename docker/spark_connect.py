"""Becomes a Spark Connect server for the other containers; its executors are on the master."""

from __future__ import annotations

import os
from pathlib import Path

from tidetable.engine.session import connect_server_command, connect_server_environment

PORT = 15002


def main() -> None:
    *command, what = connect_server_command(Path(os.environ["TIDETABLE_HOME"]), PORT)
    # Reached through the network of the containers, which has no port to the outside.
    command += ["--conf", "spark.connect.grpc.binding.address=0.0.0.0", what]
    environment = {**os.environ, **connect_server_environment()}
    environment.pop("SPARK_LOCAL_IP")  # executors have to reach this driver
    os.execvpe(command[0], command, environment)


if __name__ == "__main__":
    main()
