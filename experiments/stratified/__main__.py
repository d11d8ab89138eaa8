"""Strata of private records: noise, coverage beside other forms, and small studies.

`python -m experiments.stratified` prints three tables; `small` needs COUNTERVEIL_DATA.
"""

from __future__ import annotations

from experiments.runner import run
from experiments.stratified import coverage, noise, small_studies

TABLES = {"noise": noise.TABLE, "coverage": coverage.TABLE, "small": small_studies.TABLE}

if __name__ == "__main__":
    run(__doc__, TABLES)
