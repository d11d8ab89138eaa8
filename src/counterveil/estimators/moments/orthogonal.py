"""Whether adjustment is affordable and how the budget is split: functions of public numbers alone.

Sizes are those of outcomes with standard deviation one and standardised covariates. The figures assumed
about the data (`_BETA` and the like) steer the split; the privacy and the interval do not rest on them.

Outcomes are in units of half their range, around a released mean; treatments are 0 and 1.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache, partial
from math import isqrt, sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from counterveil.data import Sums
from counterveil.data.features import counted_features
from counterveil.estimators.moments.records import (
    MIDDLE,
    Kernel,
    Records,
    ResidualProducts,
    TableRecords,
    release_residual_products,
)
from counterveil.numerics.arrays import Floats
from counterveil.numerics.denoising import Denoised, shrunk
from counterveil.numerics.products import (
    Standard,
    WholeSum,
    exact_gram,
    grid_bits,
    squared_lengths,
    steps,
    upper_places,
)
from counterveil.numerics.public_choices import LEAST_SHARE, LEFT_OF_TREATMENT
from counterveil.privacy import Budget
from counterveil.privacy.caveats import ConfoundingBeyond, NotAdjusted, confounding
from counterveil.results.result import Result
from counterveil.rows.counts import release_counts
from counterveil.rows.moments.scores import (
    TERM_BITS,
    LinearModels,
    counts_between,
    residual_sums,
)
from counterveil.rows.moments.sensitivity import (
    OFF_DIAGONAL,
    SQUARE_WEIGHT,
    free_gram,
    record_moments,
)
from counterveil.session import Gate, Plan

# Numbers of this module that are choices, and not derived, were set on the tuning seeds of
# `experiments/record_effect/RESULTS.md`.
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


@dataclass(frozen=True, slots=True)
class Design:
    """The public numbers that the split depends on; `features` leaves the constant out."""

    rows: int
    features: int
    budget: Budget
    mechanism: str
    arms: int = 2

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
        return self.arms * (self.features + 3) * (self.features + 4) // 4 <= MOST_ENTRIES

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

    def gram_noise(self, share: Floats | float, squared_max_norm: Floats | float) -> Floats:
        """Return the noise of one entry off the diagonal of the Gram."""
        m = self.features + 3
        return self.sd(share, m * (m + 1) // 2, squared_max_norm)


@dataclass(frozen=True, slots=True)
class ChainSplit:
    """Shares of the budget by release, and the squared lengths of treatment and outcome beside a row's."""

    shares: tuple[tuple[str, Fraction], ...]
    treatment: float
    outcome: float

    @property
    def residual_passes(self) -> int:
        """How many times moments of residuals are released."""
        return sum(name.startswith("residual") for name, _ in self.shares)


def clip_sds(noise: Floats | float) -> Floats:
    """Return where the score is clipped, in its standard deviations; `noise` is the noise of the mean of a score
    clipped at one of them, beside the sampling error.

    Clipping nearer adds a little bias and takes much noise away where there is much of it.
    """
    return np.asarray(np.where(np.asarray(noise) > 0.75, 2.5, np.where(np.asarray(noise) > 0.25, 3.0, 4.0)))


def gram_index(design: Design) -> float:
    """Return the operator norm of the Gram's noise at three quarters (half, for pure budgets) of the budget."""
    squared_norm = 1.8 if not design.pure else 1.0 + 1.2 / _LENGTH
    share = 0.5 if design.pure else 0.75
    noise = float(design.gram_noise(share, squared_norm * (1 + _LENGTH * design.features)))
    return 2 * sqrt(design.features + 1) * noise


def affordable(design: Design) -> bool:
    """Whether the public numbers afford adjustment."""
    return design.fits and gram_index(design) <= MOST_NOISE["pure" if design.pure else "gaussian"]


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


@lru_cache(maxsize=256)
def split(design: Design) -> ChainSplit:
    """Return the split with the least expected error, averaged over how much of the outcome is noise."""
    first = {
        "centre": Fraction(12 if design.pure else 6, 100),
        "norms": Fraction(5 if design.pure else 2, 100),
    }
    rest = 1 - sum(first.values(), Fraction(0))
    percent = np.arange(5, 75, 5)
    score, residual = (grid.ravel() for grid in np.meshgrid(percent, np.arange(0, 65, 5), indexing="ij"))
    keep = score + residual <= 100 * float(rest) - 15
    lengths = np.geomspace(0.05, 1.5, 8)
    best: tuple[float, ChainSplit] | None = None
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
            shares["score"] = f2
            best = (
                value,
                ChainSplit(tuple(shares.items()), float(lengths[place[1]]), float(lengths[place[2]])),
            )
    assert best is not None
    return best[1]


def _expected(
    design: Design, rest: float, score: Floats, residual: Floats, passes: int, a: Floats, b: Floats
) -> Floats:
    """Return the mean log of the expected squared error, for arrays of shares and of lengths a and b."""
    m = design.features + 1
    squared_norm = 1 + _LENGTH * design.features
    entry = design.gram_noise(rest - score - residual, squared_norm * (1 + a + b))
    t_noise, y_noise = (
        entry * _BOUND_T / np.sqrt(a * squared_norm),
        entry * _BOUND_Y / np.sqrt(b * squared_norm),
    )
    total: Floats = np.zeros(())
    for left in _RESIDUALS:
        error = _BETA * m * y_noise**2 / (_BETA + m * y_noise**2)
        bias = _GRAM_LEFT * m * entry**2 * sqrt(_BETA * _GAMMA)
        for _ in range(passes):
            clip = 3.5 * np.sqrt(left + error)
            noise = design.sd(residual / passes, m + 1, 2 * sqrt(squared_norm)) * clip
            error = error * m * noise**2 / (error + m * noise**2)
            bias = bias * np.minimum(1.0, 0.1 + 0.7 * entry * sqrt(_GRAM_LEFT * m))
        variance = _LEFT * (left + error)
        unit = design.sd(0.8 * score, 3, 2.1)
        last = clip_sds(unit * sqrt(design.rows)) * np.sqrt(variance) * unit
        squared = t_noise**2 * error + last**2 + variance / design.rows + bias**2
        total = total + np.log(squared)
    return total


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
        interval_target=None,
        condition=condition,
    )


# Edges of the histogram of |z|^2 / (number of features); one cell lies above the last.
EDGES = np.array([0.8, 1.0, 1.15, 1.3, 1.5, 1.75, 2.0, 2.5, 3.0, 4.0, 5.0, 6.5, 8.0])
# Variance of a standardised coordinate's square: rows are shortened where they are longer than most, however much noise
# the histogram has. What is shortened bends the features, most where there are few of them.
_SPREAD_OF_SQUARES = 2.0
# The shift of outcomes to steps of 2**-20 of half the range.
_SHIFT = 3


@dataclass(frozen=True, slots=True)
class RecordMeans:
    """Released means and mean squares of features and outcome and the mean of 2t - 1, with their noise."""

    means: Floats
    squares: Floats
    treatment: float
    outcome: float
    outcome_square: float
    sd: float  # noise of a mean of features; a mean square has this divided by SQUARE_WEIGHT
    weight: float  # treatment and outcome have `sd` divided by this


def feature_moments(records: TableRecords, features: bool) -> Sums:
    """Return sums of features and of their squares, if wanted, and of (2t - 1, y, y^2), in steps of 2**-TERM_BITS."""
    first, second, own = WholeSum(), WholeSum(), WholeSum()
    for part in records.parts():
        x = np.zeros((1, 0), dtype=np.int64)
        if features:
            x = steps(part.x, TERM_BITS).astype(np.int64)
        outcome = (part.steps - MIDDLE) >> _SHIFT
        first.add(x.sum(axis=0))
        second.add((x * x).sum(axis=0))
        t = 2 * int(np.count_nonzero(part.treated)) - len(outcome)
        own.add(np.array([t, outcome.sum(), (outcome * outcome).sum()]))
    return first.whole(), second.whole(), own.whole()


def release_moments(gate: Gate, records: Records, counted: int) -> RecordMeans:
    """Return first and second moments of every column; `counted` features bound what one record moves.

    With `counted` zero, features are left out: their moments are public.
    """
    n = records.count
    two_valued = records.features.two_valued if counted else np.zeros(0, dtype=np.bool_)
    weight = Fraction(round(1000 * sqrt(counted / 8)), 1000) if counted else Fraction(1)

    def values() -> list[Fraction]:
        first, second, (t, y, yy) = records.run(feature_moments, counted > 0)
        one = Fraction(1, n << TERM_BITS)
        square = SQUARE_WEIGHT * one / 2**TERM_BITS
        found = [total * one for total in first]
        found += [total * square for total, known in zip(second, two_valued, strict=True) if not known]
        return [*found, weight * Fraction(t, n), weight * y * one, weight * yy * square]

    released = gate.release_vector("centre", values, record_moments(n, counted, weight))
    found, size = released.floats(), len(two_valued)
    squares = np.ones(size)
    squares[~two_valued] = found[size:-3] / float(SQUARE_WEIGHT)
    t_mean, y_mean, y_square = found[-3:] / float(weight)
    return RecordMeans(
        found[:size],
        squares,
        t_mean,
        y_mean,
        y_square / float(SQUARE_WEIGHT),
        sqrt(released.variance),
        float(weight),
    )


def length_counts(records: TableRecords, standard: Standard) -> Sums:
    """Return how many rows have |z|^2 / (number of features) in each cell between the edges."""
    size = records.features.size
    lengths = (squared_lengths(standard.coordinates(part.x)) / size for part in records.parts())
    return (counts_between(EDGES, lengths, "left"),)


def first_few(
    counts: Floats, variance: float, most: float, shown: float, edges: Floats
) -> tuple[float, float]:
    """Return the first edge beyond which at most `most` rows lie, and how many do; by `shown` standard deviations."""
    # Cells are added up from above, where there are few rows: noise of the full ones does not enter.
    above = np.cumsum(counts[::-1])[::-1][1:]
    sds = np.sqrt(variance * np.arange(len(above), 0, -1))
    few = np.flatnonzero(above <= most - shown * sds)
    place = int(few[0]) if len(few) else len(above)
    return float(edges[place]), float(above[place]) if len(few) else 0.0


def release_norms(gate: Gate, records: Records, standard: Standard, pure: bool, share: float) -> float:
    """Return the |z|^2 beyond which rows are shortened: about a part `share` of them, from a noisy histogram."""
    size = records.features.size
    released = release_counts(gate, "norms", lambda: records.run(length_counts, standard)[0], pure)
    edges = np.append(EDGES, EDGES[-1])
    found = first_few(released.floats(), released.variance, share * records.count, -1.6, edges)[0]
    return size * max(found, 1 + sqrt(_SPREAD_OF_SQUARES / size))


@dataclass(frozen=True, slots=True)
class Scaling:
    """Centres and bounds of treatment and outcome, and their squared lengths a and b beside a row's.

    `near_bound` says that the mean outcome lies near an end of its range; `variance` is that of the outcome before it
    is clipped to its bound, `variance_sd` the noise of that variance.
    """

    share: float
    mean: float
    treatment_bound: float
    outcome_bound: float
    a: float
    b: float
    near_bound: bool = False
    variance: float = 0.0
    variance_sd: float = 0.0

    def columns(self, t: Floats, y: Floats) -> tuple[Floats, Floats]:
        """Return centred treatment and outcome in [-1, 1]."""
        outcome = np.clip((y - self.mean) / self.outcome_bound, -1.0, 1.0)
        return (t - self.share) / self.treatment_bound, outcome


@dataclass(frozen=True, slots=True)
class SecondMoments:
    """Released moments of u = (1, z), treatment and outcome, in the units of the latter two.

    `entry_sd` is the noise off the matrix's diagonal; the other sds are those of the moments they are named after.
    """

    matrix: Floats
    with_treatment: Floats
    with_outcome: Floats
    treatment: float
    both: float
    outcome: float
    entry_sd: float
    treatment_sd: float
    outcome_sd: float
    both_sd: float
    square_sd: float


# Rows w of a table, in blocks of at most 4096.
Rows = Callable[..., Iterator[Floats]]


def product_sums(records: TableRecords, rows: Rows, bits: int, *arguments: Any) -> Sums:
    """Return the sum of w w' over the rows w that `rows` makes of the records and the arguments."""
    return (exact_gram(rows(records, *arguments), bits),)


def release_products(
    gate: Gate,
    name: str,
    records: Records,
    rows: Rows,
    arguments: tuple[Any, ...],
    largest: float,
    squared_max_norm: Fraction,
) -> tuple[Floats, float]:
    """Return the released mean of w w' over the rows w, and its noise off the diagonal.

    `rows` makes them of a table's records and the arguments. No entry of w is beyond `largest`, no |w|^2 beyond
    `squared_max_norm`.
    """
    count = records.count

    def values() -> list[Fraction]:
        bits = grid_bits(largest)
        (total,) = records.run(product_sums, rows, bits, *arguments)
        return triangle(total, Fraction(1, count * 4**bits))

    released = gate.release_vector(name, values, free_gram(count, squared_max_norm))
    return symmetric(released.floats()), sqrt(released.variance) / float(OFF_DIAGONAL)


def triangle(total: NDArray[Any], unit: Fraction) -> list[Fraction]:
    """Return the upper triangle of a matrix of whole numbers in these units, for release."""
    return [(unit if i == j else unit * OFF_DIAGONAL) * total[i, j] for i, j in upper_places(len(total))]


def symmetric(found: Floats) -> Floats:
    """Return the matrices of released triangles, which lie along the last axis."""
    size = isqrt(2 * found.shape[-1])  # of m (m + 1) / 2 numbers
    noisy = np.zeros((*found.shape[:-1], size, size))
    for place, (i, j) in enumerate(upper_places(size)):
        noisy[..., i, j] = noisy[..., j, i] = found[..., place] / (1.0 if i == j else float(OFF_DIAGONAL))
    return noisy


def joint_rows(records: TableRecords, standard: Standard, scaling: Scaling) -> Iterator[Floats]:
    """Yield (u, sqrt(a) t, sqrt(b) y) of all rows, a block at a time."""
    root_a, root_b = sqrt(scaling.a), sqrt(scaling.b)
    for u, t, y in records.models(standard):
        treatment, outcome = scaling.columns(t, y)
        yield np.vstack((u.T, root_a * treatment, root_b * outcome)).T


def release_gram(
    gate: Gate, records: Records, standard: Standard, scaling: Scaling, name: str = "gram"
) -> SecondMoments:
    """Return the released second moments of (u, sqrt(a) t, sqrt(b) y)."""
    m = records.features.size + 1
    root_a, root_b = sqrt(scaling.a), sqrt(scaling.b)
    squared_max_norm = Fraction(standard.squared_length) + 1 + Fraction(scaling.a) + Fraction(scaling.b)
    largest = max(standard.limit, root_a, root_b, 1.0)
    noisy, sd = release_products(
        gate, name, records, joint_rows, (standard, scaling), largest, squared_max_norm
    )
    h_t, h_y = scaling.treatment_bound / root_a, scaling.outcome_bound / root_b
    return SecondMoments(
        noisy[:m, :m],
        noisy[:m, m] * h_t,
        noisy[:m, m + 1] * h_y,
        float(noisy[m, m]) * h_t**2,
        float(noisy[m, m + 1]) * h_t * h_y,
        float(noisy[m + 1, m + 1]) * h_y**2,
        sd,
        sd * h_t,
        sd * h_y,
        sd * h_t * h_y,
        sqrt(2.0) * sd * h_y**2,
    )


def over_models(records: TableRecords, kernel: Kernel, standard: Standard, *arguments: Any) -> Sums:
    """Return the kernel's sums over (1, z), treatment and outcome."""
    return kernel(records.models(standard), *arguments)


def release_residuals(
    gate: Gate, name: str, records: Records, standard: Standard, models: LinearModels, clip: float
) -> ResidualProducts:
    """Return moments of u with the residual of the outcome, which is clipped to [-clip, clip]."""
    max_norm = sqrt(1.0 + standard.squared_length)
    sums = partial(records.run, over_models, residual_sums, standard, models, clip, max_norm)
    return release_residual_products(gate, name, records.count, sums, clip, max_norm)


# Outcomes that few people carry: a clip that follows a standard deviation would cut these people off.


# Numbers of this module that are choices, and not derived, were set on the tuning seeds of
# `experiments/record_effect/RESULTS.md`; those of heavy tails by `experiments/every_method/RESULTS.md`.
# A mean beyond this part of half the range from its middle: nearly everybody is at one end.
_NEAR_BOUND = 0.7
# No residual of an outcome in its range is longer, in units of half the range.
LONGEST_RESIDUAL = 2.0


def is_near_bound(mean: float) -> bool:
    """Return whether a released mean outcome, in units of half the range around its middle, lies near an end."""
    return abs(mean) > _NEAR_BOUND


# Prior variances of means and mean squares over columns; they say how far noisy ones are shrunk.
_MEAN_VARIANCE, _SQUARE_VARIANCE, _SQUARE = 0.25, 0.04, 0.35
_LEAST_SCALE = 0.2
_SHARES, _LARGEST_MEAN = (0.05, 0.95), 0.7
# Bound of the outcome in the Gram, in standard deviations.
_OUTCOME_CLIP_SDS = 2.2
# Confounding of a plain comparison that is expected, squared, in units of half the range.
_CONFOUNDING = 0.08**2
# A model never explains more than this many times what there is, whatever the noise says.
_MOST_EXPLAINED = 2.5
_LEAST_BETA, _LEAST_GAMMA = 0.01, 0.002
# Least part of the treatment's variance that covariates leave.
_LEAST_LEFT = 0.5
# Clip of residuals in standard deviations.
RESIDUAL_CLIP_SDS = 3.5
# What a correction of the outcome's model leaves of the confounding in directions whose variance was raised: with
# variance v raised to f a correction takes away the part v/f, and v (1 - v/f)^k falls this much for each k.
_RAISED_LEFT = 0.75
# An outcome that loses this part of its variance when it is clipped is carried by few people.
_MOST_LOST = 0.5


def shrunk_towards_prior(means: Floats, squares: Floats, sd: float) -> tuple[Floats, Floats]:
    """Return noisy means and mean squares of features shrunk towards prior means; a square of one is exact."""
    noise_variance = (sd / float(SQUARE_WEIGHT)) ** 2
    shrunk_squares = (squares * _SQUARE_VARIANCE + _SQUARE * noise_variance) / (
        _SQUARE_VARIANCE + noise_variance
    )
    means = np.clip(means * _MEAN_VARIANCE / (_MEAN_VARIANCE + sd**2), -1.0, 1.0)
    return means, np.where(squares == 1.0, 1.0, shrunk_squares)


def standardise(moments: RecordMeans, limit: float) -> Standard:
    """Return centre and scale of the features."""
    means, squares = shrunk_towards_prior(moments.means, moments.squares, moments.sd)
    return Standard(means, np.sqrt(np.clip(squares - means**2, _LEAST_SCALE**2, 1.0)), limit, np.inf)


def scaling_of(moments: RecordMeans, squared_max_norm: float, treatment: float, outcome: float) -> Scaling:
    """Return centres and bounds of treatment and outcome; `treatment` and `outcome` are parts of `squared_max_norm`."""
    variance = (moments.sd / moments.weight) ** 2
    share = (1 + moments.treatment * 0.25 / (0.25 + variance)) / 2
    share = float(np.clip(share, *_SHARES))
    mean = float(np.clip(moments.outcome * 0.09 / (0.09 + variance), -_LARGEST_MEAN, _LARGEST_MEAN))
    noise_variance = variance / float(SQUARE_WEIGHT) ** 2
    outcome_variance = max(moments.outcome_square - mean**2, 0.0)
    # Where noise hides the variance of the outcome, a third of the half range stands in.
    outcome_variance = (outcome_variance * 0.01 + 0.1 * noise_variance) / (0.01 + noise_variance) + sqrt(
        noise_variance
    ) / 2
    near_bound = is_near_bound(moments.outcome)
    bound = 1 + abs(mean)
    if not near_bound:
        bound = min(bound, _OUTCOME_CLIP_SDS * sqrt(max(outcome_variance, 1e-4)))
    return Scaling(
        share,
        mean,
        max(share, 1 - share),
        bound,
        treatment * squared_max_norm,
        outcome * squared_max_norm,
        near_bound,
        moments.outcome_square - moments.outcome**2,
        sqrt(2 * variance),
    )


@dataclass(frozen=True, slots=True)
class Nuisances:
    """Both models and what is known about their errors.

    `product` is an upper estimate of the squared error of the outcome model's coefficients; `noise_bias` bounds
    what the shared noise of the Gram does to the product of both errors, `raised_bias` what directions of little
    variance do that neither model sees whole. `residual_variance` is an upper estimate of the residual variance.
    """

    models: LinearModels
    gram: Denoised
    treatment_sd: float
    gamma: float  # squared length of the treatment's coefficients
    gamma_error: float
    beta: float  # squared length of the outcome's coefficients
    product: float
    noise_bias: float
    raised_bias: float
    unexplained: float  # part of the outcome's coefficients that was shrunk away
    residual_variance: float
    variance: float  # of the treatment
    step: float = 0.0  # squared length of the last correction of the outcome's coefficients
    least_clip: float = 0.0  # of residuals
    hidden: float = 0.0  # variance of the outcome that a clip of the Gram took off, or the noise in that

    @property
    def bias(self) -> float:
        """Bound of what does not average out."""
        return self.noise_bias + self.raised_bias

    @property
    def treatment_variance(self) -> float:
        """Variance of one coefficient of the treatment model around the truth, Gram error included."""
        return self.treatment_sd**2 + self.gram.error * self.gamma


def first_models(moments: SecondMoments, scaling: Scaling, gram: Denoised) -> Nuisances:
    """Return both models from the second moments: the treatment's unshrunk, the outcome's shrunk."""
    inverse = gram.inverse
    treatment = inverse @ moments.with_treatment
    variance = max(scaling.share * (1 - scaling.share), 0.04)
    outcome_variance = float(np.clip(moments.outcome + 2 * moments.square_sd, 0.002, 1.0))
    outcome = shrunk(
        inverse @ moments.with_outcome,
        moments.outcome_sd,
        inverse,
        min(_LEAST_BETA, 0.1 * outcome_variance),
        _MOST_EXPLAINED * outcome_variance,
    )
    own = shrunk(treatment, moments.treatment_sd, inverse, _LEAST_GAMMA, _MOST_EXPLAINED * variance)
    explained = _explained(moments.with_treatment, moments.treatment_sd, gram)
    left = float(np.clip(variance - explained, _LEAST_LEFT * variance, variance))
    effect = _first_effect(
        moments, gram, own.values, outcome.values, left, variance, own.squared, outcome.squared
    )
    squares = gram.error * gram.squares
    error_y = outcome.error + squares * outcome.squared * outcome.factor**2
    error_t = own.error + squares * own.squared * own.factor**2
    product = error_y + effect**2 * error_t
    models = LinearModels(
        scaling.share, scaling.mean, treatment, own.values, outcome.values - effect * own.values, effect
    )
    longest = _longest(models, inverse @ moments.with_outcome, own.squared, error_t, outcome.squared, error_y)
    # Where few people carry the outcome, residuals are clipped no nearer than they reach.
    min_variance = scaling.variance - 4 * scaling.variance_sd
    lost = moments.outcome + 4 * moments.square_sd < (1 - _MOST_LOST) * min_variance
    return Nuisances(
        models,
        gram,
        moments.treatment_sd,
        own.squared,
        error_t,
        outcome.squared,
        product,
        gram.error * gram.trace * longest,
        gram.raised * longest,
        1 - outcome.factor,
        _residual_variance(moments, gram, effect, product, outcome_variance),
        left,
        least_clip=LONGEST_RESIDUAL if scaling.near_bound or lost else 0.0,
        hidden=max(
            scaling.variance - moments.outcome, float(np.hypot(scaling.variance_sd, moments.square_sd))
        ),
    )


def _first_effect(
    moments: SecondMoments,
    gram: Denoised,
    gamma: Floats,
    beta: Floats,
    left: float,
    variance: float,
    squared_gamma: float,
    squared_beta: float,
) -> float:
    """Return a first effect: adjusted where the noise allows, else the plain comparison."""
    adjusted = (moments.both - float(gamma @ gram.matrix @ beta)) / left
    noise = (
        moments.treatment_sd**2 * squared_beta + moments.outcome_sd**2 * squared_gamma + moments.both_sd**2
    )
    noise /= left**2
    plain, plain_noise = moments.both / variance, (moments.both_sd / variance) ** 2
    part = _CONFOUNDING / (_CONFOUNDING + noise)
    mixed = part * adjusted + (1 - part) * plain * 0.1 / (0.1 + plain_noise)
    return float(np.clip(mixed, -1.2, 1.2))


def _explained(with_rows: Floats, sd: float, gram: Denoised) -> float:
    """Return the variance that a linear model explains, free of what the noise adds."""
    return max(float(with_rows @ gram.inverse @ with_rows) - sd**2 * gram.trace, 0.0)


def _longest(
    models: LinearModels,
    beta: Floats,
    squared_gamma: float,
    gamma_error: float,
    squared_beta: float,
    beta_error: float,
) -> float:
    """Return a bound of gamma' beta, for the bound of gamma' E S^-1 E beta with an error E of the Gram."""
    effect, gamma = models.effect, models.shrunk
    length = squared_beta + effect**2 * squared_gamma - 2 * effect * float(gamma @ beta)
    longest = sqrt(max(squared_gamma, 0.3 * gamma_error) * max(length, 0.25 * squared_beta, 0.3 * beta_error))
    aligned = min(abs(float(models.treatment @ (beta - effect * gamma))), longest)
    return 0.4 * aligned + 0.6 * longest


def _residual_variance(
    moments: SecondMoments, gram: Denoised, effect: float, product: float, outcome_variance: float
) -> float:
    """Return an upper estimate of the variance of y - effect t less its model."""
    whole = moments.outcome - 2 * effect * moments.both + effect**2 * moments.treatment
    mixed = moments.with_outcome - effect * moments.with_treatment
    sd = sqrt(moments.outcome_sd**2 + effect**2 * moments.treatment_sd**2)
    explained = _explained(mixed, sd, gram)
    noise_sd = sqrt(moments.square_sd**2 + (2 * sd) ** 2 * explained)
    return float(np.clip(max(whole - explained, 0.0) + product + 0.5 * noise_sd, 1e-5, 2 * outcome_variance))


def residual_clip(nuisances: Nuisances) -> float:
    """Return where residuals are clipped when their moments are released."""
    return float(
        np.clip(RESIDUAL_CLIP_SDS * sqrt(nuisances.residual_variance), max(nuisances.least_clip, 0.002), 2.5)
    )


def refined(nuisances: Nuisances, residuals: ResidualProducts) -> Nuisances:
    """Return the models with the outcome's coefficients moved by what the residuals still hold."""
    gram = nuisances.gram
    step = shrunk(gram.inverse @ residuals.products, residuals.sd, gram.inverse, 1e-6, 4 * nuisances.product)
    k = step.factor
    # Where a second correction is longer than the noise of the first explains, corrections converge badly.
    again = max(step.squared - nuisances.product, 0.0)
    rate = min(1.0, sqrt(again / nuisances.step)) if nuisances.step > 0 else 0.0
    models = replace(nuisances.models, outcome=nuisances.models.outcome + step.values)
    product = step.error + k**2 * gram.error * gram.squares * step.squared
    # A quarter at least: what was explained is known no better than the coefficients are.
    noise_left = (
        max(residuals.square - step.squared, residuals.square / 4) + product + residuals.square_sd / 2
    )
    return replace(
        nuisances,
        models=models,
        product=min(product, nuisances.product),
        # What the noise of the Gram did to the first coefficients is measured again by the residuals.
        noise_bias=nuisances.noise_bias
        * min(1.0, (1 - k) + k * (nuisances.unexplained + max(gram.leakage, rate))),
        raised_bias=nuisances.raised_bias * (1 - k + k * _RAISED_LEFT),
        unexplained=nuisances.unexplained * (1 - k),
        step=step.squared,
        residual_variance=float(np.clip(noise_left, 1e-5, nuisances.residual_variance)),
    )


# Three columns: from this noise index of the Gram on, coordinates are clipped at so many standard deviations, and this
# share of the rows is shortened. Noise grows with the longest row; what shortening takes away of the confounding stays
# far below it.
_ROW_LIMITS = ((0.6, 2.0, 0.2), (0.35, 2.0, 0.1), (0.25, 2.0, 0.05), (0.1, 2.5, 0.005), (0.0, 4.0, 0.001))


def standard_rows(gate: Gate, records: Records, design: Design) -> tuple[RecordMeans, Standard]:
    """Return the released moments and the map to standardised rows."""
    index = gram_index(design)
    limit, share = next(((limit, share) for least, limit, share in _ROW_LIMITS if index >= least))
    moments = release_moments(gate, records, counted_features(records.features))
    standard = standardise(moments, limit)
    length = release_norms(gate, records, standard, design.pure, share)
    return moments, replace(standard, squared_length=length)
