"""How a trial's budget is split between a model of its outcomes and the comparison, and whether the model pays.

All of it reads public numbers alone. Sizes are those of outcomes with standard deviation one and standardised
covariates; what is assumed about the data steers the split, and neither the privacy nor the interval rests on it.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from math import log, sqrt

from counterveil.curator import Kind, Plan
from counterveil.estimators.ate.contrast import contrast_plan, pays
from counterveil.estimators.ate.doubly_robust_plan import Design
from counterveil.privacy import Budget
from counterveil.sensitivity import CentredContrast

# Parts of the model's own budget, by what is released about covariates with outcomes: their cross moments (a line
# along these), or all second moments (a model that knows how covariates go together).
FORMS = {
    "line": {"centre": 25, "norms": 10, "model": 50, "fit": 15},
    "gram": {"centre": 15, "norms": 5, "model": 65, "fit": 15},
}
_PARTS = tuple(Fraction(k, 100) for k in (5, 10, 15, 20, 30, 40))
# Squared length of the outcome in the second moments, beside that of a row of covariates.
OUTCOME_LENGTH = 0.7
# What is assumed: standard deviation of the outcome in parts of its range, share of the smaller arm, squared length
# of standardised rows a feature, bound of the outcome in standard deviations, what one line explains of what all
# covariates do, how much of that a noisy matrix of second moments takes away.
_SPREAD, _SHARE, _LENGTH, _BOUND, _LINE, _BLUR = 0.1, Fraction(2, 5), 1.4, 2.2, 0.85, 1.4
# Parts of the outcome's variance that covariates may explain, all equally likely beforehand.
_EXPLAINED = (0.0, 0.3, 0.9)
# The widest that the interval may become where covariates explain nothing.
_MOST_COST = 1.02
# Part of the spread of a released variance that is added to it, about.
_INFLATION = 0.4
# How far the line's own moments reach, in standard deviations, and how large they have to be beside their noise.
LINE_REACH, LEAST_SIGNAL = 4.0, 2.0


@dataclass(frozen=True, slots=True)
class Numbers:
    """The public numbers of a trial; `features` leaves the constant out."""

    rows: int
    features: int
    budget: Budget
    law: str
    known_share: bool

    def design(self, part: Fraction) -> Design:
        """Return the public numbers of the model, on its part of the budget: Gaussian noise where there is a delta."""
        law = self.law if self.budget.pure else "gaussian"
        return Design(self.rows, self.features, Budget(part * self.budget.epsilon, self.budget.delta), law)


@dataclass(frozen=True, slots=True)
class Split:
    """The model's part of epsilon and its form, and by how much the interval is expected to change."""

    part: Fraction
    form: str
    cost: float  # width beside that of the plain comparison where covariates explain nothing
    gain: float  # mean log of that over what covariates may explain

    @property
    def pays(self) -> bool:
        """Whether the model is expected to shorten intervals and costs little where it does not."""
        return self.cost <= _MOST_COST and self.gain < 0

    def plan(self, numbers: Numbers) -> Plan:
        """Return the plan of all releases."""
        own = FORMS[self.form]
        shares = {name: self.part * Fraction(size, 100) for name, size in own.items()}
        comparison = contrast_plan(numbers.rows, numbers.budget, numbers.law, numbers.known_share)
        left = (1 - self.part) / numbers.budget.epsilon
        shares |= {name: left * amount for name, amount in comparison.amounts}
        pure = {name: Kind.CELLS if name == "norms" else Kind.VECTOR for name in own}
        kinds = pure if numbers.budget.pure else dict.fromkeys(own, Kind.NORMAL)
        return Plan.split(numbers.budget, shares, numbers.law, kinds | dict(comparison.kinds))


def adjustment_pays(numbers: Numbers) -> bool:
    """Return whether a model of the outcomes is expected to shorten the interval of a trial."""
    if not numbers.features or not pays(numbers.rows, numbers.budget, numbers.law):
        return False
    return split(numbers).pays


@lru_cache(maxsize=256)
def split(numbers: Numbers) -> Split:
    """Return the split with the shortest expected interval."""
    found = []
    for part in _PARTS:
        design = numbers.design(part)
        for form in FORMS:
            ratios = [sqrt(_ratio(design, form, part, explained, numbers)) for explained in _EXPLAINED]
            gain = sum(log(ratio) for ratio in ratios) / len(ratios)
            found.append(Split(part, form, ratios[0], gain))
    return min(found, key=lambda one: (not one.pays, one.gain))


def _ratio(design: Design, form: str, part: Fraction, explained: float, numbers: Numbers) -> float:
    """Return the expected squared width beside that of the plain comparison."""
    reached = _reached(design, form, explained)
    # Predictions are cut at about two of their standard deviations, by which the outcome's range becomes longer.
    width = 1 / _SPREAD + 4 * sqrt(reached)
    ours = (1 - reached) + _noise(numbers, 1 - part, width)
    return ours / (1 + _noise(numbers, Fraction(1), 1 / _SPREAD))


def _noise(numbers: Numbers, part: Fraction, width: float) -> float:
    """Return what noise adds to the squared width beside what sampling does, for outcomes of this range."""
    plan = contrast_plan(numbers.rows, numbers.budget, numbers.law, numbers.known_share)
    sampling = float(_SHARE * (1 - _SHARE)) * numbers.rows
    return (
        noise_of_comparison(plan, Fraction(round(1000 * width), 1000) / part, _SHARE, numbers.rows) * sampling
    )


def noise_of_comparison(plan: Plan, width: Fraction, share: Fraction, rows: int) -> float:
    """Return what noise adds to the variance of a comparison of outcomes of this range, its centre in the middle.

    The noise of the released variance lengthens intervals too: by about as much as a part of its spread would.
    """
    sensitivity = CentredContrast(width, rows, share, width / 2)
    second = plan.noise("moment", sensitivity.second_moment / rows)
    return plan.noise("contrast", sensitivity.mean).variance + _INFLATION * sqrt(second.variance)


def _reached(design: Design, form: str, explained: float) -> float:
    """Return the part of the outcome's variance that the noisy model explains, about."""
    if not explained:
        return 0.0
    shares, m = FORMS[form], design.features + 1
    reach, share = 1 + _LENGTH * design.features, shares["model"] / 100
    if form == "line":
        noise = float(design.sd(share, m + 1, 2 * sqrt(reach))) * _BOUND
        whole = _LINE * explained
    else:
        entries = (m + 1) * (m + 2) // 2
        entry = float(design.sd(share, entries, (1 + OUTCOME_LENGTH) * reach))
        noise = entry * _BOUND / sqrt(OUTCOME_LENGTH * reach)
        whole = explained / (1 + _BLUR * m * entry**2)
    found = whole**2 / (whole + m * (noise**2 + 1 / design.rows))
    scale = float(design.sd(shares["fit"] / 100, 6, 3.0)) * LINE_REACH * _BOUND
    return found * max(0.0, 1 - LEAST_SIGNAL**2 * scale**2 / found)
