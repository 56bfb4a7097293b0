"""What people are shown on a terminal and in the log of a task."""
