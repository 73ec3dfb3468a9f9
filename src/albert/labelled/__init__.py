"""From people's files to a task and its examples."""
