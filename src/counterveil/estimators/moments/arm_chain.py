"""The chain of releases of moments by arm: its budget, what it affords and how long its interval will be.

Public numbers alone. The chain releases, in this order,

    centre      means and mean squares of numbers, and the share treated,
    features    the same of all features, numbers being rescaled to windows around their means,
    place 1, 2  two histograms of outcomes,
    norms       a histogram of the lengths of rows,
    gram        second moments of features and outcome by arm,
    residual    products of features and residuals by arm, in two passes,
    sizes       a histogram of the sizes of scores,
    score       the mean of scores and of their squares; of means of arms, counts, sums and squares by arm.

The constants were set on the tuning designs of `experiments/record_effect/RESULTS.md`; privacy does not
depend on them.

A chain is a sequence of releases, each computed with what those before it released, whose budgets add up
(adaptive composition). Proofs of its steps: `rows/moments/arm_grams.proof.md` (moments, residuals, scores)
and `rows/histogram.proof.md` (histograms). In: numbers of rows, features and arms, budget, mechanism. Out: the
part of the budget of each release, the expected noise of the moments (a norm beside standardised features),
and the expected width of the interval beside one without privacy, by which methods are compared: a heuristic
that steers choices and promises nothing. A window is an interval of a covariate that is stretched to [-1,
1].
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import inf, sqrt

from counterveil.estimators.moments.adjustment_budget import Design
from counterveil.estimators.moments.outcome_location import HISTOGRAMS as PLACES
from counterveil.estimators.moments.scaling import RowLimit
from counterveil.numerics.products import FeatureMap
from counterveil.privacy import Budget
from counterveil.session import Kind, Plan

# Parts of the budget, in thousandths: of mu squared for Gaussian noise, and of epsilon for pure budgets,
# which pay for every entry of the Grams and have noisier counts for the same part.
_SHARES = {
    "centre": (20, 30),
    "features": (30, 30),
    PLACES[0]: (15, 30),
    PLACES[1]: (45, 60),
    "norms": (20, 15),
    "gram": (390, 420),
    "residual 1": (120, 100),
    "residual 2": (120, 100),
    "sizes": (30, 40),
    "score": (210, 175),
}
# Names of the passes over residuals.
RESIDUAL_PASSES = ("residual 1", "residual 2")
_HISTOGRAMS = (*PLACES, "norms", "sizes")
# Cells of a histogram of outcomes, at least and at most.
_CELLS = (8, 32)
# Between these, so many that an average cell holds this many times the noise of its count.
_CELL_NOISE = 6.0
# Part of the budget at which the noise of the Grams is judged.
_JUDGED_SHARE = 0.75
# How rows are limited, from much noise of the Grams to none.
_ROW_LIMITS = (
    RowLimit(least_noise=0.5, clip=2.0, shortened=0.1),
    RowLimit(least_noise=0.25, clip=2.0, shortened=0.03),
    RowLimit(least_noise=0.1, clip=2.5, shortened=0.005),
    RowLimit(least_noise=0.03, clip=3.0, shortened=0.001),
    RowLimit(least_noise=0.0, clip=4.0, shortened=0.0003),
)
# Squared length of a row for each feature, at most,
_LONGEST = 3.0
# and at most this where the noise norm is no more than `_LITTLE_NOISE`.
_LONGEST_OF_ALL = 16.0
_LITTLE_NOISE = 0.1
# What the variance of the product of errors is multiplied by: where there is little noise, and where much,
_INFLATION = (2.5, 4.5)
# that is below the first and above the second of these noise norms.
_NOISY = (0.5, 1.0)
# That holds where covariates explain this part of the outcome or more;
_EXPLAINED = 0.5
# where they explain nothing, this is the factor.
_LEAST_INFLATION = 1.3
# Noise of the l2 ball has no normal tails: the variance of its products is multiplied by this besides,
_PURE_INFLATION = 3.0
# and these noise norms take the place of `_NOISY`.
_NOISY_BALL = (0.1, 0.3)
# The least part of the shared error that is left from the first noise norm of `_NOISY` on.
_SHARED = 0.3
# Squared length of the constant in a row of the Grams, beside that of the covariates.
CONSTANT_LENGTH = 0.7
# The same of the outcome.
OUTCOME_LENGTH = 0.3
# Squared lengths of standardised rows are about this many times the number of features.
_LENGTH = 1.5
# Clip of scores that expected widths are computed for, in standard deviations of the scores.
SCORE_CLIP_SDS = 4.0
# What a noise norm of one of the Grams adds to an expected width, in standard errors of sampling.
_MODELS = 8.0
# Adjustment is affordable where the noise norm of the Grams is below these.
_MOST_NOISE = {"gaussian": 1.25, "pure": 0.35}
# The richest features are taken whose expected length is within this factor of the shortest,
_WITHIN = 1.25
# and no longer than smaller budgets would have it, unless it is within this factor of no noise.
_HARDLY = 1.02
# Sets with more features are not considered.
_MOST_FEATURES = 120


@dataclass(frozen=True, slots=True)
class ArmDesign:
    """The public numbers that the chain of releases depends on.

    Attributes
    ----------
    design : Design
        Rows, features, budget, mechanism and number of arms.
    searched : bool
        Whether the outcomes' location is looked for; otherwise they lie at both ends of their range.
    means : bool
        Whether the means of all arms are wanted, rather than an effect.
    """

    design: Design
    searched: bool = True
    means: bool = False

    @property
    def pure(self) -> bool:
        """Whether noise comes from the l2 ball rather than from the Gaussian mechanism."""
        return self.design.pure

    @property
    def shares(self) -> dict[str, Fraction]:
        """Parts of the budget by release; what no search costs goes to the score."""
        column = int(self.pure)
        thousandths = {name: both[column] for name, both in _SHARES.items()}
        if not self.searched:
            thousandths["score"] += sum(thousandths.pop(name) for name in PLACES)
        return {name: Fraction(share, 1000) for name, share in thousandths.items()}

    @property
    def histograms(self) -> tuple[str, ...]:
        """The releases that are counts."""
        # Means have counts, sums and squares of scores by arm.
        counted = (*_HISTOGRAMS, *(["score"] if self.means else []))
        shares = self.shares
        return tuple(name for name in counted if name in shares)

    @property
    def place_cells(self) -> int:
        """Cells of a histogram of outcomes: so many that an average one stands out of its noise."""
        amount = self.design.strength / self.design.rows
        share = float(self.shares[PLACES[0]])
        sd = sqrt(8) / (share * amount) if self.pure else sqrt(2 / share) / amount
        return int(min(max(self.design.rows / (_CELL_NOISE * sd), _CELLS[0]), _CELLS[1]))

    @property
    def noise_norm(self) -> float:
        """The operator norm of the noise of one Gram of both arms at three quarters of the budget.

        That of an arm is divided by its share, which several arms make smaller.
        """
        m = self.design.features + 2
        arms = self.design.arms
        squared_norm = (1 + CONSTANT_LENGTH + OUTCOME_LENGTH) * _LENGTH * self.design.features
        noise = float(self.design.sd(_JUDGED_SHARE, arms * m * (m + 1) // 2, squared_norm))
        return sqrt(self.design.features + 1) * noise * arms

    @property
    def limit(self) -> float:
        """Where coordinates are clipped."""
        return self._row_limit.clip

    @property
    def shortened(self) -> float:
        """The share of the rows that is shortened."""
        return self._row_limit.shortened

    @property
    def _row_limit(self) -> RowLimit:
        noise_norm = self.noise_norm
        return next(limit for limit in _ROW_LIMITS if noise_norm >= limit.least_noise)

    @property
    def longest(self) -> float:
        """The largest squared length of a row for each feature."""
        return _LONGEST if self.noise_norm > _LITTLE_NOISE else _LONGEST_OF_ALL

    def inflation(self, explained: float) -> float:
        """Return what the variance of the product of errors is multiplied by.

        It is more where noise is so large that it skews, and where covariates explain much of the outcome, of
        whose variance `explained` is a part.
        """
        least, most = _INFLATION
        low, high = _NOISY_BALL if self.pure else _NOISY
        noisiness = (self.noise_norm - low) / (high - low)
        most = least + (most - least) * min(max(noisiness, 0.0), 1.0)
        inflation = _LEAST_INFLATION + (most - _LEAST_INFLATION) * min(max(explained, 0.0) / _EXPLAINED, 1.0)
        return (_PURE_INFLATION if self.pure else 1.0) * inflation

    @property
    def shared(self) -> float:
        """The least part of the shared error of weights and lines that residuals are taken to leave."""
        return _SHARED * min(self.noise_norm / _NOISY[0], 1.0)

    @property
    def score_unit(self) -> float:
        """The noise of a mean score that is clipped at one."""
        # l2-ball noise grows with the number of coordinates: two sums, three with means.
        coordinates = 3 if self.means else 2
        return float(self.design.sd(float(self.shares["score"]), coordinates, 2.0))

    def plan(self) -> Plan:
        """Return the plan of the releases."""
        kinds = dict.fromkeys(self.shares, Kind.VECTOR)
        if self.pure:
            kinds |= dict.fromkeys(self.histograms, Kind.CELLS)
        return Plan.split(self.design.budget, self.shares, self.design.mechanism, kinds)


def arms_affordable(design: Design) -> bool:
    """Whether the public numbers afford moments by arm."""
    chain = ArmDesign(design)
    return design.fits and chain.noise_norm <= _MOST_NOISE["pure" if chain.pure else "gaussian"]


def expected_width(design: Design) -> float:
    """Return about how many times wider the interval is than one without privacy.

    Sampling counts as one; scores are clipped at about four of their standard deviations. A larger epsilon or
    delta never makes it wider for the same features and mechanism: it falls with what all of the budget is in
    noise.
    """
    chain = ArmDesign(design)
    noise = SCORE_CLIP_SDS * chain.score_unit * sqrt(design.rows)
    return sqrt(1 + noise**2 + (_MODELS * chain.noise_norm) ** 2)


@dataclass(frozen=True, slots=True)
class Spending:
    """What an interval is bought with.

    Attributes
    ----------
    features : FeatureMap
        What is adjusted for.
    design : Design
        Public numbers of the releases.
    length : float
        About how long the interval is expected to be beside one without privacy; infinite where it is not
        affordable.
    """

    features: FeatureMap
    design: Design
    length: float


def shortest(
    feature_maps: Sequence[FeatureMap],
    rows: int,
    budget: Budget,
    mechanisms: Sequence[str],
    rule: Callable[[Design], bool] = arms_affordable,
    width: Callable[[Design], float] = expected_width,
    arms: int = 2,
) -> Spending:
    """Return the richest features whose interval is expected to be within a quarter of the shortest.

    Every set that the `rule` affords is compared with every mechanism. Unless there is hardly any noise, none
    is taken that is longer than what half of epsilon, or the mechanisms after the first, which need no delta,
    would take.

    Parameters
    ----------
    feature_maps : sequence of FeatureMap
        What may be adjusted for.
    rows, budget : int, Budget
        Number of rows, and what is spent.
    mechanisms : sequence of str
        Noise that may be used.
    rule, width : callable
        Whether a design is affordable, and about how wide its interval is beside one without privacy.
    arms : int
        Number of arms.
    """
    candidates = []
    for features in feature_maps:
        for mechanism in mechanisms:
            design = Design(rows=rows, features=features.size, budget=budget, mechanism=mechanism, arms=arms)
            affordable = features.size <= _MOST_FEATURES and rule(design)
            candidates.append(Spending(features, design, width(design) if affordable else inf))
    least = min(spending.length for spending in candidates)
    if least == inf:
        return candidates[0]
    most = _WITHIN * least
    if any(max(least, _HARDLY) < spending.length <= most for spending in candidates):
        smaller = [(Budget(budget.epsilon / 2, budget.delta), mechanisms), (budget, mechanisms[1:])]
        before = [
            shortest(feature_maps, rows, less, mechanisms=names, rule=rule, width=width, arms=arms).length
            for less, names in smaller
            if names
        ]
        most = min(most, max(least, _HARDLY, min(before)))
    within = (spending for spending in candidates if spending.length <= most)
    return min(within, key=lambda spending: (-spending.features.size, spending.length))
