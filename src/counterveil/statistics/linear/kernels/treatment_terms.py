"""Bends and products of covariates that treatment follows beyond a line in them, found by score tests.

Outcomes that follow the same terms bias an estimate whose weights do not balance them, and no other term biases it by
more than chance does. Candidates are steps, squares and cubes of numbers and products of any two columns. A candidate
is tested against the residuals of a logistic model (Rao 1948), the columns of the model being projected out; the ones
that stand out are added to the model, and the rest are tested again. Nothing here reads an outcome.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve, solve_triangular
from scipy.special import expit, logit

from counterveil.numerics.arrays import Floats
from counterveil.numerics.columns import scores as scores_of

Lines = NDArray[np.floating]
Places = NDArray[np.intp]

# Chosen by `python -m experiments.outcome_level.redrawn --tuning`.
# Rounds of tests, and how many terms each may add: fewer where rows are many and columns cost time.
_ROUNDS, _TAKEN, _TAKEN_OF_MANY, _MANY_ROWS = 2, 8, 4, 50_000
# Standard errors at which a term stands out, and the most that it may go with one that was taken.
_STANDS_OUT, _ALIKE = 3.0, 0.6
# Where numbers are cut into steps.
_STEPS = (0.2, 0.4, 0.6, 0.8)
# Rows that these places are read off.
_RANKED = 512
# Bends and products that are tested closely, for each that may be taken, and rows that they are found among.
_CLOSELY, _ROUGHLY = 4, 20_000
# Rows times columns times candidates that a round of tests multiplies: with more rows every k-th is read, but no
# fewer than so many.
_WORK, _FEWEST_ROWS = 6e7, 4000
# Standard deviations below which a column is constant.
_CONSTANT = 1e-6
# Scores nearer to 0 or 1 than this count as that near.
_LEAST = 1e-3
# Squares and products all enter the model where there are so few of them, and so many rows for each: a bend of many
# covariates is in none of them alone.
_MOST_QUADRATIC, _ROWS_EACH = 40, 50


@dataclass(frozen=True, slots=True)
class TreatmentTerm:
    """A function of one column or two: a step at `cut`, a power, or a product with the column `other`."""

    column: int
    power: int = 1
    cut: float | None = None
    other: int | None = None

    def of(self, standard: Lines) -> Lines:
        """Return its values (n,) on standardised columns (d, n)."""
        own = standard[self.column]
        if self.cut is not None:
            return np.asarray(own > self.cut, standard.dtype)
        return np.asarray(own**self.power if self.other is None else own * standard[self.other])


@dataclass(frozen=True, slots=True)
class TreatmentTerms:
    """Standardised terms (m, n), and the direction (n,) in which treatment follows bends and products; None if none."""

    columns: Lines
    direction: Floats | None


def treatment_terms(
    lines: Lines, numbers: Places, treated: NDArray[np.bool_], scores: NDArray[np.floating]
) -> TreatmentTerms:
    """Return the terms of centred columns (d, n) that treatment (n,) follows beyond the fitted scores (n,).

    `numbers` are the places of the columns of which steps and powers are taken.
    """
    rows = len(treated)
    deviation = np.sqrt(np.einsum("ij,ij->i", lines, lines, dtype=np.float64) / rows)
    kept = np.flatnonzero(deviation > _CONSTANT)
    numbers = np.flatnonzero(np.isin(kept, numbers))
    tested = max(len(kept) * (len(_STEPS) + 2) * max(len(numbers), 1) + len(kept) ** 2, 1)
    stride = max(1, min(round(rows * tested / _WORK), rows // _FEWEST_ROWS))
    standard = np.ascontiguousarray(lines[kept, ::stride]) / deviation[kept, None].astype(lines.dtype)
    model = _Model(standard, treated[::stride], scores[::stride])
    candidates = _Candidates(standard, numbers, model.curvature)
    taken = _TAKEN if rows < _MANY_ROWS else _TAKEN_OF_MANY
    for done in range(1, _ROUNDS + 1):
        model.add(*_outstanding(model, candidates, taken))
        if len(model.terms) < done * taken or done == _ROUNDS:
            break
        model.look()
    outstanding = len(model.terms)
    model.add(*_quadratic(standard, numbers, rows, model.terms))
    whole = np.empty((len(model.terms), rows), np.float32)
    for place, term in enumerate(model.terms):
        own = TreatmentTerm(0, term.power, term.cut, None if term.other is None else 1)
        pair = [term.column] if term.other is None else [term.column, term.other]
        whole[place] = own.of(lines[kept[pair]] / deviation[kept[pair], None].astype(lines.dtype))
    whole = _standardised(whole)
    return TreatmentTerms(
        whole[:outstanding], scores_of(whole, 0, rows, model.slopes) if model.terms else None
    )


def _bends(standard: Lines, numbers: Places) -> tuple[list[TreatmentTerm], Lines]:
    """Return steps, squares and cubes of the numbers, with their values (c, n), steps first."""
    own = standard[numbers]
    few = np.sort(own[:, :: max(1, own.shape[1] // _RANKED)], axis=1)
    cuts = few[:, (np.array(_STEPS) * (few.shape[1] - 1)).astype(np.intp)]
    terms = [
        TreatmentTerm(int(j), cut=float(cut))
        for step in range(len(_STEPS))
        for j, cut in zip(numbers, cuts[:, step], strict=True)
    ]
    terms += [TreatmentTerm(int(j), power) for power in (2, 3) for j in numbers]
    values = np.empty((len(terms), own.shape[1]), standard.dtype)
    for step in range(len(_STEPS)):
        np.greater(own, cuts[:, step, None], out=values[step * len(own) : (step + 1) * len(own)])
    squares = values[len(_STEPS) * len(own) :][: len(own)]
    np.multiply(own, own, out=squares)
    np.multiply(squares, own, out=values[(len(_STEPS) + 1) * len(own) :])
    return terms, values


class _Candidates:
    """Bends of numbers and products of two columns (d, n), ordered roughly by how far treatment follows them.

    Every so many rows are read, and the spreads are those under the first model, which later ones hardly change.
    """

    def __init__(self, standard: Lines, numbers: Places, curvature: Lines) -> None:
        self.whole, self.stride = standard, max(1, standard.shape[1] // _ROUGHLY)
        self.standard = np.ascontiguousarray(standard[:, :: self.stride])
        curvature = curvature[:: self.stride]
        self.bends, self.values = _bends(self.standard, numbers)
        within, total = self.values @ curvature, float(curvature.sum())
        self.means = self.values.mean(axis=1)
        steps = len(_STEPS) * len(numbers)
        squares = np.append(within[:steps], np.square(self.values[steps:]) @ curvature)
        spread = squares + self.means * (self.means * total - 2.0 * within)
        self.spread = np.sqrt(np.maximum(spread, _LEAST * total))
        rooted = np.square(self.standard) * np.sqrt(curvature)
        self.of_pairs = np.sqrt(np.maximum(rooted @ rooted.T, _LEAST * total))

    def nearest(self, left: Lines, count: int) -> tuple[list[TreatmentTerm], Lines]:
        """Return the bends and the products that what is `left` of treatment seems to follow most, `count` of each.

        Their values (2 count, n) are standardised.
        """
        left = left[:: self.stride]
        gain = np.abs(self.values @ left - self.means * float(left.sum())) / self.spread
        near = np.argsort(-gain, kind="stable")[:count]
        apart = np.triu(np.abs((self.standard * left) @ self.standard.T) / self.of_pairs, 1)
        pairs = np.argsort(-apart, axis=None, kind="stable")[: min(count, len(apart) * (len(apart) - 1) // 2)]
        one, other = np.unravel_index(pairs, apart.shape)
        terms = [self.bends[k] for k in near]
        terms += [TreatmentTerm(int(j), other=int(k)) for j, k in zip(one, other, strict=True)]
        values = np.empty((len(terms), self.whole.shape[1]), self.whole.dtype)
        for line, term in zip(values, terms, strict=True):
            line[:] = term.of(self.whole)
        return terms, _standardised(values)


def _quadratic(
    standard: Lines, numbers: Places, rows: int, known: list[TreatmentTerm]
) -> tuple[list[TreatmentTerm], Lines]:
    """Return the squares of numbers and products of two columns that are not known, where they are few beside rows."""
    one, other = np.triu_indices(len(standard), 1)
    if not 0 < len(one) + len(numbers) <= min(_MOST_QUADRATIC, rows / _ROWS_EACH):
        return [], standard[:0]
    every = [TreatmentTerm(int(j), 2) for j in numbers]
    every += [TreatmentTerm(int(j), other=int(k)) for j, k in zip(one, other, strict=True)]
    terms = [term for term in every if term not in known]
    values = np.array([term.of(standard) for term in terms], standard.dtype).reshape(-1, standard.shape[1])
    return terms, _standardised(values)


def _standardised(values: Lines) -> Lines:
    """Return lines (c, n) less their means over their deviations; zero where they are constant."""
    mean = values.mean(axis=1, keepdims=True, dtype=np.float64)
    values = values - mean.astype(values.dtype)
    deviation = np.sqrt(np.einsum("ij,ij->i", values, values, dtype=np.float64) / values.shape[1])
    values *= np.where(deviation > _CONSTANT, 1.0 / np.maximum(deviation, _CONSTANT), 0.0)[:, None].astype(
        values.dtype
    )
    return values


class _Model:
    """A logistic model of treatment (n,): an offset (n,), columns (a, n) with slopes, the last of them `terms`."""

    def __init__(self, standard: Lines, treated: NDArray[np.bool_], scores: NDArray[np.floating]) -> None:
        # In double precision: what rounding does to slopes must not show in weights.
        self.treated = treated.astype(np.float64)
        self.offset = logit(np.clip(scores.astype(np.float64), _LEAST, 1.0 - _LEAST))
        self.columns = np.concatenate([np.ones((1, len(self.offset))), standard])
        self.weights, self.terms = np.zeros(len(self.columns)), list[TreatmentTerm]()
        self.look()

    def look(self) -> None:
        """Find what is left of treatment under the present weights, and the curvature there."""
        chance = expit(self.offset + self.weights @ self.columns)
        self.left, self.curvature = self.treated - chance, chance * (1.0 - chance)
        self.root = np.sqrt(self.curvature)
        self.bent = self.columns * self.root
        self.products = self.bent @ self.bent.T
        self._factor()
        self.moved = False

    def _factor(self) -> None:
        # As if every slope had been drawn with a standard deviation of one.
        self.factor: tuple[Floats, bool] = cho_factor(
            self.products + np.eye(len(self.products)), lower=True, check_finite=False
        )

    @property
    def slopes(self) -> Floats:
        """Slopes (m,) of the terms."""
        return self.weights[len(self.weights) - len(self.terms) :]

    def add(self, terms: list[TreatmentTerm], values: Lines) -> None:
        """Take these terms in, if there are any, by one step of Newton's; what is left has to be looked at again."""
        if not terms:
            return
        if self.moved:
            self.look()
        bent = values * self.root
        cross = self.bent @ bent.T
        self.terms += terms
        self.products = np.block([[self.products, cross], [cross.T, bent @ bent.T]])
        self.columns = np.concatenate([self.columns, values])
        self.weights = np.append(self.weights, np.zeros(len(terms)))
        self._factor()
        self.weights = self.weights + cho_solve(self.factor, self.columns @ self.left - self.weights)
        self.moved = True

    def tests(self, values: Lines) -> Floats:
        """Return for candidates (c, n) how many standard errors treatment follows them by, beyond the model."""
        # Which terms are taken does not hang on last digits.
        bent = values * self.root.astype(values.dtype)
        cross = (self.bent.astype(values.dtype) @ bent.T).astype(np.float64)
        held = solve_triangular(self.factor[0], cross, lower=True, check_finite=False)
        variance = np.einsum("ij,ij->i", bent, bent) - np.einsum("ij,ij->j", held, held)
        gain = values @ self.left.astype(values.dtype) - cross.T @ cho_solve(
            self.factor, self.columns @ self.left
        )
        fine = variance > _LEAST * float(self.curvature.sum())
        return np.where(fine, np.abs(gain) / np.sqrt(np.where(fine, variance, 1.0)), 0.0)


def _outstanding(model: _Model, candidates: _Candidates, taken: int) -> tuple[list[TreatmentTerm], Lines]:
    """Return the candidates that stand out, at most `taken`, with their values (k, n)."""
    terms, values = candidates.nearest(model.left, _CLOSELY * taken)
    found = model.tests(values)
    before = model.columns[len(model.columns) - len(model.terms) :]
    chosen: list[int] = []
    for k in np.argsort(-found, kind="stable"):
        if found[k] < _STANDS_OUT or len(chosen) == taken:
            break
        arm_correlation = np.abs(np.concatenate([before, values[chosen]]) @ values[k])
        if not len(arm_correlation) or float(arm_correlation.max()) < _ALIKE * values.shape[1]:
            chosen.append(int(k))
    return [terms[k] for k in chosen], values[chosen]
