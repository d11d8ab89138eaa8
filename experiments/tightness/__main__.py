"""Print the tables of docs/reference/mechanisms.md: python -m experiments.tightness"""

from experiments.runner import run
from experiments.tightness.tables import TABLES

if __name__ == "__main__":
    run(__doc__, TABLES)
