"""One module or folder for each paper: its figures as cells that can be run, and its claims with verdicts."""
