"""Print the grid from which the default settings were chosen: `python -m experiments.weighting_tuning.tune`.

Only the tuning instances are read.
"""

from __future__ import annotations

from counterveil.estimators.linear.kernels.balancing import WeightSettings
from counterveil.estimators.linear.kernels.weight_features import FeatureShares
from experiments.weighting_tuning.comparison import balanced, print_row, ratio_row
from experiments.weighting_tuning.instances import TUNING

EPSILONS = (0.5, 1.0, 2.0, 4.0)
SHARES = {
    "linear only": FeatureShares(1.0, 0.0, 0.0),
    "linear .65, score .02, strata .33": FeatureShares(0.65, 0.0, 0.02, 0.33),
    "linear 1, score .1": FeatureShares(1.0, 0.0, 0.1),
    "linear .7, squares .3": FeatureShares(0.7, 0.3, 0.0),
    "linear .7, squares .3, score .05": FeatureShares(0.7, 0.3, 0.05),
    "linear .7, squares .3, score .1": FeatureShares(0.7, 0.3, 0.1),
    "linear .7, squares .3, score .2": FeatureShares(0.7, 0.3, 0.2),
    "linear .5, squares .5, score .1": FeatureShares(0.5, 0.5, 0.1),
    "linear .9, squares .1, score .1": FeatureShares(0.9, 0.1, 0.1),
    "linear .7, squares .3, score .1, strata .1": FeatureShares(0.7, 0.3, 0.1, 0.1),
}
SPREADS = [(s, r) for s in (1 / 32, 1 / 16, 1 / 8) for r in (1 / 32, 1 / 16, 1 / 8)]


def show(label: str, settings: WeightSettings, shares: FeatureShares) -> None:
    print(label)
    for group, names in TUNING.items():
        for near in (True, False):
            rows = ratio_row(
                names, lambda i, e, near=near: balanced(i, e, near, settings, shares), EPSILONS
            )  # fmt: skip
            print_row(f"{group}, {'near matching' if near else 'population balance'}", rows[0] + rows[1])


def main() -> None:
    print(
        "Errors over those of two Laplace draws. Columns: epsilon .5, 1, 2, 4 against matching, then the truth"
    )
    for label, shares in SHARES.items():
        show(label, WeightSettings(1 / 16, 1 / 16), shares)
    for signal, residual in SPREADS:
        show(
            f"signal {signal:.4f}, residual {residual:.4f}", WeightSettings(signal, residual), FeatureShares()
        )


if __name__ == "__main__":
    main()
