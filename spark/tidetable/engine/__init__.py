"""What Spark does: reads the source, judges and places rows, writes a commit."""
