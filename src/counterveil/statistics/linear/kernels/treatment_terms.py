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
# Bends and products that are tested closely, for each that may be taken.
_CLOSELY = 6
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
class Term:
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
    direction: Lines | None


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
    candidates, values = _bends(standard, numbers)
    taken = _TAKEN if rows < _MANY_ROWS else _TAKEN_OF_MANY
    for done in range(1, _ROUNDS + 1):
        model.add(*_outstanding(model, candidates, values, taken))
        if len(model.terms) < done * taken or done == _ROUNDS:
            break
        model.look()
    outstanding = len(model.terms)
    model.add(*_quadratic(standard, numbers, rows, model.terms))
    whole = np.empty((len(model.terms), rows), np.float32)
    for place, term in enumerate(model.terms):
        own = Term(0, term.power, term.cut, None if term.other is None else 1)
        pair = [term.column] if term.other is None else [term.column, term.other]
        whole[place] = own.of(lines[kept[pair]] / deviation[kept[pair], None].astype(lines.dtype))
    whole = _standardised(whole)
    return TreatmentTerms(whole[:outstanding], model.slopes @ whole if model.terms else None)


def _bends(standard: Lines, numbers: Places) -> tuple[list[Term], Lines]:
    """Return steps, squares and cubes of the numbers, with their standardised values (c, n)."""
    own = standard[numbers]
    few = np.sort(own[:, :: max(1, own.shape[1] // _RANKED)], axis=1)
    cuts = few[:, (np.array(_STEPS) * (few.shape[1] - 1)).astype(np.intp)]
    terms = [
        Term(int(j), cut=float(cut))
        for step in range(len(_STEPS))
        for j, cut in zip(numbers, cuts[:, step], strict=True)
    ]
    terms += [Term(int(j), power) for power in (2, 3) for j in numbers]
    squares = own * own
    values = np.concatenate(
        [*(own > cuts[:, step, None] for step in range(len(_STEPS))), squares, squares * own]
    )
    return terms, _standardised(values.astype(standard.dtype, copy=False))


def _quadratic(standard: Lines, numbers: Places, rows: int, known: list[Term]) -> tuple[list[Term], Lines]:
    """Return the squares of numbers and products of two columns that are not known, where they are few beside rows."""
    one, other = np.triu_indices(len(standard), 1)
    if not 0 < len(one) + len(numbers) <= min(_MOST_QUADRATIC, rows / _ROWS_EACH):
        return [], standard[:0]
    every = [Term(int(j), 2) for j in numbers]
    every += [Term(int(j), other=int(k)) for j, k in zip(one, other, strict=True)]
    terms = [term for term in every if term not in known]
    values = np.array([term.of(standard) for term in terms], standard.dtype).reshape(-1, standard.shape[1])
    return terms, _standardised(values)


def _standardised(values: Lines) -> Lines:
    """Return lines (c, n) less their means over their deviations; zero where they are constant."""
    values = values - values.mean(axis=1, keepdims=True)
    deviation = np.sqrt(np.einsum("ij,ij->i", values, values) / values.shape[1])
    values *= np.where(deviation > _CONSTANT, 1.0 / np.maximum(deviation, _CONSTANT), 0.0)[:, None].astype(
        values.dtype
    )
    return values


class _Model:
    """A logistic model of treatment (n,): an offset (n,), columns (a, n) with slopes, the last of them `terms`."""

    def __init__(self, standard: Lines, treated: NDArray[np.bool_], scores: NDArray[np.floating]) -> None:
        self.standard, self.treated = standard, treated.astype(standard.dtype)
        self.offset = logit(np.clip(scores, _LEAST, 1.0 - _LEAST)).astype(standard.dtype)
        self.columns = np.concatenate([np.ones((1, len(self.offset)), standard.dtype), standard])
        self.weights, self.terms = np.zeros(len(self.columns)), list[Term]()
        self.look()

    def look(self) -> None:
        """Find what is left of treatment under the present weights, and the curvature there."""
        chance = expit(self.offset + self.weights.astype(self.offset.dtype) @ self.columns)
        self.left, self.curvature = self.treated - chance, chance * (1.0 - chance)
        self.bent = self.columns * self.curvature
        whole = (self.bent @ self.columns.T).astype(np.float64)
        # As if every slope had been drawn with a standard deviation of one.
        whole[np.diag_indices(len(whole))] += 1.0
        self.factor: tuple[Floats, bool] = cho_factor(whole, lower=True)

    @property
    def slopes(self) -> Lines:
        """Slopes (m,) of the terms."""
        return self.weights[len(self.weights) - len(self.terms) :].astype(np.float32)

    def add(self, terms: list[Term], values: Lines) -> None:
        """Take these terms in, if there are any, by one step of Newton's; what is left has to be looked at again."""
        if not terms:
            return
        self.terms += terms
        self.columns = np.concatenate([self.columns, values])
        self.weights = np.append(self.weights, np.zeros(len(terms)))
        self.look()
        self.weights = self.weights + cho_solve(self.factor, self.columns @ self.left - self.weights)

    def tests(self, values: Lines) -> Floats:
        """Return for candidates (c, n) how many standard errors treatment follows them by, beyond the model."""
        cross = (self.bent @ values.T).astype(np.float64)
        held = solve_triangular(self.factor[0], cross, lower=True)
        variance = np.square(values) @ self.curvature - np.einsum("ij,ij->j", held, held)
        gain = values @ self.left - cross.T @ cho_solve(self.factor, self.columns @ self.left)
        fine = variance > _LEAST * float(self.curvature.sum())
        return np.where(fine, np.abs(gain) / np.sqrt(np.where(fine, variance, 1.0)), 0.0)

    def nearest(self, values: Lines, count: int) -> Places:
        """Return the places of the candidates (c, n) that treatment seems to follow most."""
        spread = np.sqrt(np.maximum(np.square(values) @ self.curvature, _LEAST * self.curvature.sum()))
        return np.argsort(-np.abs(values @ self.left) / spread, kind="stable")[:count]

    def products(self, count: int) -> list[Term]:
        """Return the products of two columns that treatment seems to follow most."""
        gain = np.abs((self.standard * self.left) @ self.standard.T)
        squares = self.standard**2
        spread = np.sqrt(np.maximum((squares * self.curvature) @ squares.T, _LEAST * self.curvature.sum()))
        one, other = np.triu_indices(len(gain), 1)
        order = np.argsort(-(gain / spread)[one, other], kind="stable")[:count]
        return [Term(int(one[k]), other=int(other[k])) for k in order]


def _outstanding(
    model: _Model, candidates: list[Term], values: Lines, taken: int
) -> tuple[list[Term], Lines]:
    """Return the candidates and products that stand out, at most `taken`, with their values (k, n)."""
    near = model.nearest(values, _CLOSELY * taken)
    values, candidates = values[near], [candidates[k] for k in near]
    products = model.products(_CLOSELY * taken)
    pairs = np.array([(term.column, term.other) for term in products], np.intp).reshape(-1, 2)
    more = _standardised(model.standard[pairs[:, 0]] * model.standard[pairs[:, 1]])
    found = np.concatenate([model.tests(values), model.tests(more)])
    before = model.columns[len(model.columns) - len(model.terms) :]
    chosen: list[tuple[Term, Lines]] = []
    for k in np.argsort(-found, kind="stable"):
        if found[k] < _STANDS_OUT or len(chosen) == taken:
            break
        own = values[k] if k < len(values) else more[k - len(values)]
        others = [*before, *(other for _, other in chosen)]
        if all(abs(float(own @ other)) < _ALIKE * len(own) for other in others):
            chosen.append(((candidates + products)[k], own))
    return [term for term, _ in chosen], np.array([own for _, own in chosen]).reshape(-1, values.shape[1])
