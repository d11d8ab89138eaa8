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

# Chosen by `python -m experiments.outcome_level.surfaces --tuning`.
# Rounds of tests, and how many terms each may add: fewer where rows are many and columns cost time.
_ROUNDS, _TAKEN, _TAKEN_OF_MANY, _MANY_ROWS = 2, 8, 4, 50_000
# Standard errors at which a term stands out, and the most that it may go with one that was taken.
_STANDS_OUT, _ALIKE = 3.0, 0.6
# Where numbers are cut into steps.
_STEPS = (0.2, 0.4, 0.6, 0.8)
# Products that are tested closely, for each that may be taken.
_CLOSELY = 4
# Rows times columns times candidates that a round of tests multiplies: with more rows every k-th is read.
_WORK = 1.5e8
# Standard deviations below which a column is constant.
_CONSTANT = 1e-6
# Scores nearer to 0 or 1 than this count as that near.
_LEAST = 1e-3
_NEWTON_STEPS = 2


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
    """Standardised terms (m, n) and, from m = 1 on, the direction (n,) in which treatment follows them."""

    columns: Lines
    direction: Floats


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
    stride = max(1, round(rows * tested / _WORK))
    standard = np.ascontiguousarray(lines[kept, ::stride]) / deviation[kept, None].astype(lines.dtype)
    model = _Model.of(standard, treated[::stride], scores[::stride])
    candidates, values = _bends(standard, numbers)
    taken = _TAKEN if rows < _MANY_ROWS else _TAKEN_OF_MANY
    for _ in range(_ROUNDS):
        if not model.add(*_outstanding(model, candidates, values, taken)):
            break
    whole = np.empty((len(model.terms), rows), np.float32)
    for place, term in enumerate(model.terms):
        own = Term(0, term.power, term.cut, None if term.other is None else 1)
        pair = [term.column] if term.other is None else [term.column, term.other]
        whole[place] = _standard(own.of(lines[kept[pair]] / deviation[kept[pair], None]))
    return TreatmentTerms(whole, model.slopes @ whole)


def _standard(values: Lines) -> Lines:
    """Return values (n,) less their mean over their deviation; zero where they are constant."""
    values = values - values.mean()
    deviation = float(values.std())
    return np.asarray(values / deviation if deviation > _CONSTANT else 0.0 * values)


def _bends(standard: Lines, numbers: Places) -> tuple[list[Term], Lines]:
    """Return steps, squares and cubes of the numbers, with their values (c, n)."""
    cuts = np.quantile(standard[numbers], _STEPS, axis=1).T if len(numbers) else np.empty((0, 0))
    terms = [Term(int(j), cut=float(cut)) for j, own in zip(numbers, cuts, strict=True) for cut in own]
    terms += [Term(int(j), power) for j in numbers for power in (2, 3)]
    values = np.empty((len(terms), standard.shape[1]), standard.dtype)
    for value, term in zip(values, terms, strict=True):
        value[:] = _standard(term.of(standard))
    return terms, values


@dataclass(slots=True)
class _Model:
    """A logistic model of treatment (n,): an offset (n,), columns (a, n) with slopes, the last of them `terms`."""

    standard: Lines
    treated: Lines
    offset: Lines
    columns: Lines
    weights: Floats
    terms: list[Term]

    @classmethod
    def of(cls, standard: Lines, treated: NDArray[np.bool_], scores: NDArray[np.floating]) -> _Model:
        offset = logit(np.clip(scores, _LEAST, 1.0 - _LEAST)).astype(standard.dtype)
        columns = np.concatenate([np.ones((1, len(offset)), standard.dtype), standard])
        return cls(standard, treated.astype(standard.dtype), offset, columns, np.zeros(len(columns)), [])

    @property
    def slopes(self) -> Lines:
        """Slopes (m,) of the terms."""
        return self.weights[len(self.weights) - len(self.terms) :].astype(np.float32)

    def add(self, terms: list[Term], values: Lines) -> bool:
        """Take these terms in and fit the model again; return whether there were any."""
        if not terms:
            return False
        self.terms += terms
        self.columns = np.concatenate([self.columns, values])
        self.weights = np.append(self.weights, np.zeros(len(terms)))
        for _ in range(_NEWTON_STEPS):
            chance = self.chance()
            slope = self.columns @ (self.treated - chance) - self.weights
            self.weights = self.weights + cho_solve(self._factor(chance * (1.0 - chance)), slope)
        return True

    def chance(self) -> Lines:
        """Return the probabilities (n,) of treatment."""
        return np.asarray(expit(self.offset + self.weights.astype(self.offset.dtype) @ self.columns))

    def _factor(self, curvature: Lines) -> tuple[Floats, bool]:
        whole = ((self.columns * curvature) @ self.columns.T).astype(np.float64)
        # As if every slope had been drawn with a standard deviation of one.
        whole[np.diag_indices(len(whole))] += 1.0
        factor: tuple[Floats, bool] = cho_factor(whole, lower=True)
        return factor

    def tests(self, values: Lines) -> Floats:
        """Return for candidates (c, n) how many standard errors treatment follows them by, beyond the model."""
        chance = self.chance()
        left, curvature = self.treated - chance, chance * (1.0 - chance)
        factor = self._factor(curvature)
        cross = ((self.columns * curvature) @ values.T).astype(np.float64)
        held = solve_triangular(factor[0], cross, lower=True)
        variance = (values**2 @ curvature).astype(np.float64) - np.einsum("ij,ij->j", held, held)
        gain = values @ left - cross.T @ cho_solve(factor, self.columns @ left)
        fine = variance > 1e-3 * float(curvature.sum())
        return np.where(fine, np.abs(gain) / np.sqrt(np.where(fine, variance, 1.0)), 0.0)

    def products(self, count: int) -> list[Term]:
        """Return the products of two columns that treatment seems to follow most."""
        chance = self.chance()
        left, curvature = self.treated - chance, chance * (1.0 - chance)
        gain = np.abs((self.standard * left) @ self.standard.T)
        squares = self.standard**2
        spread = np.sqrt(np.maximum((squares * curvature) @ squares.T, 1e-3 * curvature.sum()))
        one, other = np.triu_indices(len(gain), 1)
        order = np.argsort(-(gain / spread)[one, other], kind="stable")[:count]
        return [Term(int(one[k]), other=int(other[k])) for k in order]


def _outstanding(
    model: _Model, candidates: list[Term], values: Lines, taken: int
) -> tuple[list[Term], Lines]:
    """Return the candidates and products that stand out, at most `taken`, with their values (k, n)."""
    products = model.products(_CLOSELY * taken)
    more = np.empty((len(products), values.shape[1]), values.dtype)
    for value, term in zip(more, products, strict=True):
        value[:] = _standard(term.of(model.standard))
    every, columns = candidates + products, np.concatenate([values, more])
    found = model.tests(columns)
    before = model.columns[len(model.columns) - len(model.terms) :]
    chosen: list[int] = []
    for k in np.argsort(-found, kind="stable"):
        if found[k] < _STANDS_OUT or len(chosen) == taken:
            break
        others = np.concatenate([before, columns[chosen]])
        if not len(others) or float(np.abs(others @ columns[k]).max()) < _ALIKE * values.shape[1]:
            chosen.append(int(k))
    return [every[k] for k in chosen], columns[chosen]
