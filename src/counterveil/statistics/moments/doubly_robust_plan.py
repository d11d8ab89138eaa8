"""Whether adjustment is affordable and how the budget is split: functions of public numbers alone.

Sizes are those of outcomes with standard deviation one and standardised covariates. The figures assumed
about the data (`_BETA` and the like) steer the split; the privacy and the interval do not rest on them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from math import sqrt

import numpy as np

from counterveil.numerics.arrays import Floats
from counterveil.numerics.public_choices import LEAST_SHARE, LEFT_OF_TREATMENT
from counterveil.privacy import Budget
from counterveil.privacy.caveats import ConfoundingBeyond, NotAdjusted, confounding
from counterveil.results.result import Result
from counterveil.session import Kind, Plan

# Numbers of this module that are choices, and not derived, were set on the tuning seeds of
# `experiments/record_effect/NOTES.md`.
# Squared lengths of standardised rows are about this many times the number of features.
_LENGTH = 1.5
# What is assumed about the data when shares are compared: squared length of the outcome's coefficients and of
# the treatment's, residual variance of the treatment, standard deviation of the (clipped) outcome beside its bound.
_BETA, _GAMMA, _LEFT, _BOUND_T, _BOUND_Y = 0.5, 0.08, 0.18, 0.55, 2.2
# Part of the Gram's squared noise that is left in it after the noise is taken out.
_GRAM_LEFT = 0.1
_RESIDUALS = (0.01, 0.1, 0.5)
# Adjustment is affordable where the noise of the Gram has an operator norm below these.
MOST_NOISE = {"gaussian": 1.6, "pure": 1.2}
# Entries of the largest Gram that is released.
MOST_ENTRIES = 10_000
# Expected widths: clip of scores in standard deviations, their part of the budget, and what the Gram's noise adds
# beside sampling, measured by `python -m experiments.record_effect.budgets`.
_SCORE_REACH, _SCORE_SHARE, _MODELS = 4.0, 0.25, 3.6
# With public correlations: where the noise of the treatment model's coefficients is shorter than this.
_MOST_LENGTH = 0.25


@dataclass(frozen=True, slots=True)
class Design:
    """The public numbers that the split depends on; `features` leaves the constant out."""

    rows: int
    features: int
    budget: Budget
    mechanism: str
    known_covariance: bool = False
    known_location: bool = False

    @property
    def pure(self) -> bool:
        """Whether noise comes from the l2 ball rather than from the Gaussian mechanism."""
        return self.mechanism != "gaussian"

    @property
    def drawn(self) -> str:
        """The noise of vectors; counts have Laplace noise where it is pure."""
        return "ball" if self.pure else self.mechanism

    @property
    def fits(self) -> bool:
        """Whether one release holds all second moments."""
        return (self.features + 3) * (self.features + 4) // 2 <= MOST_ENTRIES

    @property
    def strength(self) -> float:
        """Rows times mu, or rows times epsilon."""
        whole = Plan.split(self.budget, {"all": Fraction(1)}, self.mechanism).amount("all")
        return self.rows * float(whole)

    def sd(self, share: Floats | float, coordinates: int, sensitivity: Floats | float) -> Floats:
        """Return the noise of one coordinate of a mean, for a share of the budget; sensitivity of the sum."""
        if self.pure:
            return np.asarray(sensitivity * sqrt(coordinates + 1) / (share * self.strength))
        return np.asarray(sensitivity / (np.sqrt(share) * self.strength))

    def gram_noise(self, share: Floats | float, squared_reach: Floats | float) -> Floats:
        """Return the noise of one entry off the diagonal of the Gram."""
        m = self.features + 3
        return self.sd(share, m * (m + 1) // 2, squared_reach)


@dataclass(frozen=True, slots=True)
class Split:
    """Shares of the budget by release, and the squared lengths of treatment and outcome beside a row's."""

    shares: tuple[tuple[str, Fraction], ...]
    treatment: float
    outcome: float

    def plan(self, budget: Budget, mechanism: str) -> Plan:
        """Return the plan of the releases."""
        kinds = dict.fromkeys(dict(self.shares), Kind.VECTOR)
        if mechanism != "gaussian":
            kinds["norms"] = Kind.CELLS
        return Plan.split(budget, dict(self.shares), mechanism, kinds)

    @property
    def residual_passes(self) -> int:
        """How many times moments of residuals are released."""
        return sum(name.startswith("residual") for name, _ in self.shares)


def clip_reach(noise: Floats | float) -> Floats:
    """Return where the score is clipped, in its standard deviations; `noise` is the noise of the mean of a score
    clipped at one of them, beside the sampling error.

    Clipping nearer adds a little bias and takes much noise away where there is much of it.
    """
    return np.asarray(np.where(np.asarray(noise) > 0.75, 2.5, np.where(np.asarray(noise) > 0.25, 3.0, 4.0)))


def gram_index(design: Design) -> float:
    """Return the operator norm of the Gram's noise at three quarters (half, for pure budgets) of the budget."""
    reach = 1.8 if not design.pure else 1.0 + 1.2 / _LENGTH
    share = 0.5 if design.pure else 0.75
    noise = float(design.gram_noise(share, reach * (1 + _LENGTH * design.features)))
    return 2 * sqrt(design.features + 1) * noise


def affordable(design: Design) -> bool:
    """Whether the public numbers afford adjustment."""
    if not design.fits:
        return False
    if design.known_covariance:
        m = design.features + 1
        reach = 1 + _LENGTH * design.features
        noise = design.sd(0.4, 2 * m + 2, 2 * sqrt(1.5 * reach)) * _BOUND_T
        return float(noise) * sqrt(m) <= _MOST_LENGTH
    return gram_index(design) <= MOST_NOISE["pure" if design.pure else "gaussian"]


def fewest_rows(design: Design, rule: Callable[[Design], bool] = affordable) -> int:
    """Return the number of rows from which adjustment would be affordable by a rule, for features that fit."""
    low, high = 1, 2
    while not rule(_at(design, high)):
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if rule(_at(design, middle)) else (middle, high)
    return high


def _at(design: Design, rows: int) -> Design:
    return replace(design, rows=rows)


def overlap_width(design: Design) -> float:
    """Return about how many times wider the interval of the overlap-weighted effect is than one without privacy.

    Noise of the Gram enters through every feature. A larger epsilon or delta never makes it wider for the same
    features and mechanism.
    """
    noise = _SCORE_REACH * float(design.sd(_SCORE_SHARE, 3, 2.1)) * sqrt(design.rows)
    models = _MODELS * sqrt(design.features + 1) * gram_index(design)
    return sqrt(1 + noise**2 + models**2)


@lru_cache(maxsize=256)
def split(design: Design) -> Split:
    """Return the split with the least expected error, averaged over how much of the outcome is noise."""
    centre = 12 if design.pure else 3 if design.known_location else 15 if design.known_covariance else 6
    first = {"centre": Fraction(centre, 100), "norms": Fraction(5 if design.pure else 2, 100)}
    rest = 1 - sum(first.values(), Fraction(0))
    percent = np.arange(5, 75, 5)
    score, residual = (grid.ravel() for grid in np.meshgrid(percent, np.arange(0, 65, 5), indexing="ij"))
    keep = score + residual <= 100 * float(rest) - 15
    lengths = np.geomspace(0.05, 1.5, 8)
    best: tuple[float, Split] | None = None
    for passes in (0, 1, 2):
        chosen = keep & ((residual == 0) == (passes == 0))
        s, r = score[chosen][:, None, None] / 100, residual[chosen][:, None, None] / 100
        errors = _expected(design, float(rest), s, r, passes, lengths[:, None], lengths)
        place = np.unravel_index(int(np.argmin(errors)), errors.shape)
        value = float(errors[place])
        if best is None or value < best[0]:
            f2, fr = (
                Fraction(int(score[chosen][place[0]]), 100),
                Fraction(int(residual[chosen][place[0]]), 100),
            )
            shares = first | {"gram": rest - f2 - fr}
            shares |= {f"residual {k + 1}": fr / passes for k in range(passes)}
            shares |= {"first_pass": f2 / 5, "score": 4 * f2 / 5}
            best = value, Split(tuple(shares.items()), float(lengths[place[1]]), float(lengths[place[2]]))
    assert best is not None
    return best[1]


def _expected(
    design: Design, rest: float, score: Floats, residual: Floats, passes: int, a: Floats, b: Floats
) -> Floats:
    """Return the mean log of the expected squared error, for arrays of shares and of lengths a and b."""
    m = design.features + 1
    reach = 1 + _LENGTH * design.features
    if design.known_covariance:
        noise = design.sd(rest - score - residual, 2 * m + 2, 2.2 * np.sqrt(reach * (a + b)))
        t_noise, y_noise, entry = noise * _BOUND_T / np.sqrt(a), noise * _BOUND_Y / np.sqrt(b), 0.0 * noise
    else:
        entry = design.gram_noise(rest - score - residual, reach * (1 + a + b))
        t_noise, y_noise = entry * _BOUND_T / np.sqrt(a * reach), entry * _BOUND_Y / np.sqrt(b * reach)
    total: Floats = np.zeros(())
    for left in _RESIDUALS:
        error = _BETA * m * y_noise**2 / (_BETA + m * y_noise**2)
        bias = _GRAM_LEFT * m * entry**2 * sqrt(_BETA * _GAMMA)
        for _ in range(passes):
            clip = 3.5 * np.sqrt(left + error)
            noise = design.sd(residual / passes, m + 1, 2 * sqrt(reach)) * clip
            error = error * m * noise**2 / (error + m * noise**2)
            bias = bias * np.minimum(1.0, 0.1 + 0.7 * entry * sqrt(_GRAM_LEFT * m))
        variance = _LEFT * (left + error)
        unit = design.sd(0.8 * score, 3, 2.1)
        last = clip_reach(unit * sqrt(design.rows)) * np.sqrt(variance) * unit
        squared = t_noise**2 * error + last**2 + variance / design.rows + bias**2
        total = total + np.log(squared)
    return total


# A declared bound on confounding: what an interval that adjusts for little or nothing is widened by.


def inner_share(share: float) -> float:
    """Return a share treated, away from 0 and 1."""
    return min(max(share, float(LEAST_SHARE)), 1 - float(LEAST_SHARE))


def bounded(plain: Result, kappa: float, sd: float, share: float, condition: NotAdjusted) -> Result:
    """Return a comparison with kappa sd(y) / (0.75 sd(t)) added at both ends of its interval.

    `sd` stands for sd(y) and `share` for the share treated; both come from released numbers, so that what
    is added costs nothing.
    """
    bound = kappa * sd / (LEFT_OF_TREATMENT * sqrt(share * (1 - share)))
    details: dict[str, float | str] = {"adjusted": False, "kappa": kappa, "confounding_bound": bound}
    return replace(
        plain,
        uncertainty=replace(plain.uncertainty, bias=bound),
        not_covered=(
            ConfoundingBeyond(kappa),
            *(one for one in plain.not_covered if not confounding([one])),
        ),
        details=details | plain.details,
        interval_of=None,
        condition=condition,
    )
