"""Propensity scores by penalised logistic regression, and the convex minimisation that fits them.

- `partial_shares`: how much of the treatment each covariate explains beyond the others.
- `approach`: near the minimum of a convex objective by many gradients and few Hessians.
- `minimise`: damped Newton steps to a gradient tolerance that is always reached, with the proof in comments.
- `fit_propensity`, `fit_multinomial`: the scores of two arms and of several.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Protocol, overload

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve
from scipy.linalg.lapack import dpotrf, dpotrs
from scipy.special import expit

from counterveil.errors import CounterveilError, refusal
from counterveil.numerics.arrays import Floats
from counterveil.numerics.products import Gram, Kind, MirroredRows, gram

# Beyond this many rows evenly spaced ones are read, beyond this many columns nothing is: an aid to judgement is not
# to take longer than an estimate.
_MOST_ROWS, _MOST_COLUMNS = 200_000, 200
# Rows expanded at once.
_AT_ONCE = 16_384
# Added to the diagonal of a correlation matrix, so that columns that repeat each other can be inverted.
_RIDGE = 1e-9


def partial_shares(raw: Sequence[Floats], labels: Sequence[int], treated: NDArray[np.bool_]) -> Floats | None:
    """Return (d,) the partial R^2 of each covariate with the treatment, given the others; None for very many columns.

    `raw` holds a column (n,) for each covariate. `labels` says of each how many codes it holds, which count together
    as one covariate; 0 stands for numbers. Constant covariates have 0.
    """
    widths = [count - 1 if count else 1 for count in labels]
    columns = sum(widths)
    if not columns or columns > _MOST_COLUMNS:
        return None
    correlation = _correlation(raw, labels, columns, treated)
    precision = np.linalg.inv(correlation + _RIDGE * np.eye(columns + 1))
    shares = np.zeros(len(labels))
    starts = np.cumsum([0, *widths])
    for j, (start, width) in enumerate(zip(starts, widths, strict=False)):
        if width == 1:
            shares[j] = precision[start, -1] ** 2 / (precision[start, start] * precision[-1, -1])
        elif width:
            # What is left of this covariate and of the treatment when all others are taken off.
            chosen = [*range(start, start + width), columns]
            conditional = np.linalg.inv(precision[np.ix_(chosen, chosen)])
            along = conditional[:-1, -1]
            shares[j] = float(along @ np.linalg.solve(conditional[:-1, :-1], along) / conditional[-1, -1])
    return np.where(shares > 0.0, np.minimum(shares, 1.0), 0.0)


def _correlation(
    raw: Sequence[Floats], labels: Sequence[int], columns: int, treated: NDArray[np.bool_]
) -> Floats:
    """Return (columns + 1, columns + 1) the correlations of all columns and, last, of the treatment."""
    step = max(1, -(-len(treated) // _MOST_ROWS))
    chosen = np.arange(0, len(treated), step)
    centre = [float(column[::step].mean()) for column in raw]
    total = np.zeros((columns + 1, columns + 1))
    first = np.zeros(columns + 1)
    for start in range(0, len(chosen), _AT_ONCE):
        rows = chosen[start : start + _AT_ONCE]
        block = _expanded([column[rows] for column in raw], centre, labels, columns, treated[rows])
        total += block @ block.T
        first += block.sum(axis=1)
    mean = first / len(chosen)
    covariance = total / len(chosen) - np.outer(mean, mean)
    size = np.sqrt(np.maximum(np.diag(covariance), 0.0))
    varies = size > _RIDGE * np.sqrt(np.diag(total) / len(chosen) + 1e-300)
    scale = np.where(varies, size, 1.0)
    correlation = np.where(np.outer(varies, varies), covariance / np.outer(scale, scale), 0.0)
    np.fill_diagonal(correlation, 1.0)
    return np.asarray(correlation)


def _expanded(
    raw: Sequence[Floats],
    centre: Sequence[float],
    labels: Sequence[int],
    columns: int,
    treated: NDArray[np.bool_],
) -> Floats:
    """Return (columns + 1, b) numbers around their centre, indicators of labels but the first, and the treatment."""
    block = np.empty((columns + 1, len(treated)))
    start = 0
    for j, count in enumerate(labels):
        if count:
            block[start : start + count - 1] = raw[j] == np.arange(1, count)[:, None]
            start += count - 1
        else:
            block[start] = raw[j] - centre[j]
            start += 1
    block[-1] = treated
    return block


# Propensity scores by penalised logistic regression, for two arms or several.
#
# The objective, the solver and the proof that its tolerance is always met are in `newton`. A constant column is
# appended to X and penalised like the others: an intercept without penalty moves without bound when one row changes.
# Rows are read in blocks (for several arms small data are copied once, with that column), so that beside X and the
# scores only a fixed amount of memory is used, and time is linear in the number of rows.
#
# Damped Newton for penalised logistic objectives, with a gradient tolerance that is always reached.
#
# The objective is J(w) = (1/n) sum_i l_i(w) + (lam/2)|w|^2, l_i the negative log-likelihood of row i's arm among K
# arms under a logit linear in x_i (a constant column included); every coordinate of w is penalised. H(w) >= lam I is
# the Hessian, g the gradient, d = H^-1 g, delta^2 = g.d.
#
# **The step.** r is the largest range, over rows, of the K logits of x_i under d (two arms: max |x_i.d|). The third
# derivative of log-sum-exp is a third central moment, so along d each l_i'' changes by at most the factor e^{tr} over
# a step t, the penalty's not at all: e^{-tr} H(w) <= H(w - td) <= e^{tr} H(w). Integrating twice, J(w - td) <= J(w) -
# t delta^2 + delta^2 (e^{tr} - tr - 1)/r^2, which is least at
#
# t = ln(1 + r) / r, J(w) - J(w - td) >= delta^2 ((1+r) ln(1+r) - r) / r^2. (1)
#
# The step needs no search and no values of J, whose rounding would hide the last decreases. It is cautious far from
# the minimum; there the whole step t = 1 is tried first and kept if J still falls along d at its end. J is convex, so
# it then fell all the way and by more than at the shorter step: (1) holds as well.
#
# **The number of steps.** Let |x_i| <= R and R' = R for two arms, sqrt(2) R for more; then r <= q with q = R' delta /
# sqrt(lam). With h(q) = (1+q) ln(1+q) - q, h(q)/q^2 decreases and h increases, so by (1) a step lowers J by at least
# delta^2 h(q)/q^2 = (lam/R'^2) h(q), and by (lam/R'^2) h(1/2) as long as q > 1/2; h(1/2) > 0.108. J starts at ln K or
# below and stays above 0: there are at most 9.3 ln(K) R'^2/lam such steps. For the new gradient, integrating once and
# using e^{tr} = 1 + r, |g+| in the norm of H^-1 is at most 2(1 - t) delta <= r delta, hence delta+ <= sqrt(1+r) r
# delta and q+ <= sqrt(1+q) q^2 <= 1.225 q^2 once q <= 1/2 (a whole step leaves (e^r - 1 - r)/r and e^{r/2} in place
# of r and sqrt(1+r), whose product is smaller there): q falls below 1e-27 in eight more steps, and |g| <= sqrt(lam +
# R^2/2) delta with it. So the tolerance is met after finitely many steps for every data set, and a fit never has to
# be refused.
#
# **Steps with a kept Hessian.** After a step from w0 the Hessian H0 there is used again for d = H0^-1 g while R, the
# sum of the logit ranges of all steps since w0, is at most 1/4. On the way e^{-R} H0 <= H <= e^R H0, so that g+ = (H0
# - mean of H) H0^-1 g is, in the norm of H0^-1, at most e^R - 1 < 0.285 times g, and J falls, by at least (1 - e^R/2)
# g.H0^-1 g. Whether the tolerance is met that way or a new Hessian is taken, delta in its own norm is below e^R 0.285
# < 0.37 times what it was: the count of Newton steps above stands, and between two of them the gradient shrinks by
# more than three at each step, so that these are finitely many as well.
#
# **The start.** Before all this `quasi_newton.approach` comes near with at most forty gradients and mostly reaches
# the tolerance. Where it ends is where the steps above begin, or else zero if J is above ln K there: what is proved
# holds for both, since J starts at ln K or below. J lies above its tangents by lam/2 of the squared distance: where
# g.w <= lam/2 |w|^2 it is at most J(0) = ln K, and its value need not be computed.
#
# **Rounding.** The loop stops at half the tolerance; the other half is for the error of the computed gradient. J
# never rises above ln K, so |w| <= sqrt(2 ln(K)/lam) on the way, and `gradient_rounding` bounds the error from public
# numbers alone: of the sums over rows (blocks of b rows: b + n/b roundings at most on the way of a term into the
# total) and of the logits, where residuals change by at most half of what the logits do. Penalties and tolerances for
# which the bound exceeds a quarter of the tolerance are refused before any row is read. The errors of H are below 12
# % of the smallest penalty accepted (up to 1e8 rows): H stays positive definite, and the last steps shrink the
# gradient by that factor at least.


# A quick approach to the minimum of a convex objective: few Hessians, many gradients.
#
# A Hessian of p columns costs about p/8 gradients. The first one, far from the minimum, is taken over a third of the
# rows. Between two Hessians H the inverse is corrected by what the
# gradients taken since then say of the curvature along the steps (limited-memory BFGS, started from H^-1), and
# convergence is faster than linear. A step that goes too far, where the objective already rises by more than half
# of how it fell at the start, is cut to where a straight slope would be zero, more than once if need be.
# Where a few steps have not brought the gradient far enough down, the point has moved out of reach of H and
# a new Hessian is taken. Most of the way is gone in single precision, where all of this costs half.
#
# Nothing is guaranteed here: `newton.minimise` looks at the objective and at the gradient where this ends, and goes on
# from there by steps that are proved.


# Gradients taken at most, in single precision and in double.
_MOST = 40
# Gradients, for the root of a column, down to which single precision is used.
_ROUGH = 3e-8
# After this many steps with one Hessian the gradient should have shrunk to this part, or be this near its goal.
_PROBED, _SHRUNK, _NEAR = 4, 1e-4, 10.0
# A slope at the end of a step is steep beyond this part of the one at its start.
_STEEP = 0.5


class Smooth(Protocol):
    """An objective with a gradient (p,) and a Hessian (p, p) that is positive definite."""

    def gradient(self, weights: Floats) -> Floats:
        """Return the gradient."""
        ...

    def hessian(self, weights: Floats) -> Floats:
        """Return the Hessian."""
        ...

    def rough(self) -> Smooth:
        """Return the objective in single precision, or itself where that would not show the curvature."""
        ...

    def sample(self) -> Smooth:
        """Return the objective of a third of the rows, or itself where these are few for the columns."""
        ...


@dataclass(frozen=True, slots=True)
class Approach:
    """Where it ended: weights (p,), the gradient there, and the steps taken."""

    weights: Floats
    gradient: Floats
    steps: int


@dataclass(frozen=True, slots=True)
class _Inverse:
    """An approximate inverse Hessian: one that was exact, and the steps and changes of gradient seen since."""

    solve: Callable[[Floats], Floats]
    pairs: list[tuple[Floats, Floats, float]] = field(default_factory=list)

    @classmethod
    def of(cls, hessian: Floats) -> _Inverse:
        factor, fault = dpotrf(hessian, lower=1, clean=0)
        if fault:
            raise np.linalg.LinAlgError("not positive")
        return cls(lambda vector: np.asarray(dpotrs(factor, vector, lower=1)[0]))

    def times(self, gradient: Floats) -> Floats:
        """Return the product with a gradient, newest pair first on the way in and last on the way out."""
        rest = gradient.copy()
        projections = []
        for step, change, scale in reversed(self.pairs):
            projections.append(projection := scale * float(step @ rest))
            rest -= projection * change
        answer = self.solve(rest)
        for step, change, scale in self.pairs:
            answer += (projections.pop() - scale * float(change @ answer)) * step
        return answer

    def learn(self, step: Floats, change: Floats) -> bool:
        """Take note of a step and the change of the gradient along it; return whether they show curvature."""
        product = float(step @ change)
        if product > 0.0:
            self.pairs.append((step, change, 1.0 / product))
        return product > 0.0


def approach(objective: Smooth, start: Floats, enough: float) -> Approach:
    """Return a point where the norm of the gradient is at most `enough`, or where the approach was given up."""
    near = Approach(start, start, 0)
    inverse = None
    if (rough := objective.rough()) is not objective:
        # Where rounding hides the curvature, double precision begins at the start.
        with suppress(np.linalg.LinAlgError):
            near, inverse = _walk(rough, start, None, max(enough, _ROUGH * math.sqrt(len(start))))
    end, _ = _walk(objective, near.weights, inverse, enough)
    return replace(end, steps=near.steps + end.steps)


def _walk(
    objective: Smooth, weights: Floats, inverse: _Inverse | None, enough: float
) -> tuple[Approach, _Inverse]:
    """Return where the steps end, and what they say of the curvature there; `inverse` is what is known before."""
    gradient = objective.gradient(weights)
    if inverse is None:
        inverse = _Inverse.of(objective.sample().hessian(weights))
    first = _norm(gradient)
    seen = len(inverse.pairs)
    steps = 0
    taken = 1
    while (norm := _norm(gradient)) > enough and taken < _MOST:
        if len(inverse.pairs) == seen + _PROBED and norm > max(_SHRUNK * first, _NEAR * enough):
            inverse = _Inverse.of(objective.hessian(weights))
            first = norm
            seen = 0
        direction = inverse.times(gradient)
        falls = float(gradient @ direction)
        length = 1.0
        new = objective.gradient(weights - direction)
        taken += 1
        while (rises := -float(new @ direction)) > _STEEP * falls and taken < _MOST:
            length *= falls / (falls + rises)
            new = objective.gradient(weights - length * direction)
            taken += 1
        if not inverse.learn(-length * direction, new - gradient):
            break
        weights = weights - length * direction
        gradient = new
        steps = steps + 1
    return Approach(weights, gradient, steps), inverse


def _norm(vector: Floats) -> float:
    return math.sqrt(float(vector @ vector))


LARGEST_BLOCK, SMALLEST_BLOCK = 2048, 512  # rows read at once
DEFAULT_TOLERANCE = 1e-9  # times the root of the number of columns
SMALLEST_PENALTY = 1e-10  # times the number of columns, so that rounding cannot make the Hessian indefinite
# Logit ranges below which the damped step is nearly the whole one.
_NEARLY_WHOLE = 0.1
# Logit ranges, added up, over which a Hessian is kept.
_KEPT = 0.25
_UNIT = 2.0**-53


class Objective(Smooth, Protocol):
    """What the iteration asks of a model; `penalty` is lam."""

    penalty: float

    def value(self, weights: Floats) -> float:
        """Return J."""
        ...

    def logit_range(self, direction: Floats) -> float:
        """Return the largest range of a row's logits under `direction`."""
        ...


@dataclass(frozen=True, slots=True)
class Minimum:
    """Where the iteration stopped: weights (p,), the norm of the gradient there, and the steps taken."""

    weights: Floats
    gradient_norm: float
    steps: int


def minimise(objective: Objective, start: Floats, worst: float, tolerance: float) -> Minimum:
    """Return a point whose computed gradient norm is at most tolerance/2.

    `worst` is the objective's value at zero. A start that is not better is replaced by zero, and so is the
    point where the quick approach ends: the bound on the number of steps does not depend on either.
    """
    origin = np.zeros_like(start)
    enough = tolerance / 2
    near = approach(objective, start if _not_worse(objective, start, worst) else origin, enough)
    weights, gradient, steps = near.weights, near.gradient, near.steps
    # Half of the tolerance is twice what rounding may do to the gradient.
    expected_fall = objective.penalty / 2 * float(weights @ weights) - enough * _norm_newton(weights)
    if float(gradient @ weights) > expected_fall and not _not_worse(objective, weights, worst):
        weights = origin
        gradient = objective.gradient(origin)
    while (norm := _norm_newton(gradient)) > enough:
        factor = cho_factor(objective.hessian(weights), lower=True, overwrite_a=True, check_finite=False)
        direction = cho_solve(factor, gradient, check_finite=False)
        logit_range = objective.logit_range(direction)
        step = (
            1.0
            if (
                logit_range > _NEARLY_WHOLE
                and float(objective.gradient(weights - direction) @ direction) >= 0
            )
            else damping(logit_range)
        )
        weights = weights - step * direction
        steps += 1
        moved = step * logit_range
        while moved <= _KEPT:
            norm = _norm_newton(gradient := objective.gradient(weights))
            if norm <= enough:
                return Minimum(weights, norm, steps)
            direction = cho_solve(factor, gradient, check_finite=False)
            moved += objective.logit_range(direction)
            if moved <= _KEPT:
                weights = weights - direction
        gradient = objective.gradient(weights)
    return Minimum(weights, norm, steps)


def _not_worse(objective: Objective, weights: Floats, worst: float) -> bool:
    """Return whether the objective is at most `worst`, its value at zero."""
    return not weights.any() or objective.value(weights) <= worst


def _norm_newton(vector: Floats) -> float:
    return float(np.linalg.norm(vector))


def damping(logit_range: float) -> float:
    """Return the step ln(1 + r)/r of the bound above; it tends to 1 as r tends to 0."""
    return math.log1p(logit_range) / logit_range if logit_range > 0 else 1.0


def checked_tolerance(rows: int, columns: int, arms: int, penalty: float, tolerance: float | None) -> float:
    """Return the gradient tolerance, or raise CV-P301 if rounding could keep it from being reached."""
    chosen = DEFAULT_TOLERANCE * math.sqrt(columns) if tolerance is None else tolerance
    least_penalty = SMALLEST_PENALTY * columns
    if math.isfinite(penalty) and penalty >= least_penalty:
        row_norm = math.sqrt(columns)
        largest_weights = math.sqrt(2 * math.log(arms) / penalty)
        summing = math.sqrt(2) * (LARGEST_BLOCK + rows / SMALLEST_BLOCK + 10)
        logits = (columns + 1) / 2 * row_norm * largest_weights
        least = 4 * (row_norm * (summing + logits) * _UNIT)
        if chosen >= least:
            return chosen
        expected = f"tolerance >= {least:.1e}"
    else:
        expected = f"penalty >= {least_penalty:.1e}"
    raise refusal("CV-P301", expected=expected, columns=columns, penalty=penalty, chosen=chosen)


def warm_start(rows: int, fit_every: Callable[[int], Floats], origin: Floats) -> Floats:
    """Return the weights fitted on every 16th row when there are many rows, `origin` otherwise.

    `fit_every(stride)` fits every stride-th row. Only the time depends on it: the tolerance is met on all rows.
    """
    return fit_every(16) if rows > 1 << 16 else origin


Matrix = NDArray[np.floating] | MirroredRows

# Numbers of a block: its products with a vector stay under the size at which linear algebra libraries start
# threads, which for matrices this thin cost more than they gain, and it stays in a core's cache.
_BLOCK = 1 << 17
# Up to this many numbers they are not started at all.
_ONE_THREAD = 400_000
# Numbers up to which the rows are copied (8 MB).
_SMALL = 1 << 20
# Rows a column from which a third of them show the curvature.
_MANY = 8
# One over the penalty, for each column, up to which single precision shows the curvature.
_SINGLE = 1 << 20


@dataclass(frozen=True, slots=True)
class PropensityFit:
    """A fitted propensity model.

    `weights`: (d+1,) for two arms, (K-1, d+1) for K arms, the intercept last. `scores`: (n,)
    probability of treatment, or (n, K) probabilities of the arms. `gradient_norm`: of the objective at
    the weights, at most half the tolerance asked for. `steps`: steps taken on all rows.
    """

    weights: Floats
    scores: Floats
    gradient_norm: float
    steps: int


def fit_propensity(
    X: Matrix, treated: NDArray[np.bool_], penalty: float, tolerance: float | None = None
) -> PropensityFit:
    """Return the minimiser of (1/n) sum log-loss + (penalty/2)|w|^2 and its scores.

    X is (n, d) with features of order one, `treated` (n,) of booleans. `tolerance` bounds the norm of
    the true gradient at the weights; by default 1e-9 sqrt(d+1).
    """
    _check(X, len(treated))
    tolerance = checked_tolerance(len(X), X.shape[1] + 1, 2, penalty, tolerance)
    objective = _Binary(X, np.asarray(treated, np.bool_), penalty)
    fit = _two_arms(objective, tolerance)
    return PropensityFit(fit.weights, objective.scores(fit.weights), fit.gradient_norm, fit.steps)


def fit_multinomial(
    X: NDArray[np.floating],
    arm: NDArray[np.integer],
    arms: int,
    penalty: float,
    tolerance: float | None = None,
) -> PropensityFit:
    """Return the same for K = `arms` arms numbered 0..K-1, arm 0 being the reference with logit zero."""
    _check(X, len(arm))
    if arms < 2:
        raise _refusal("at least two arms", f"arms={arms}")
    columns = X.shape[1] + 1
    tolerance = checked_tolerance(len(X), columns, arms, penalty, tolerance)
    fit = _several_arms(X, np.asarray(arm, np.intp), arms, penalty, tolerance)
    weights = fit.weights.reshape(arms - 1, columns)
    return PropensityFit(weights, multinomial_scores(X, weights), fit.gradient_norm, fit.steps)


def logistic_scores(X: Matrix, weights: Floats) -> Floats:
    """Return the (n,) probabilities of treatment 1/(1 + exp(-(X w + b))), weights = (w, b)."""
    scores = np.empty(len(X))
    for rows, block in _plain(X):
        scores[rows] = _probability(block, weights)
    return scores


def multinomial_scores(X: NDArray[np.floating], weights: Floats) -> Floats:
    """Return the (n, K) probabilities of the arms under (K-1, d+1) weights, arm 0 first."""
    scores = np.empty((len(X), len(weights) + 1))
    for rows, block in _FitRows(X):
        scores[rows] = _softmax(block @ weights.T)[0]
    return scores


class _Binary:
    """The objective of two arms, by products in double or single precision; the constant column is not written out."""

    def __init__(
        self,
        X: Matrix,
        treated: NDArray[np.bool_],
        penalty: float,
        kind: Kind = np.float64,
    ) -> None:
        self.X, self.treated, self.penalty, self.kind = X, treated, penalty, kind
        self.indicator: NDArray[np.floating] = treated.astype(kind)
        # The weights of the last gradient and the scores there, of small data in double precision.
        self.last: tuple[Floats, Floats] | None = None

    def rough(self) -> _Binary:
        # Far below such a penalty, rounding leaves the Hessian positive.
        single = self.penalty * _SINGLE >= self.X.shape[1] + 1 and self.X.size <= _SMALL
        if not single:
            return self
        return _Binary(self.X.astype(np.float32), self.treated, self.penalty, np.float32)

    def sample(self) -> _Binary:
        return self.thinned(_sampled(self.X))

    def thinned(self, stride: int) -> _Binary:
        """Return the objective of every stride-th row."""
        rows = self.X.thinned(stride) if isinstance(self.X, MirroredRows) else self.X[::stride]
        return _Binary(rows, self.treated[::stride], self.penalty, self.kind)

    def scores(self, weights: Floats) -> Floats:
        if self.last is not None and np.array_equal(self.last[0], weights):
            return self.last[1]
        return logistic_scores(self.X, weights)

    def value(self, weights: Floats) -> float:
        loss = 0.0
        for rows, block in _plain(self.X):
            logit = block @ weights[:-1] + weights[-1]
            # log(1 + e^z) - z t is log(1 + e^-z) for the treated and log(1 + e^z) for the others.
            loss += float(np.logaddexp(0.0, np.where(self.treated[rows], -logit, logit)).sum())
        return loss / len(self.X) + self.penalty / 2 * float(weights @ weights)

    def gradient(self, weights: Floats) -> Floats:
        total = np.zeros(len(weights))
        narrow: NDArray[np.floating] = weights.astype(self.kind, copy=False)
        # What is rounded to single precision need not be added up in short blocks.
        most = _ONE_THREAD if self.kind is np.float32 else None
        residuals = np.empty(len(self.X)) if most is None and self.X.size <= _SMALL else None
        self.last = None if residuals is None else (weights, residuals)
        for rows, block in _plain(self.X, self.kind, most):
            residual = _probability(block, narrow)
            if residuals is not None:
                residuals[rows] = residual
            residual -= self.indicator[rows]
            total[:-1] += residual @ block
            total[-1] += np.add.reduce(residual)
        return total / len(self.X) + self.penalty * weights

    def hessian(self, weights: Floats) -> Floats:
        inner = Gram(len(weights), self.kind)
        narrow: NDArray[np.floating] = weights.astype(self.kind, copy=False)
        for _, block in _plain(self.X, self.kind):
            probability = _probability(block, narrow)
            root = np.sqrt(probability * (1 - probability))
            scaled = np.empty((len(block), len(weights)), self.kind)
            np.multiply(block, root[:, None], out=scaled[:, :-1])
            scaled[:, -1] = root
            inner.add(scaled)
        return _penalised(inner.whole() / len(self.X), self.penalty)

    def logit_range(self, direction: Floats) -> float:
        slopes = direction[:-1]
        constant = direction[-1]
        return max(float(np.abs(block @ slopes + constant).max()) for _, block in _plain(self.X))


def _sampled(X: Matrix) -> int:
    """Return the stride at which rows show the curvature roughly: one where they are few for the columns."""
    return 3 if len(X) >= _MANY * X.shape[1] else 1


def _penalised(hessian: Floats, penalty: float) -> Floats:
    """Return the Hessian of the mean loss with that of the penalty added to it, in place."""
    hessian.reshape(-1)[:: len(hessian) + 1] += penalty
    return hessian


def _probability(block: NDArray[np.floating], weights: NDArray[np.floating]) -> NDArray[np.floating]:
    """Return the probabilities of treatment of a block's rows."""
    if not weights.any():
        return np.full(len(block), 0.5, weights.dtype)
    logit = block @ weights[:-1]
    logit += weights[-1]
    return np.asarray(expit(logit, out=logit))


class _Multinomial:
    """The objective of several arms; weights are flattened, one arm after the other."""

    def __init__(self, X: NDArray[np.floating], arm: NDArray[np.intp], arms: int, penalty: float) -> None:
        self.rows = _FitRows(X)
        self.arm = arm
        self.free = arms - 1
        self.penalty = penalty

    def value(self, weights: Floats) -> float:
        loss = 0.0
        by_arm = weights.reshape(self.free, -1)
        for rows, block in self.rows:
            _, log_total, logit = _softmax(block @ by_arm.T)
            loss += float((log_total - logit[np.arange(len(block)), self.arm[rows]]).sum())
        return loss / len(self.rows.X) + self.penalty / 2 * float(weights @ weights)

    def gradient(self, weights: Floats) -> Floats:
        by_arm = weights.reshape(self.free, -1)
        total = np.zeros_like(by_arm)
        for rows, block in self.rows:
            probability, _, _ = _softmax(block @ by_arm.T)
            total += self._residual(probability, rows).T @ block
        return total.ravel() / len(self.rows.X) + self.penalty * weights

    def hessian(self, weights: Floats) -> Floats:
        by_arm = weights.reshape(self.free, -1)
        hessian = np.zeros(by_arm.shape + by_arm.shape)
        for _, block in self.rows:
            _add_curvature(hessian, _softmax(block @ by_arm.T)[0][:, 1:], block)
        return _penalised(hessian.reshape(len(weights), -1) / len(self.rows.X), self.penalty)

    def rough(self) -> _Multinomial:
        return self

    def sample(self) -> _Multinomial:
        stride = _sampled(self.rows.X)
        return _Multinomial(self.rows.X[::stride], self.arm[::stride], self.free + 1, self.penalty)

    def _residual(self, probability: Floats, rows: slice) -> Floats:
        """Return probability minus indicator for the arms other than the reference."""
        inside: Floats = probability[:, 1:] - (self.arm[rows, None] == np.arange(1, self.free + 1))
        return inside

    def logit_range(self, direction: Floats) -> float:
        by_arm = direction.reshape(self.free, -1)
        largest = 0.0
        for _, block in self.rows:
            logit = block @ by_arm.T
            # The reference arm's logit is zero and counts in the range.
            span = np.maximum(logit.max(axis=1), 0.0) - np.minimum(logit.min(axis=1), 0.0)
            largest = max(largest, float(span.max()))
        return largest


def _add_curvature(hessian: Floats, probability: Floats, block: Floats) -> None:
    """Add one block's sums of p_k (1[k=l] - p_l) x x', each as a matrix times its own transpose."""
    for k in range(len(hessian)):
        for j in range(k + 1):
            other_share = 1.0 - probability[:, k] if j == k else probability[:, j]
            scaled = block * np.sqrt(probability[:, k] * other_share)[:, None]
            part = gram(scaled) if j == k else -gram(scaled)
            hessian[k, :, j, :] += part
            if j < k:
                hessian[j, :, k, :] += part


def _two_arms(objective: _Binary, tolerance: float) -> Minimum:
    rows, columns = objective.X.shape
    start = warm_start(
        rows,
        lambda stride: _two_arms(objective.thinned(stride), tolerance).weights,
        np.zeros(columns + 1),
    )
    return minimise(objective, start, math.log(2), tolerance)


def _several_arms(
    X: NDArray[np.floating], arm: NDArray[np.intp], arms: int, penalty: float, tolerance: float
) -> Minimum:
    start = warm_start(
        len(X),
        lambda stride: _several_arms(X[::stride], arm[::stride], arms, penalty, tolerance).weights,
        np.zeros((arms - 1) * (X.shape[1] + 1)),
    )
    return minimise(_Multinomial(X, arm, arms, penalty), start, math.log(arms), tolerance)


@overload
def _plain(X: Matrix) -> Iterator[tuple[slice, Floats]]: ...
@overload
def _plain(
    X: Matrix, kind: Kind, most: int | None = None
) -> Iterator[tuple[slice, NDArray[np.floating]]]: ...
def _plain(
    X: Matrix, kind: Kind = np.float64, most: int | None = None
) -> Iterator[tuple[slice, NDArray[np.floating]]]:
    """Yield the rows of X in blocks, of at most `most` numbers if given: (rows, block), the block to be read only."""
    size = _block_size(X) if most is None else max(most // max(int(X.shape[1]), 1), 1)
    for first in range(0, len(X), size):
        here = slice(first, min(first + size, len(X)))
        yield here, X[here].astype(kind, copy=False)


def _block_size(X: Matrix) -> int:
    return min(LARGEST_BLOCK, max(SMALLEST_BLOCK, _BLOCK // max(int(X.shape[1]), 1)))


class _FitRows:
    """The rows of X with a constant column, in blocks: (rows, block), the block to be read only."""

    def __init__(self, X: NDArray[np.floating]) -> None:
        self.X = X
        self.size = _block_size(X)
        self.whole = _with_constant(X, np.empty((len(X), X.shape[1] + 1))) if X.size <= _SMALL else None

    def __iter__(self) -> Iterator[tuple[slice, Floats]]:
        n = len(self.X)
        buffer = np.empty((min(self.size, n), self.X.shape[1] + 1)) if self.whole is None else None
        for first in range(0, n, self.size):
            here = slice(first, min(first + self.size, n))
            if buffer is None:
                assert self.whole is not None
                yield here, self.whole[here]
            else:
                # Overwritten by the next block.
                yield here, _with_constant(self.X[here], buffer[: here.stop - first])


def _with_constant(X: NDArray[np.floating], out: Floats) -> Floats:
    out[:, :-1] = X
    out[:, -1] = 1.0
    return out


def _softmax(logit: Floats) -> tuple[Floats, Floats, Floats]:
    """Return all arms' probabilities, the log of the sum of exponentials, and all arms' logits."""
    full = np.concatenate([np.zeros((len(logit), 1)), logit], axis=1)
    top = full.max(axis=1, keepdims=True)
    exponential = np.exp(full - top)
    total = exponential.sum(axis=1, keepdims=True)
    return exponential / total, (top + np.log(total))[:, 0], full


def _check(X: Matrix, rows: int) -> None:
    if X.ndim != 2 or len(X) != rows or rows == 0:
        raise _refusal("a matrix of covariates with one row for each unit", f"shape {X.shape}, {rows} units")


def _refusal(expected: str, got: str) -> CounterveilError:
    return refusal("CV-P302", expected=expected, got=got)
