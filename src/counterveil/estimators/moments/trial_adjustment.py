"""Whether a model of a trial's outcomes is worth its price, and how the budget is split for it.

All of it reads public numbers alone. Sizes are those of outcomes with standard deviation one and standardised
covariates. With R the part of the outcome's variance that a noisy model explains, and N what noise adds to
the squared width of an interval beside what sampling does, the squared width beside that of the plain
comparison is

    ((1 - R) + N(range longer by the cut predictions)) / (1 + N(range)).

What is assumed about the data steers the split; neither the privacy nor the interval rests on it. The numbers
of this rule were chosen on seeds below 10 of `python -m experiments.every_method.trials`.

In: rows, features, epsilon and delta. Out: a `Split`, the part of epsilon for the model, its form and the
expected change of the width. Nothing is released here: each split is private, as the budgets of the
model and of the comparison add up.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from math import log, sqrt

from counterveil.estimators.moments.adjustment_budget import Design
from counterveil.estimators.moments.contrast import ARMS, is_worthwhile, plan_of
from counterveil.privacy import Budget
from counterveil.rows.moments.centred_contrast import CentredContrast
from counterveil.session import Kind, Plan

# Parts of the model's own budget, by what is released about covariates with outcomes: their cross moments (a line
# along these), or all second moments (a model that knows how covariates go together).
FORMS = {
    "line": {"centre": 25, "norms": 10, "model": 50, "fit": 15},
    "gram": {"centre": 15, "norms": 5, "model": 65, "fit": 15},
}
# Parts of epsilon that the model may have.
_PARTS = tuple(Fraction(k, 100) for k in (5, 10, 15, 20, 30, 40))
# Squared length of the outcome in the second moments, beside that of a row of covariates.
OUTCOME_LENGTH = 0.7
# What is assumed: standard deviation of the outcome in parts of its range, and the share of the smaller arm.
_SD = 0.1
_SHARE = Fraction(2, 5)
# Squared length of standardised rows a feature, and the bound of the outcome in standard deviations.
_LENGTH = 1.4
_BOUND = 2.2
# What one line explains of what all covariates do, and how much of that a noisy matrix of second moments takes away.
_LINE = 0.85
_BLUR = 1.4
# Predictions are cut at about two of their standard deviations, at both ends of the outcome's range.
_LONGER = 4
# Parts of the outcome's variance that covariates may explain, all equally likely beforehand.
_EXPLAINED = (0.0, 0.3, 0.9)
# The widest that the interval may become where covariates explain nothing.
_MOST_COST = 1.02
# Part of the standard deviation of a released variance that is added to it, about.
_INFLATION = 0.4
# Where the line's own moments are clipped, in standard deviations, and how large they have to be beside their noise.
LINE_CLIP_SDS = 4.0
LEAST_SIGNAL = 2.0


@dataclass(frozen=True, slots=True)
class TrialNumbers:
    """The public numbers of a trial; `features` leaves the constant out."""

    rows: int
    features: int
    budget: Budget
    mechanism: str

    def design(self, part: Fraction) -> Design:
        """Return the public numbers of the model, on its part of the budget: Gaussian noise where there is a delta."""
        mechanism = self.mechanism if self.budget.pure else "gaussian"
        return Design(
            self.rows, self.features, Budget(part * self.budget.epsilon, self.budget.delta), mechanism
        )


@dataclass(frozen=True, slots=True)
class Split:
    """The model's part of epsilon and its form, and by how much the interval is expected to change.

    Attributes
    ----------
    part : Fraction
        The model's part of epsilon.
    form : str
        A key of `FORMS`.
    cost : float
        Width beside that of the plain comparison where covariates explain nothing.
    gain : float
        Mean logarithm of that width over what covariates may explain.
    """

    part: Fraction
    form: str
    cost: float
    gain: float

    @property
    def is_worthwhile(self) -> bool:
        """Whether the model is expected to shorten intervals and costs little where it does not."""
        return self.cost <= _MOST_COST and self.gain < 0

    def plan(self, numbers: TrialNumbers) -> Plan:
        """Return the plan of all releases."""
        form = FORMS[self.form]
        shares = {name: self.part * Fraction(size, 100) for name, size in form.items()}
        comparison = plan_of(ARMS, numbers.rows, numbers.budget, numbers.mechanism)
        amount_left = (1 - self.part) / numbers.budget.epsilon
        shares |= {name: amount_left * amount for name, amount in comparison.amounts}
        pure = {name: Kind.CELLS if name == "norms" else Kind.VECTOR for name in form}
        kinds = pure if numbers.budget.pure else dict.fromkeys(form, Kind.NORMAL)
        return Plan.split(numbers.budget, shares, numbers.mechanism, kinds | dict(comparison.kinds))


def adjustment_is_worthwhile(numbers: TrialNumbers) -> bool:
    """Return whether a model of the outcomes is expected to shorten the interval of a trial."""
    if not numbers.features or not is_worthwhile(numbers.rows, numbers.budget, numbers.mechanism):
        return False
    return split(numbers).is_worthwhile


@lru_cache(maxsize=256)
def split(numbers: TrialNumbers) -> Split:
    """Return the split with the shortest expected interval."""
    splits = []
    for part in _PARTS:
        design = numbers.design(part)
        for form in FORMS:
            ratios = [
                sqrt(_ratio(design, form, part, explained=explained, numbers=numbers))
                for explained in _EXPLAINED
            ]
            gain = sum(log(ratio) for ratio in ratios) / len(ratios)
            splits.append(Split(part, form, ratios[0], gain))
    return min(splits, key=lambda candidate: (not candidate.is_worthwhile, candidate.gain))


def _ratio(design: Design, form: str, part: Fraction, explained: float, numbers: TrialNumbers) -> float:
    """Return the expected squared width beside that of the plain comparison."""
    reached = _reached(design, form, explained)
    width = 1 / _SD + _LONGER * sqrt(reached)
    adjusted = (1 - reached) + _noise(numbers, 1 - part, width)
    return adjusted / (1 + _noise(numbers, Fraction(1), 1 / _SD))


def _noise(numbers: TrialNumbers, part: Fraction, width: float) -> float:
    """Return what noise adds to the squared width beside what sampling does, for outcomes of this range."""
    plan = plan_of(ARMS, numbers.rows, numbers.budget, numbers.mechanism)
    sampling = float(_SHARE * (1 - _SHARE)) * numbers.rows
    return (
        noise_of_comparison(plan, Fraction(round(1000 * width), 1000) / part, _SHARE, numbers.rows) * sampling
    )


def noise_of_comparison(plan: Plan, width: Fraction, share: Fraction, rows: int) -> float:
    """Return what noise adds to the variance of a comparison of outcomes of this range, its centre in the middle.

    The noise of the released variance lengthens intervals too, by about as much as part of its standard deviation.
    """
    bounds = CentredContrast(width, rows, share, width / 2)
    second = plan.noise("moment", bounds.second_moment / rows)
    return plan.noise("contrast", bounds.mean).variance + _INFLATION * sqrt(second.variance)


def _reached(design: Design, form: str, explained: float) -> float:
    """Return the part of the outcome's variance that the noisy model explains, about.

    With e the part that the model would explain without noise and m coefficients, each with noise s, it is
    e^2 / (e + m (s^2 + 1 / n)); of that the line's own moments leave what stands out of their noise.
    """
    if not explained:
        return 0.0
    shares = FORMS[form]
    m = design.features + 1
    squared_norm = 1 + _LENGTH * design.features
    share = shares["model"] / 100
    if form == "line":
        noise = float(design.sd(share, m + 1, 2 * sqrt(squared_norm))) * _BOUND
        model_part = _LINE * explained
    else:
        entries = (m + 1) * (m + 2) // 2
        entry = float(design.sd(share, entries, (1 + OUTCOME_LENGTH) * squared_norm))
        noise = entry * _BOUND / sqrt(OUTCOME_LENGTH * squared_norm)
        model_part = explained / (1 + _BLUR * m * entry**2)
    explained_part = model_part**2 / (model_part + m * (noise**2 + 1 / design.rows))
    scale = float(design.sd(shares["fit"] / 100, 6, 3.0)) * LINE_CLIP_SDS * _BOUND
    return explained_part * max(0.0, 1 - LEAST_SIGNAL**2 * scale**2 / explained_part)
