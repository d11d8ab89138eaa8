"""What inverse weighting chooses from public numbers alone: penalty, clip, and whether centring pays.

The constants were chosen by `python -m experiments.ipw.tuning`.
"""

from __future__ import annotations

from math import sqrt

from counterveil.estimators.ate.unit_features import UnitFeatures
from counterveil.kernels.gaussian_profile import mu_of
from counterveil.privacy import Budget

# The penalty at which a released logit's noise has about this standard deviation, within the bounds below.
_LOGIT_NOISE = 0.25
_LEAST, _MOST = 1e-3, 0.6
# Clips of scores, and the rows times mu (or epsilon) from which on the wider range pays.
_NARROW, _WIDE, _ENOUGH = 0.2, 0.1, 8000
# Noise of an arm's mean, in half-widths of the outcome's range, beyond which centring does more harm than good.
_MOST_CENTRE_NOISE = 0.2


def chosen_penalty(rows: int, features: UnitFeatures, budget: Budget, law: str) -> float:
    """Return the penalty that balances the noise of the weights against what it takes off the model.

    The noise of a weight has standard deviation 2R/(rows penalty mu), or sqrt(columns) times 1/epsilon in
    place of 1/mu for a pure budget; a row of features is no longer than R.
    """
    reach = sqrt(float(features.squared_reach) + 1)
    amount = _amount(budget, law)
    if law != "gaussian":
        amount /= sqrt(features.columns + 2)
    return min(max(2 * reach * reach / (rows * amount * _LOGIT_NOISE), _LEAST), _MOST)


def chosen_clip(rows: int, budget: Budget, law: str) -> float:
    """Return the clip: narrow ranges of scores mean less noise, wide ones less confounding that is left."""
    return _NARROW if rows * _amount(budget, law) < _ENOUGH else _WIDE


def chosen_form(rows: int, columns: int, part: float, budget: Budget, law: str) -> str:
    """Return "hajek" if released means of arms, half of the rows each, would have little noise, else "ht".

    The totals are released at `part` of the length of a vector with this many columns.
    """
    amount = _amount(budget, law)
    if law != "gaussian":
        amount /= sqrt(columns + 1)
    return "hajek" if 2 / (part * amount) < _MOST_CENTRE_NOISE * rows / 2 else "ht"


def _amount(budget: Budget, law: str) -> float:
    return float(mu_of(budget.epsilon, budget.delta)) if law == "gaussian" else float(budget.epsilon)
