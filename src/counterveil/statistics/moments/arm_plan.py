"""How the private effect from moments by arm spends its budget: functions of public numbers alone."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import inf, sqrt

from counterveil.numerics.products import FeatureMap
from counterveil.privacy import Budget
from counterveil.session import Kind, Plan
from counterveil.statistics.moments.doubly_robust_plan import Design

# Numbers of this module that are choices, and not derived, were set on the tuning designs of
# `experiments/record_effect/NOTES.md`.
# Parts of the budget, in thousandths: of mu squared for Gaussian noise, of epsilon for pure budgets.
_SHARES = {
    "centre": 20,
    "features": 30,
    "place 1": 15,
    "place 2": 15,
    "norms": 20,
    "gram": 375,
    "residual 1": 110,
    "residual 2": 110,
    "bends": 100,
    "sizes": 30,
    "score": 175,
}
# Pure budgets pay for every entry of the Grams, and their counts are noisier for the same part.
_PURE_SHARES = {
    "centre": 30,
    "features": 30,
    "place 1": 30,
    "place 2": 30,
    "norms": 15,
    "gram": 415,
    "residual 1": 90,
    "residual 2": 90,
    "bends": 80,
    "sizes": 40,
    "score": 150,
}
_PLACES = ("place 1", "place 2")
_HISTOGRAMS = (*_PLACES, "norms", "sizes")
# Cells of a histogram of outcomes, at least and at most; an average one holds this many times its noise.
_CELLS, _CELL_NOISE = (8, 32), 6.0
# From this noise of the Grams on, coordinates are clipped here and this share of the rows is shortened.
_KNOBS = ((0.5, 2.0, 0.2), (0.25, 2.0, 0.1), (0.1, 2.5, 0.05), (0.03, 3.0, 0.02), (0.0, 4.0, 0.005))
# Rows are at most this long, squared, for each feature; longer where there is little noise.
_LONGEST, _LONGEST_OF_ALL, _LITTLE_NOISE = 3.0, 16.0, 0.1
# What the variance of the product of errors is multiplied by, below the first and above the second of these indices.
_INFLATION, _NOISY = (2.5, 4.5), (0.5, 1.0)
# The same where covariates explain this part of the outcome or more, and what it is where they explain nothing.
_EXPLAINED, _LEAST = 0.5, 1.3
# Noise of the l2 ball has no normal tails: its products have heavier ones, from lower indices on.
_PURE_INFLATION, _NOISY_BALL = 1.6, (0.2, 0.5)
# The least part of the shared error that is left from the first of them on.
_SHARED = 0.3
# Squared lengths of the constant and of the outcome beside that of the covariates.
_CONSTANT, _OUTCOME = 0.7, 0.3
# Squared lengths of standardised rows are about this many times the number of features.
_LENGTH = 1.5
# Expected widths: clip of scores in standard deviations, and what the Grams' noise adds beside sampling.
_SCORE_REACH, _MODELS = 4.0, 3.5
# Knots of the bends; what is left of them beside their noise, and the noise below which it is less.
KNOTS, _BENDS_LEFT, _SURE_BENDS = 7, 2.5, 0.003
# Adjustment is affordable where the noise of the Grams is below these.
_MOST_NOISE = {"gaussian": 1.25, "pure": 0.75}
# What treatment and outcome that bend are taken to add to the square of an interval's length, in parts of that without
# privacy at the first of these numbers of rows: with covariates alone, with squares of numbers, with products of two.
# It grows up to the second number, which is as far as was measured. There are at most so many features.
_LINES, _SQUARES, _PRODUCTS, _ROWS, _MOST_FEATURES = 0.14, 0.045, 0.0, (2500, 10_000), 120


@dataclass(frozen=True, slots=True)
class ArmDesign:
    """The public numbers that the chain of releases depends on.

    `searched` says whether the outcomes' place is looked for; otherwise they lie at both ends of their range.
    """

    design: Design
    searched: bool = True

    @property
    def pure(self) -> bool:
        """Whether noise comes from the l2 ball rather than from the Gaussian mechanism."""
        return self.design.pure

    @property
    def shares(self) -> dict[str, Fraction]:
        """Parts of the budget by release; what no search costs goes to the score."""
        parts = dict(_PURE_SHARES if self.pure else _SHARES)
        if not self.searched:
            parts["score"] += sum(parts.pop(name) for name in _PLACES)
        return {name: Fraction(part, 1000) for name, part in parts.items()}

    @property
    def histograms(self) -> tuple[str, ...]:
        """The releases that are counts."""
        return tuple(name for name in _HISTOGRAMS if name in self.shares)

    @property
    def place_cells(self) -> int:
        """Cells of a histogram of outcomes: so many that an average one stands out of its noise."""
        amount = self.design.strength / self.design.rows
        share = float(self.shares[_PLACES[0]])
        sd = sqrt(8) / (share * amount) if self.pure else sqrt(2 / share) / amount
        return int(min(max(self.design.rows / (_CELL_NOISE * sd), _CELLS[0]), _CELLS[1]))

    @property
    def passes(self) -> int:
        """How many times moments of residuals are released."""
        return 2

    @property
    def index(self) -> float:
        """The operator norm of the noise of one Gram of both arms at three quarters of the budget."""
        m = self.design.features + 2
        reach = (1 + _CONSTANT + _OUTCOME) * _LENGTH * self.design.features
        noise = float(self.design.sd(0.75, m * (m + 1), reach))
        return 2 * sqrt(self.design.features + 1) * noise

    @property
    def limit(self) -> float:
        """Where coordinates are clipped."""
        return self._knobs[0]

    @property
    def shortened(self) -> float:
        """The share of the rows that is shortened."""
        return self._knobs[1]

    @property
    def _knobs(self) -> tuple[float, float]:
        index = self.index
        return next((limit, share) for least, limit, share in _KNOBS if index >= least)

    @property
    def longest(self) -> float:
        """The largest squared length of a row for each feature."""
        return _LONGEST if self.index > _LITTLE_NOISE else _LONGEST_OF_ALL

    def inflation(self, explained: float) -> float:
        """Return what the variance of the product of errors is multiplied by.

        It is more where noise is so large that it skews, and where covariates explain much of the outcome.
        """
        least, most = _INFLATION
        low, high = _NOISY_BALL if self.pure else _NOISY
        part = (self.index - low) / (high - low)
        most = least + (most - least) * min(max(part, 0.0), 1.0)
        found = _LEAST + (most - _LEAST) * min(max(explained, 0.0) / _EXPLAINED, 1.0)
        return (_PURE_INFLATION if self.pure else 1.0) * found

    @property
    def shared(self) -> float:
        """The least part of the shared error of weights and lines that residuals are taken to leave."""
        return _SHARED * min(self.index / _NOISY[0], 1.0)

    @property
    def constant(self) -> float:
        """Squared length of the constant beside that of the covariates."""
        return _CONSTANT

    @property
    def outcome(self) -> float:
        """Squared length of the outcome beside that of the covariates."""
        return _OUTCOME

    @property
    def score_unit(self) -> float:
        """The noise of a mean score that is clipped at one."""
        return float(self.design.sd(float(self.shares["score"]), 2, 2.0))

    @property
    def bends_left(self) -> float:
        """About what noise of bends adds, beside the sampling error: their product, of which priors leave a part."""
        noise = float(self.design.sd(float(self.shares["bends"]), 8 * KNOTS - 2, 2.0))
        return _BENDS_LEFT * noise * min(1.0, noise / _SURE_BENDS) * sqrt(self.design.rows)

    def plan(self) -> Plan:
        """Return the plan of the releases."""
        kinds = dict.fromkeys(self.shares, Kind.VECTOR)
        if self.pure:
            kinds |= dict.fromkeys(self.histograms, Kind.CELLS)
        return Plan.split(self.design.budget, self.shares, self.design.mechanism, kinds)


def arms_affordable(design: Design) -> bool:
    """Whether the public numbers afford moments by arm."""
    chain = ArmDesign(design)
    return design.fits and chain.index <= _MOST_NOISE["pure" if chain.pure else "gaussian"]


def expected_width(design: Design) -> float:
    """Return about how many times wider the interval is than one without privacy.

    Sampling counts as one; scores are clipped at about four of their standard deviations. A larger epsilon or delta
    never makes it wider for the same features and mechanism: it falls with what all of the budget is in noise.
    """
    chain = ArmDesign(design)
    noise = _SCORE_REACH * chain.score_unit * sqrt(design.rows)
    models = _MODELS * chain.index * (sqrt(_PURE_INFLATION) if chain.pure else 1.0)
    return sqrt(1 + noise**2 + models**2 + chain.bends_left**2)


@dataclass(frozen=True, slots=True)
class Spending:
    """Features and public numbers, and about how long the interval is expected to be beside one without privacy."""

    features: FeatureMap
    design: Design
    length: float


def shortest(
    ladder: Sequence[FeatureMap],
    rows: int,
    budget: Budget,
    mechanisms: Sequence[str],
    rule: Callable[[Design], bool] = arms_affordable,
    width: Callable[[Design], float] = expected_width,
) -> Spending:
    """Return what is expected to give the shortest interval, bends that its features leave out included.

    Every set of features that the `rule` affords is compared with every mechanism. The expected length is the least of
    numbers that fall with epsilon and delta, so that no smaller spending has a shorter one: a larger budget buys
    features or a shorter interval.
    """
    found = []
    for features in ladder:
        for mechanism in mechanisms:
            design = Design(rows, features.size, budget, mechanism)
            possible = features.size <= _MOST_FEATURES and rule(design)
            length = sqrt(width(design) ** 2 + _left_out(features, rows)) if possible else inf
            found.append(Spending(features, design, length))
    return min(found, key=lambda spending: spending.length)


def _left_out(features: FeatureMap, rows: int) -> float:
    """Return what bends that these features do not follow are taken to add, squared.

    The bias of a bend stays where it is as rows are added, while an interval without privacy shrinks with their root.
    """
    products = any(i != j for i, j in features.pairs)
    part = _PRODUCTS if products else _SQUARES if features.pairs else _LINES
    return part * min(rows, _ROWS[1]) / _ROWS[0]
