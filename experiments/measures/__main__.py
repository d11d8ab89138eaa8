"""Coverage of effect measures and of several outcomes.

`python -m experiments.measures` prints the tables with 200 draws a row; `whole` has all cells of `ratios`, and `shop`
answers of one request.
"""

from __future__ import annotations

from experiments.measures import adjusted, federated, outcomes, pooled, ratios, shop, strata
from experiments.runner import run

TABLES = {
    "noise": outcomes.NOISE,
    **ratios.TABLES,
    "strata": strata.TABLE,
    "adjusted": adjusted.TABLE,
    "pooled": pooled.TABLE,
    "federated": federated.TABLE,
    "outcomes": outcomes.TABLE,
    "shop": shop.TABLE,
}

if __name__ == "__main__":
    run(__doc__, TABLES)
