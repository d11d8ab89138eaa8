"""A black-box tester: bet on an event chosen on half of the samples, and count on the other half."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol, TypeAlias, runtime_checkable

import numpy as np
from numpy.typing import NDArray
from scipy.special import bdtrc, betainccinv, betaincinv, ndtri

from counterveil.errors import refusal
from counterveil.privacy import Budget
from counterveil_lab.audit.report import (
    FloatArray,
    LowerBound,
    Mechanism,
    Pair,
    Quantity,
    WhiteBox,
    draw,
    needs_density,
    out_of_range,
)


def lower_bound(hits: FloatArray | float, trials: int, error: float) -> FloatArray:
    """Return Clopper-Pearson lower limits; each is above its probability with chance `error` at most."""
    k = np.asarray(hits, dtype=np.float64)
    limit = betaincinv(np.maximum(k, 1.0), trials - k + 1.0, error)
    return np.where(k > 0, limit, 0.0)


def upper_bound(hits: FloatArray | float, trials: int, error: float) -> FloatArray:
    """Return Clopper-Pearson upper limits; each is below its probability with chance `error` at most."""
    k = np.asarray(hits, dtype=np.float64)
    limit = betainccinv(k + 1.0, np.maximum(trials - k, 1.0), error)
    return np.where(k < trials, limit, 1.0)


def wilson(hits: FloatArray, trials: int, z: float) -> tuple[FloatArray, FloatArray]:
    """Return approximate lower and upper limits in closed form; good for choosing, never for claiming."""
    share = hits / trials
    weight = z * z / trials
    centre = (share + weight / 2) / (1 + weight)
    half = z / (1 + weight) * np.sqrt(share * (1 - share) / trials + weight / (4 * trials))
    return np.maximum(centre - half, 0.0), np.minimum(centre + half, 1.0)


def log_excess(p_low: FloatArray, q_high: FloatArray, delta: float) -> FloatArray:
    """Return the epsilon that P >= p_low and Q <= q_high force: ln((p_low - delta) / q_high), at least 0."""
    gain = np.maximum(p_low - delta, 0.0)
    with np.errstate(divide="ignore"):
        excess: FloatArray = np.maximum(np.log(gain) - np.log(q_high), 0.0)
    return excess


# Ranks from both ends, so that rare outputs are on offer, and even quantiles, so that common ones are.
_END_RANKS = 24
_EVEN_RANKS = 33
_ATOMS = 16


@dataclass(frozen=True, slots=True)
class Event:
    """The set of scores in [low, high], or its complement when `inside` is false."""

    low: float
    high: float
    inside: bool = True

    def hits(self, scores: FloatArray) -> int:
        """Return how many scores lie in the event."""
        within = int(np.count_nonzero((scores >= self.low) & (scores <= self.high)))
        return within if self.inside else len(scores) - within

    def __str__(self) -> str:
        if not self.inside:
            return f"score < {self.low:.6g} or > {self.high:.6g}"
        if self.low == self.high:
            return f"score = {self.low:.6g}"
        if self.low == -np.inf:
            return f"score <= {self.high:.6g}"
        if self.high == np.inf:
            return f"score >= {self.low:.6g}"
        return f"{self.low:.6g} <= score <= {self.high:.6g}"


def cut_points(scores: FloatArray) -> FloatArray:
    """Return sorted candidate thresholds: extreme and even order statistics, and the commonest values."""
    ordered = np.sort(scores)
    last = len(ordered) - 1
    ends = np.unique(np.geomspace(1, max(last / 2, 1), _END_RANKS).astype(int)) - 1
    even = np.linspace(0, last, _EVEN_RANKS).astype(int)
    chosen = ordered[np.unique(np.concatenate([ends, last - ends, even]))]
    values, counts = np.unique(ordered, return_counts=True)
    common = values[np.argsort(-counts, kind="stable")[:_ATOMS]] if counts.max() > 1 else values[:0]
    return np.unique(np.concatenate([chosen, common]))


def choose_events(strong: FloatArray, weak: FloatArray, delta: float, error: float) -> tuple[Event, ...]:
    """Return for each family the event that best shows `strong` likelier than `weak` on training scores.

    The families are left tails, right tails, intervals (atoms among them) and complements of intervals.
    """
    cuts = cut_points(np.concatenate([strong, weak]))
    lows = np.concatenate([[-np.inf], cuts])
    highs = np.concatenate([cuts, [np.inf]])
    z = float(-ndtri(error))
    inside = [_counts_between(scores, lows, highs) for scores in (strong, weak)]
    outside = [len(scores) - count for scores, count in zip((strong, weak), inside, strict=True)]
    allowed = lows[:, None] <= highs[None, :]
    left, right = np.zeros_like(allowed), np.zeros_like(allowed)
    left[0, :-1], right[1:, -1] = True, True
    middle = allowed.copy()
    middle[0, :], middle[:, -1] = False, False
    sizes = (len(strong), len(weak))
    within = np.where(allowed, _training_score(inside, sizes, delta, z), -1.0)
    without = np.where(middle, _training_score(outside, sizes, delta, z), -1.0)
    chosen = [_best(lows, highs, np.where(family, within, -1.0), True) for family in (left, right, middle)]
    return (*chosen, _best(lows, highs, without, False))


def _counts_between(scores: FloatArray, lows: FloatArray, highs: FloatArray) -> FloatArray:
    ordered = np.sort(scores)
    below = np.searchsorted(ordered, lows, side="left")
    up_to = np.searchsorted(ordered, highs, side="right")
    counts: FloatArray = np.maximum(up_to[None, :] - below[:, None], 0).astype(np.float64)
    return counts


def _training_score(counts: list[FloatArray], sizes: tuple[int, int], delta: float, z: float) -> FloatArray:
    p_low, _ = wilson(counts[0], sizes[0], z)
    _, q_high = wilson(counts[1], sizes[1], z)
    return log_excess(p_low, q_high, delta)


def _best(lows: FloatArray, highs: FloatArray, score: FloatArray, inside: bool) -> Event:
    i, j = np.unravel_index(int(np.argmax(score)), score.shape)
    return Event(float(lows[i]), float(highs[j]), inside)


Score: TypeAlias = Callable[[FloatArray], FloatArray]

# Heavy-tailed noise has no usable mean, so the training half is clipped at these quantiles first.
_TRIM = 0.02
# Keeps the direction defined when a coordinate never moves.
_RIDGE = 1e-9


class Projection(Protocol):
    """A way of turning outputs of shape (m, d) into scores of shape (m,)."""

    def train(self, mechanism: Mechanism, pair: Pair, first: FloatArray, second: FloatArray, /) -> Score:
        """Return a scoring function.

        Parameters
        ----------
        mechanism : Mechanism
            What is attacked.
        pair : (object, object)
            Neighbouring data sets.
        first, second : ndarray of shape (m, d)
            Training outputs on each of them.

        Returns
        -------
        callable
            Takes outputs of shape (m, d) and returns scores of shape (m,).
        """
        ...


@dataclass(frozen=True, slots=True)
class Given:
    """A scoring function that the caller supplies.

    Attributes
    ----------
    function : callable
        Takes outputs of shape (m, d) and returns scores of shape (m,).

    Examples
    --------
    >>> from counterveil_lab.audit import Given, ThresholdTester
    >>> tester = ThresholdTester(20_000, projections=(Given(lambda outputs: outputs[:, 0]),))
    >>> tester.name
    'threshold'
    """

    function: Score

    def train(self, mechanism: Mechanism, pair: Pair, first: FloatArray, second: FloatArray, /) -> Score:  # noqa: ARG002
        """Return the function as it was given.

        Parameters
        ----------
        mechanism : Mechanism
            What is attacked.
        pair : (object, object)
            Neighbouring data sets.
        first, second : ndarray of shape (m, d)
            Training outputs on each of them.

        Returns
        -------
        callable
            Takes outputs of shape (m, d) and returns scores of shape (m,).
        """
        return self.function


@dataclass(frozen=True, slots=True)
class LinearDiscriminant:
    """The direction that best separates the two training halves (Fisher's), robust to heavy tails."""

    def train(self, mechanism: Mechanism, pair: Pair, first: FloatArray, second: FloatArray, /) -> Score:  # noqa: ARG002
        """Return the scores along Fisher's direction, from clipped sample means and covariances.

        Parameters
        ----------
        mechanism : Mechanism
            What is attacked.
        pair : (object, object)
            Neighbouring data sets.
        first, second : ndarray of shape (m, d)
            Training outputs on each of them.

        Returns
        -------
        callable
            Takes outputs of shape (m, d) and returns scores of shape (m,).
        """
        low, high = np.quantile(np.concatenate([first, second]), [_TRIM, 1 - _TRIM], axis=0)
        a, b = np.clip(first, low, high), np.clip(second, low, high)
        gap = a.mean(axis=0) - b.mean(axis=0)
        spread = np.atleast_2d(np.cov(a, rowvar=False)) + np.atleast_2d(np.cov(b, rowvar=False))
        ridge = _RIDGE * max(float(np.trace(spread)) / len(spread), np.finfo(float).tiny)
        direction = np.linalg.solve(spread + ridge * np.eye(len(spread)), gap)
        norm = float(np.linalg.norm(direction))
        unit = direction / norm if norm > 0 else np.eye(len(spread))[0]
        return lambda outputs: outputs @ unit


@dataclass(frozen=True, slots=True)
class LikelihoodRatio:
    """Log ratio of the two densities: the best score by the Neyman-Pearson lemma; needs ``log_density``."""

    def train(self, mechanism: Mechanism, pair: Pair, first: FloatArray, second: FloatArray, /) -> Score:  # noqa: ARG002
        """Return the log ratio, cut to [-1e6, 1e6] so that an infinite one stays a score.

        Parameters
        ----------
        mechanism : WhiteBox
            What is attacked.
        pair : (object, object)
            Neighbouring data sets.
        first, second : ndarray of shape (m, d)
            Training outputs on each of them.

        Returns
        -------
        callable
            Takes outputs of shape (m, d) and returns scores of shape (m,).

        Raises
        ------
        CounterveilError
            A mechanism without ``log_density`` (CV-A002).
        """
        if not isinstance(mechanism, WhiteBox):
            raise needs_density(mechanism)
        white: WhiteBox = mechanism
        scalar = first.shape[1] == 1

        def score(outputs: FloatArray) -> FloatArray:
            points = outputs[:, 0] if scalar else outputs
            with np.errstate(invalid="ignore"):
                ratio = white.log_density(pair[0], points) - white.log_density(pair[1], points)
            return np.clip(np.nan_to_num(ratio, nan=0.0, posinf=1e6, neginf=-1e6), -1e6, 1e6)

        return score


_FEWEST = 8


@dataclass(frozen=True, slots=True)
class ThresholdTester:
    """A lower bound on epsilon from samples alone.

    Attributes
    ----------
    samples : int, default 100000
        Number of releases that are drawn from each data set, at least 8.
    projections : tuple of Projection
        `LinearDiscriminant`, `LikelihoodRatio`, `Given` or objects of your own, which turn vectors into
        scores. Default:
        numbers are taken as they are, and vectors are projected on a trained linear discriminant.
    name : str, default "threshold"
        Name shown in reports.

    Raises
    ------
    CounterveilError
        Too few samples (CV-A001).

    Notes
    -----
    (epsilon, delta)-DP says P(E) <= e^epsilon Q(E) + delta for every event E. Events are chosen on half of
    the samples. On the other half, Clopper-Pearson limits p <= P(E) and q >= Q(E) hold together for every
    event and both directions with probability 1 - error (Bonferroni), and so does

        epsilon >= ln((p - delta) / q).

    Examples
    --------
    >>> from counterveil_lab.audit import ThresholdTester
    >>> ThresholdTester(20_000).samples
    20000
    """

    samples: int = 100_000
    projections: tuple[Projection, ...] = ()
    name: str = "threshold"

    def __post_init__(self) -> None:
        if self.samples < _FEWEST:
            raise out_of_range("samples", self.samples, f"at least {_FEWEST}", "use about 100000 samples")

    def examine(
        self, mechanism: Mechanism, pair: Pair, claim: Budget, *, error: float, rng: np.random.Generator
    ) -> LowerBound:
        """Return the best lower bound on epsilon at the claimed delta.

        Parameters
        ----------
        mechanism : Mechanism
            What is attacked.
        pair : (object, object)
            Neighbouring data sets.
        claim : Budget
            The claimed epsilon and delta.
        error : float
            Probability with which the bound may be wrong, above 0 and below 1.
        rng : numpy.random.Generator
            Where randomness comes from.

        Returns
        -------
        LowerBound
            The bound and the event that shows it.

        Raises
        ------
        CounterveilError
            An `error` out of range (CV-A001), or outputs that cannot be audited (CV-A003).
        """
        if not 0 < error < 1:
            raise out_of_range("error", error, "a probability above 0 and below 1", "use about 0.001")
        delta = float(claim.delta)
        outputs = draw(mechanism, pair, self.samples, rng)
        cut = self.samples // 2
        training = (outputs[0][:cut], outputs[1][:cut])
        testing = (outputs[0][cut:], outputs[1][cut:])
        bets: list[tuple[Event, FloatArray, FloatArray, str]] = []
        for projection in self._projections(outputs[0].shape[1]):
            score = projection.train(mechanism, pair, *training)
            trained, tested = [score(x) for x in training], [score(x) for x in testing]
            for p, q, side in ((0, 1, "first"), (1, 0, "second")):
                events = choose_events(trained[p], trained[q], delta, error)
                bets += [(event, tested[p], tested[q], side) for event in events]
        return self._settle(bets, claim, error)

    def _projections(self, dimensions: int) -> tuple[Projection, ...]:
        if self.projections:
            return self.projections
        return (Given(lambda outputs: outputs[:, 0]),) if dimensions == 1 else (LinearDiscriminant(),)

    def _settle(
        self, bets: list[tuple[Event, FloatArray, FloatArray, str]], claim: Budget, error: float
    ) -> LowerBound:
        trials = len(bets[0][1])
        hits_p = np.array([event.hits(p) for event, p, _, _ in bets], dtype=np.float64)
        hits_q = np.array([event.hits(q) for event, _, q, _ in bets], dtype=np.float64)
        # Two limits for each bet share the error.
        share = error / (2 * len(bets))
        low, high = lower_bound(hits_p, trials, share), upper_bound(hits_q, trials, share)
        bounds = log_excess(low, high, float(claim.delta))
        best = int(np.argmax(bounds))
        event, _, _, side = bets[best]
        witness = (
            f"{event}: {int(hits_p[best])} of {trials} on the {side} data set (at least {low[best]:.4g}), "
            f"{int(hits_q[best])} of {trials} on its neighbour (at most {high[best]:.4g})"
        )
        return LowerBound(
            tester=self.name,
            quantity=Quantity.EPSILON,
            found=float(bounds[best]),
            claimed=float(claim.epsilon),
            confidence=1 - error,
            witness=witness,
        )


# A tester that needs one run: many canaries, each in one of two forms by a coin, and a guess for each of them.
#
# Steinke, Nasr and Jagielski (2023), "Privacy auditing with one (1) training run". If every canary's form is protected
# by (epsilon, delta), the number of right guesses among r is not larger, but for delta, than that of r coins with
# probability e^epsilon / (1 + e^epsilon).


_HALVINGS = 50
_MOST_EPSILON = 64.0


@runtime_checkable
class Canaried(Protocol):
    """A release with many canaries in its data, each of which has one of two forms."""

    def scores(self, forms: NDArray[np.bool_], rng: np.random.Generator, /) -> FloatArray:
        """Return one score for each canary from one run.

        Parameters
        ----------
        forms : ndarray of bool
            Whether each canary has its second form.
        rng : numpy.random.Generator
            Where randomness comes from.

        Returns
        -------
        ndarray
            Scores: large where the second form looks likelier.
        """
        ...


@dataclass(frozen=True, slots=True)
class OneRunTester:
    """A lower bound on epsilon from a single run with many canaries.

    The form of each canary is drawn by a coin and guessed from its score. Guesses are made for all canaries
    and, apart, for those with the largest scores; the two share the error.

    Attributes
    ----------
    canaries : int, default 1000
        Number of canaries, at least 2.
    sure : float, default 0.25
        Fraction of the canaries with the largest scores that are guessed apart, above 0 and at most 1.
    name : str, default "one run"
        Name shown in reports.

    Raises
    ------
    CounterveilError
        An argument out of range (CV-A001).

    References
    ----------
    .. [1] Steinke, T., Nasr, M. and Jagielski, M. (2023). Privacy auditing with one (1) training run.
    NeurIPS.

    Examples
    --------
    >>> from counterveil_lab.audit import OneRunTester
    >>> OneRunTester(canaries=500).sure
    0.25
    """

    canaries: int = 1000
    sure: float = 0.25
    name: str = "one run"

    def __post_init__(self) -> None:
        if self.canaries < 2 or not 0 < self.sure <= 1:
            raise out_of_range(
                "canaries, sure",
                (self.canaries, self.sure),
                "two canaries or more, and a part of them above 0 and at most 1",
                "use about 1000 canaries and 0.25",
            )

    def examine(
        self,
        mechanism: Mechanism,
        pair: Pair,  # noqa: ARG002 - the canaries' forms are the neighbours
        claim: Budget,
        *,
        error: float,
        rng: np.random.Generator,
    ) -> LowerBound:
        """Return the best lower bound on epsilon at the claimed delta.

        Parameters
        ----------
        mechanism : Canaried
            A mechanism with ``scores``.
        pair : (object, object)
            Not used: the canaries' forms are the neighbours.
        claim : Budget
            The claimed epsilon and delta.
        error : float
            Probability with which the bound may be wrong, above 0 and below 1.
        rng : numpy.random.Generator
            Where randomness comes from.

        Returns
        -------
        LowerBound
            The bound and the number of right guesses.

        Raises
        ------
        CounterveilError
            A mechanism without ``scores`` (CV-A002).
        """
        if not isinstance(mechanism, Canaried):
            raise refusal("CV-A002", got=type(mechanism).__name__)
        forms = rng.random(self.canaries) < 0.5
        scores = np.asarray(mechanism.scores(forms, rng), dtype=np.float64)
        order = np.argsort(-np.abs(scores), kind="stable")
        best = (-1.0, 0, 0)
        for guesses in (self.canaries, max(int(self.sure * self.canaries), 1)):
            chosen = order[:guesses]
            right = int(np.count_nonzero((scores[chosen] > 0) == forms[chosen]))
            found = one_run_epsilon(right, guesses, self.canaries, float(claim.delta), error / 2)
            best = max(best, (found, right, guesses))
        return LowerBound(
            tester=self.name,
            quantity=Quantity.EPSILON,
            found=best[0],
            claimed=float(claim.epsilon),
            confidence=1 - error,
            witness=f"{best[1]} of {best[2]} guesses right, with {self.canaries} canaries in one run",
        )


def one_run_epsilon(right: int, guesses: int, canaries: int, delta: float, error: float) -> float:
    """Return the largest epsilon at which so many right guesses are rarer than `error`."""
    if _chance(right, guesses, canaries, 0.0, delta) > error:
        return 0.0
    low, high = 0.0, _MOST_EPSILON
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        low, high = (
            (middle, high) if _chance(right, guesses, canaries, middle, delta) <= error else (low, middle)
        )
    return low


def _chance(right: int, guesses: int, canaries: int, epsilon: float, delta: float) -> float:
    """Return the most that the probability of so many right guesses can be: Theorem 5.2 of the paper."""
    truth = 1 / (1 + np.exp(-epsilon))

    def at_least(count: FloatArray) -> FloatArray:
        return np.where(count <= 0, 1.0, bdtrc(np.maximum(count - 1, 0), guesses, truth))

    (pure,) = at_least(np.array([float(right)]))
    if delta == 0:
        return float(pure)
    fewer = np.arange(1.0, canaries + 1)
    return float(pure + 2 * canaries * delta * ((at_least(right - fewer) - pure) / fewer).max())
