"""What Spark does: reads the source, judges and places rows, writes a commit."""

from tidetable.core.extras import require

require("pyspark", "Reading the source and updating a table")
