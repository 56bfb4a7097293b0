"""The log of a table, without a JVM: where an index stands, what it holds, its upkeep."""
