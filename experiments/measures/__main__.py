"""Coverage of effect measures and of several outcomes.

`python -m experiments.measures` prints the tables; `--draws` changes the number of draws a row, `--only` names one
table, `--whole` prints all cells of the first.
"""

from __future__ import annotations

import argparse

from experiments.measures.adjusted import coverage as adjusted_coverage
from experiments.measures.federated import coverage as federated_coverage
from experiments.measures.outcomes import coverage as outcome_coverage
from experiments.measures.outcomes import noise
from experiments.measures.pooled import coverage as pooled_coverage
from experiments.measures.ratios import again, coverage
from experiments.measures.shop import shop
from experiments.measures.strata import coverage as strata_coverage


def main() -> None:
    """Print the tables that were asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--draws", type=int, default=200)
    parser.add_argument(
        "--only",
        choices=["noise", "ratios", "again", "strata", "adjusted", "pooled", "federated", "outcomes", "shop"],
    )
    parser.add_argument("--whole", action="store_true")
    given = parser.parse_args()
    tables = {
        "noise": noise(),
        "ratios": coverage(given.draws, given.whole),
        "again": again(given.draws),
        "strata": strata_coverage(given.draws),
        "adjusted": adjusted_coverage(given.draws),
        "pooled": pooled_coverage(given.draws),
        "federated": federated_coverage(given.draws),
        "outcomes": outcome_coverage(given.draws),
        "shop": shop(),
    }
    for name, lines in tables.items():
        if given.only in (None, name):
            for line in lines:
                print(line, flush=True)
            print()


if __name__ == "__main__":
    main()
