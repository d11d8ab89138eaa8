"""Testers that need no draws: a claim against the mechanism's own density, and sensitivity over all small data sets."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from numbers import Rational
from typing import Any, TypeAlias

import numpy as np

from counterveil.errors import refusal
from counterveil.privacy import Budget
from counterveil_lab.audit.profile import Line, Outputs, check_normalised, delta_at, largest_log_ratio
from counterveil_lab.audit.report import (
    LowerBound,
    Mechanism,
    Pair,
    Quantity,
    WhiteBox,
    needs_density,
    out_of_range,
)

# The integral is asked for this share of the claimed delta.
_RELATIVE_TOLERANCE = 1e-5


@dataclass(frozen=True, slots=True)
class ExactTester:
    """Compares a claim with the mechanism's own density: no samples, no chance.

    For a pure claim it finds the largest log ratio of the densities on two neighbours; for a claim with delta
    the least delta at the claimed epsilon.

    Attributes
    ----------
    outputs : Line or Points or Cloud
        Where to look. `Line`: numbers with a density; `Points`: a discrete distribution; `Cloud`: vectors,
        for pure claims. Default: ``Line()``.
    name : str, default "exact"
        Name shown in reports.

    Examples
    --------
    >>> import numpy as np
    >>> from counterveil_lab.audit import ExactTester, audit
    >>> from counterveil.privacy import Budget
    >>> class NoisySum:
    ...     def __init__(self, scale):
    ...         self.scale = scale
    ...     def sample(self, dataset, count, rng):
    ...         return sum(dataset) + rng.laplace(0, self.scale, count)
    ...     def log_density(self, dataset, outputs):
    ...         return -np.abs(outputs - sum(dataset)) / self.scale - np.log(2 * self.scale)
    >>> pair = ((0, 0), (0, 1))
    >>> audit(Budget(1), NoisySum(1), NoisySum(1 / 3), [pair], [ExactTester()], seed=1).verdict.value
    'passed'
    """

    outputs: Outputs = field(default_factory=Line)
    name: str = "exact"

    def examine(
        self,
        mechanism: Mechanism,
        pair: Pair,
        claim: Budget,
        *,
        error: float,  # noqa: ARG002
        rng: np.random.Generator,
    ) -> LowerBound:
        """Return the epsilon found (pure claims), or the delta found at the claimed epsilon.

        Parameters
        ----------
        mechanism : WhiteBox
            A mechanism with ``log_density``.
        pair : (object, object)
            Neighbouring data sets.
        claim : Budget
            The claimed epsilon and delta.
        error : float
            Not used: the bound involves no chance.
        rng : numpy.random.Generator
            Draws the pilot sample that says where outputs lie.

        Returns
        -------
        LowerBound
            The bound and where it was found.

        Raises
        ------
        CounterveilError
            A mechanism without ``log_density`` (CV-A002), a density that does not integrate to one (CV-A005),
            or vectors with a delta (CV-A007).
        """
        if not isinstance(mechanism, WhiteBox):
            raise needs_density(mechanism)
        return (
            self._pure(mechanism, pair, claim, rng)
            if claim.pure
            else self._approximate(mechanism, pair, claim, rng)
        )

    def _pure(self, mechanism: WhiteBox, pair: Pair, claim: Budget, rng: np.random.Generator) -> LowerBound:
        if isinstance(self.outputs, Line):
            check_normalised(mechanism, pair, self.outputs, rng)
        ratio = largest_log_ratio(mechanism, pair, self.outputs, rng)
        where = ", ".join(f"{value:.8g}" for value in ratio.output)
        return LowerBound(
            tester=self.name,
            quantity=Quantity.EPSILON,
            found=ratio.value,
            claimed=float(claim.epsilon),
            confidence=1.0,
            witness=f"output ({where}), {ratio.direction}",
        )

    def _approximate(
        self, mechanism: WhiteBox, pair: Pair, claim: Budget, rng: np.random.Generator
    ) -> LowerBound:
        epsilon, claimed = float(claim.epsilon), float(claim.delta)
        delta = delta_at(epsilon, mechanism, pair, self.outputs, rng, _RELATIVE_TOLERANCE * claimed)
        return LowerBound(
            tester=self.name,
            quantity=Quantity.DELTA,
            found=delta.low,
            claimed=claimed,
            confidence=1.0,
            witness=f"hockey-stick divergence at epsilon {epsilon:g}, {delta.direction}",
            accuracy=delta.high - delta.low,
        )


_MOST_DATASETS = 2_000_000


def _everything(dataset: tuple[Any, ...]) -> bool:  # noqa: ARG001
    return True


@dataclass(frozen=True, slots=True)
class Universe:
    """All small data sets: the rows that each position may hold.

    A data set is a tuple of rows, and neighbours differ at one position. Iterating over a universe yields
    each unordered pair of neighbours once, so that it serves as the neighbours of `audit`.

    Attributes
    ----------
    choices : tuple of tuple
        For each position the rows that it may hold.
    admits : callable
        Takes a data set and returns whether it belongs to the universe. Default: all do.

    Examples
    --------
    >>> from counterveil_lab.audit import all_outcome_changes
    >>> universe = all_outcome_changes(2, [0, 1])
    >>> len(list(universe.datasets())), len(list(universe))
    (4, 4)
    """

    choices: tuple[tuple[Any, ...], ...]
    admits: Callable[[tuple[Any, ...]], bool] = _everything

    def where(self, admits: Callable[[tuple[Any, ...]], bool]) -> Universe:
        """Return the universe of the data sets that a condition accepts, for instance those with both arms
        present.

        Parameters
        ----------
        admits : callable
            Takes a data set and returns whether it is kept.

        Returns
        -------
        Universe
            The smaller universe.
        """
        return Universe(self.choices, admits)

    def datasets(self) -> Iterator[tuple[Any, ...]]:
        """Return an iterator over all data sets.

        Returns
        -------
        iterator of tuple
            The data sets.
        """
        return (dataset for dataset in itertools.product(*self.choices) if self.admits(dataset))

    def neighbours(self, dataset: tuple[Any, ...]) -> Iterator[tuple[Any, ...]]:
        """Yield the data sets that differ from one in one row.

        Parameters
        ----------
        dataset : tuple
            A data set.

        Yields
        ------
        tuple
            A neighbour.
        """
        for i, rows in enumerate(self.choices):
            for row in rows:
                if row != dataset[i]:
                    other = (*dataset[:i], row, *dataset[i + 1 :])
                    if self.admits(other):
                        yield other

    def __iter__(self) -> Iterator[Pair]:
        order = [{row: k for k, row in enumerate(rows)} for rows in self.choices]
        for dataset in self.datasets():
            rank = [order[i][row] for i, row in enumerate(dataset)]
            for other in self.neighbours(dataset):
                if rank < [order[i][row] for i, row in enumerate(other)]:
                    yield dataset, other


def all_outcome_changes(n: int, values: Sequence[Any], fixed: Sequence[Any] | None = None) -> Universe:
    """Return all data sets of n outcomes; neighbours differ in one outcome.

    Parameters
    ----------
    n : int
        Number of rows, at least 1.
    values : sequence
        Values that an outcome may have, at least two.
    fixed : sequence, optional
        One public value for each row, such as its arm; a row is then (fixed[i], outcome). Default: a row is
        the outcome.

    Returns
    -------
    Universe
        The data sets.

    Raises
    ------
    CounterveilError
        Arguments out of range (CV-A001), or more than two million data sets (CV-A006).

    Examples
    --------
    >>> from counterveil_lab.audit import all_outcome_changes
    >>> next(all_outcome_changes(2, [0, 1], fixed=["control", "treated"]).datasets())
    (('control', 0), ('treated', 0))
    """
    _check_size(n, len(set(values)))
    if fixed is None:
        return Universe(tuple(tuple(dict.fromkeys(values)) for _ in range(n)))
    if len(fixed) != n:
        raise out_of_range("fixed", fixed, f"one public value for each of {n} rows", "pass n values")
    return Universe(tuple(tuple((public, value) for value in dict.fromkeys(values)) for public in fixed))


def all_record_replacements(n: int, records: Sequence[Any]) -> Universe:
    """Return all data sets of n records; neighbours differ in one whole record.

    Parameters
    ----------
    n : int
        Number of rows, at least 1.
    records : sequence
        Records that a row may be, at least two.

    Returns
    -------
    Universe
        The data sets.

    Raises
    ------
    CounterveilError
        Arguments out of range (CV-A001), or more than two million data sets (CV-A006).

    Examples
    --------
    >>> from counterveil_lab.audit import all_record_replacements
    >>> len(list(all_record_replacements(3, ["a", "b"]).datasets()))
    8
    """
    _check_size(n, len(set(records)))
    return Universe(tuple(tuple(dict.fromkeys(records)) for _ in range(n)))


def _check_size(n: int, values: int) -> None:
    if n < 1 or values < 2:
        raise out_of_range("n, values", (n, values), "n >= 1 and two or more values", "widen the grid")
    if values**n > _MOST_DATASETS:
        raise refusal("CV-A006", most_datasets=_MOST_DATASETS, values=values, n=n, values_2=values**n)


Dataset: TypeAlias = tuple[Any, ...]
Statistic: TypeAlias = Callable[[Dataset], Any]
Distance: TypeAlias = Callable[[Any, Any], Any]

# Sums of floats that should be equal differ in their last digits.
_FLOAT_SLACK = 1e-12


@dataclass(frozen=True, slots=True)
class Change:
    """The largest change of a statistic between neighbours, compared with a claimed bound.

    Attributes
    ----------
    largest : number
        The largest change that was found.
    first, second : tuple
        The neighbouring data sets where it was found.
    claimed : number or None
        The claimed bound.
    comparisons : int
        Number of ordered pairs that were compared.
    """

    largest: Any
    first: Dataset
    second: Dataset
    claimed: Any
    comparisons: int

    @property
    def violated(self) -> bool:
        """Whether a change exceeds the claimed bound (exactly, when both are rationals)."""
        if self.claimed is None:
            return False
        if isinstance(self.largest, Rational) and isinstance(self.claimed, Rational):
            return self.largest > self.claimed
        return float(self.largest) > float(self.claimed) * (1 + _FLOAT_SLACK)

    @property
    def attained(self) -> Any:
        """The fraction of the claimed bound that is reached: 1 means that the bound is tight."""
        if self.claimed is None:
            return None
        return _ratio(self.largest, self.claimed)

    def __str__(self) -> str:
        claim = ""
        if self.claimed is not None:
            word = "VIOLATED" if self.violated else "holds"
            claim = f"; claimed {self.claimed}, {word}, attained {float(self.attained):.6g}"
        return (
            f"largest change {self.largest} in {self.comparisons} comparisons{claim}\n"
            f"  between {self.first}\n  and     {self.second}"
        )


def absolute(a: Any, b: Any) -> Any:
    """Return the distance of two numbers.

    Parameters
    ----------
    a, b : number
        Two numbers.

    Returns
    -------
    number
        Absolute value of their difference; exact for rationals.

    Examples
    --------
    >>> from counterveil_lab.audit import absolute
    >>> absolute(1, 3)
    2
    """
    return abs(a - b)


def l1(a: Any, b: Any) -> Any:
    """Return the l1 distance of two vectors.

    Parameters
    ----------
    a, b : sequence of number
        Vectors of equal length.

    Returns
    -------
    number
        Sum of the coordinates' distances; exact for rationals.

    Examples
    --------
    >>> from counterveil_lab.audit import l1
    >>> l1((0, 1), (2, 2))
    3
    """
    return sum(abs(x - y) for x, y in zip(a, b, strict=True))


def l2(a: Any, b: Any) -> float:
    """Return the Euclidean distance of two vectors.

    Parameters
    ----------
    a, b : sequence of number
        Vectors of equal length.

    Returns
    -------
    float
        The distance.

    Examples
    --------
    >>> from counterveil_lab.audit import l2
    >>> l2((0, 0), (3, 4))
    5.0
    """
    return math.sqrt(sum((x - y) ** 2 for x, y in zip(a, b, strict=True)))


def largest_change(
    statistic: Statistic, universe: Universe, *, claimed: Any = None, distance: Distance = absolute
) -> Change:
    """Return the global sensitivity of a statistic over all small data sets.

    Parameters
    ----------
    statistic : callable
        Takes a data set and returns a number, or what `distance` takes.
    universe : Universe
        The data sets and their neighbours.
    claimed : number, optional
        A bound to compare with. Default: none.
    distance : callable, default absolute
        Distance of two values: `absolute`, `l1`, `l2` or a function of your own.

    Returns
    -------
    Change
        The largest change, where it was found, and whether the claim is violated.

    Raises
    ------
    CounterveilError
        A universe without neighbours (CV-A004).

    Examples
    --------
    >>> from fractions import Fraction
    >>> from counterveil_lab.audit import all_outcome_changes, largest_change
    >>> universe = all_outcome_changes(3, [0, 1])
    >>> change = largest_change(lambda outcomes: Fraction(sum(outcomes), 3), universe, claimed=Fraction(1, 3))
    >>> change.largest, change.violated
    (Fraction(1, 3), False)
    """
    return _largest(
        ((distance(a, b), first, second) for first, a, second, b in _compare(statistic, universe)), claimed
    )


def check_local_bound(
    statistic: Statistic, bound: Statistic, universe: Universe, *, distance: Distance = absolute
) -> Change:
    """Return the largest ratio of a change to the bound claimed for its first data set; above 1 the bound
    fails.

    Parameters
    ----------
    statistic : callable
        Takes a data set and returns a number, or what `distance` takes.
    bound : callable
        Takes a data set and returns the claimed local sensitivity there.
    universe : Universe
        The data sets and their neighbours.
    distance : callable, default absolute
        Distance of two values: `absolute`, `l1`, `l2` or a function of your own.

    Returns
    -------
    Change
        The largest ratio, compared with 1.

    Raises
    ------
    CounterveilError
        A universe without neighbours (CV-A004).

    Examples
    --------
    >>> from counterveil_lab.audit import all_outcome_changes, check_local_bound
    >>> check_local_bound(sum, lambda outcomes: 1, all_outcome_changes(3, [0, 1])).violated
    False
    """
    bounds = _Memory(bound)
    ratios = (
        (_ratio(distance(a, b), bounds(first)), first, second)
        for first, a, second, b in _compare(statistic, universe)
    )
    return _largest(ratios, 1)


def check_smooth_bound(bound: Statistic, beta: float | Fraction, universe: Universe) -> Change:
    """Return the largest change of the logarithm of a smooth bound between neighbours.

    Parameters
    ----------
    bound : callable
        S: takes a data set and returns a number of at least 0.
    beta : float or Fraction
        The claimed largest change of ln S.
    universe : Universe
        The data sets and their neighbours.

    Returns
    -------
    Change
        The largest change of ln S, compared with `beta`.

    Raises
    ------
    CounterveilError
        A universe without neighbours (CV-A004).

    Examples
    --------
    >>> from counterveil_lab.audit import all_outcome_changes, check_smooth_bound
    >>> check_smooth_bound(lambda outcomes: 1 + sum(outcomes), 0.1, all_outcome_changes(3, [0, 1])).violated
    True
    """
    steps = ((_log_step(a, b), first, second) for first, a, second, b in _compare(bound, universe))
    return _largest(steps, float(beta))


class _Memory:
    """A statistic that is computed once for each data set."""

    def __init__(self, statistic: Statistic) -> None:
        self._statistic = statistic
        self._known: dict[Dataset, Any] = {}

    def __call__(self, dataset: Dataset) -> Any:
        # Once: most of the time goes into the hash of a data set.
        if (known := self._known.get(dataset, self)) is self:
            known = self._known[dataset] = self._statistic(dataset)
        return known


def _compare(statistic: Statistic, universe: Universe) -> Iterator[tuple[Dataset, Any, Dataset, Any]]:
    """Yield every ordered pair of neighbours with the statistic on both."""
    remembered = _Memory(statistic)
    for first in universe.datasets():
        value = remembered(first)
        for second in universe.neighbours(first):
            yield first, value, second, remembered(second)


def _largest(changes: Iterator[tuple[Any, Dataset, Dataset]], claimed: Any) -> Change:
    best: tuple[Any, Dataset, Dataset] = (0, (), ())
    comparisons = 0
    for change, first, second in changes:
        comparisons += 1
        # A change that is not a number must not vanish in a comparison: it counts as unbounded.
        size = math.inf if math.isnan(change) else change
        if size > best[0] or comparisons == 1:
            best = (size, first, second)
    if comparisons == 0:
        raise refusal("CV-A004", got="a universe without neighbours")
    return Change(*best, claimed=claimed, comparisons=comparisons)


def _ratio(change: Any, bound: Any) -> Any:
    if bound == 0:
        return 0 if change == 0 else math.inf
    exact = isinstance(change, Rational) and isinstance(bound, Rational)
    return Fraction(change) / Fraction(bound) if exact else float(change) / float(bound)


def _log_step(a: Any, b: Any) -> float:
    if a == b:
        return 0.0
    return abs(math.log(a) - math.log(b)) if a > 0 and b > 0 else math.inf
