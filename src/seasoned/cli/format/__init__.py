"""Text formats of the command line: tables, numbers, sizes, times, feedback."""
