"""Nonlinear terms and products of covariates that treatment follows, found by score tests.

Outcomes that follow the same terms bias an estimate whose weights do not balance them, and no other term
biases it by more than chance does. Candidates are steps, squares and cubes of numbers and products of any two
columns. A candidate x (n,) is tested against the residuals t - p of a logistic model of treatment t with
columns X (Rao 1948),

    z = |x'(t - p) - x'W X A^-1 X'(t - p)| / sqrt(x'W x - x'W X A^-1 X'W x),
    A = X'W X + I,    W = diag(p (1 - p)),

so that the columns of the model are projected out (I, a ridge as if every slope had a standard deviation of
one). Those with z of at least 3 (`_STANDS_OUT`, standard errors) that are not too alike to one that was taken
are added to the model by a Newton step, and the rest are tested again.

In: public covariates (d, n), treatment, fitted scores. Out: `TreatmentTerms`, the standardised terms (m, n)
and their fitted sum, which become features that weights balance. Nothing here reads an outcome, and where
outcomes alone are private it costs no privacy. The constants steer which terms are balanced; privacy does not
depend on them.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve, solve_triangular
from scipy.special import expit, logit

from counterveil.numerics.arrays import Floats
from counterveil.numerics.columns import scores as scores_of

FeatureRows = NDArray[np.floating]
Places = NDArray[np.intp]

# Chosen by `python -m experiments.outcome_level.redrawn --tuning`.
# Rounds of tests, and how many terms each may add: fewer where rows are many and columns cost time.
_ROUNDS = 2
_TAKEN = 8
_TAKEN_OF_MANY = 4
_MANY_ROWS = 50_000
# Standard errors at which a term stands out, and the most that it may go with one that was taken.
_STANDS_OUT = 3.0
_ALIKE = 0.6
# Where numbers are cut into steps.
_STEPS = (0.2, 0.4, 0.6, 0.8)
# Rows that these places are read off.
_RANKED = 512
# Nonlinear terms and products that are tested closely, for each that may be taken, and rows that they are found among.
_CLOSELY = 4
_ROUGHLY = 20_000
# Rows times columns times candidates that a round of tests multiplies: with more rows every k-th is read, but no
# fewer than so many.
_WORK = 6e7
_FEWEST_ROWS = 4000
# Standard deviations below which a column is constant.
_CONSTANT = 1e-6
# Scores nearer to 0 or 1 than this count as that near.
_LEAST = 1e-3
# Squares and products all enter the model where there are so few of them, and so many rows for each: a curve in many
# covariates is in none of them alone.
_MOST_QUADRATIC = 40
_ROWS_EACH = 50


@dataclass(frozen=True, slots=True)
class TreatmentTerm:
    """A function of one column or two: a step at `cut`, a power, or a product with the column `other`."""

    column: int
    power: int = 1
    cut: float | None = None
    other: int | None = None

    def of(self, standard: FeatureRows) -> FeatureRows:
        """Return its values (n,) on standardised columns (d, n)."""
        column = standard[self.column]
        if self.cut is not None:
            return np.asarray(column > self.cut, standard.dtype)
        return np.asarray(column**self.power if self.other is None else column * standard[self.other])


@dataclass(frozen=True, slots=True)
class TreatmentTerms:
    """Standardised terms (m, n), and the direction (n,) in which treatment follows all of them; None if none."""

    columns: FeatureRows
    direction: Floats | None


def treatment_terms(
    features: FeatureRows, numbers: Places, treated: NDArray[np.bool_], scores: NDArray[np.floating]
) -> TreatmentTerms:
    """Return the terms of centred columns (d, n) that treatment (n,) follows beyond the fitted scores (n,).

    `numbers` are the places of the columns of which steps and powers are taken.
    """
    rows = len(treated)
    deviation = np.sqrt(np.einsum("ij,ij->i", features, features, dtype=np.float64) / rows)
    varying = np.flatnonzero(deviation > _CONSTANT)
    numbers = np.flatnonzero(np.isin(varying, numbers))
    tested = max(len(varying) * (len(_STEPS) + 2) * max(len(numbers), 1) + len(varying) ** 2, 1)
    stride = max(1, min(round(rows * tested / _WORK), rows // _FEWEST_ROWS))
    standard = np.ascontiguousarray(features[varying, ::stride]) / deviation[varying, None].astype(
        features.dtype
    )
    model = _Model(standard, treated[::stride], scores[::stride])
    candidates = _Candidates(standard, numbers, model.curvature)
    limit = _TAKEN if rows < _MANY_ROWS else _TAKEN_OF_MANY
    for done in range(1, _ROUNDS + 1):
        model.add(*_outstanding(model, candidates, limit))
        if len(model.terms) < done * limit or done == _ROUNDS:
            break
        model.look()
    outstanding = len(model.terms)
    model.add(*_quadratic(standard, numbers, rows, model.terms))
    all_terms = np.empty((len(model.terms), rows), np.float32)
    for index, term in enumerate(model.terms):
        local_term = TreatmentTerm(0, term.power, term.cut, None if term.other is None else 1)
        pair = [term.column] if term.other is None else [term.column, term.other]
        all_terms[index] = local_term.of(
            features[varying[pair]] / deviation[varying[pair], None].astype(features.dtype)
        )
    all_terms = _standardised(all_terms)
    return TreatmentTerms(
        all_terms[:outstanding], scores_of(all_terms, 0, rows, model.slopes) if model.terms else None
    )


def _nonlinear_terms(standard: FeatureRows, numbers: Places) -> tuple[list[TreatmentTerm], FeatureRows]:
    """Return steps, squares and cubes of the numbers, with their values (c, n), steps first."""
    values_of = standard[numbers]
    ranked = np.sort(values_of[:, :: max(1, values_of.shape[1] // _RANKED)], axis=1)
    cuts = ranked[:, (np.array(_STEPS) * (ranked.shape[1] - 1)).astype(np.intp)]
    terms = [
        TreatmentTerm(int(j), cut=float(cut))
        for step in range(len(_STEPS))
        for j, cut in zip(numbers, cuts[:, step], strict=True)
    ]
    terms += [TreatmentTerm(int(j), power) for power in (2, 3) for j in numbers]
    values = np.empty((len(terms), values_of.shape[1]), standard.dtype)
    for step in range(len(_STEPS)):
        np.greater(
            values_of, cuts[:, step, None], out=values[step * len(values_of) : (step + 1) * len(values_of)]
        )
    squares = values[len(_STEPS) * len(values_of) :][: len(values_of)]
    np.multiply(values_of, values_of, out=squares)
    np.multiply(squares, values_of, out=values[(len(_STEPS) + 1) * len(values_of) :])
    return terms, values


class _Candidates:
    """Steps and powers of numbers, products of two columns (d, n), ordered roughly by how far treatment follows them.

    Every so many rows are read, and the spreads are those under the first model, which later ones hardly change.
    """

    def __init__(self, standard: FeatureRows, numbers: Places, curvature: FeatureRows) -> None:
        self.whole = standard
        self.stride = max(1, standard.shape[1] // _ROUGHLY)
        self.standard = np.ascontiguousarray(standard[:, :: self.stride])
        curvature = curvature[:: self.stride]
        self.nonlinear_terms, self.values = _nonlinear_terms(self.standard, numbers)
        weighted_sums = self.values @ curvature
        total = float(curvature.sum())
        self.means = self.values.mean(axis=1)
        steps = len(_STEPS) * len(numbers)
        squares = np.append(weighted_sums[:steps], np.square(self.values[steps:]) @ curvature)
        spread = squares + self.means * (self.means * total - 2.0 * weighted_sums)
        self.spread = np.sqrt(np.maximum(spread, _LEAST * total))
        rooted = np.square(self.standard) * np.sqrt(curvature)
        self.of_pairs = np.sqrt(np.maximum(rooted @ rooted.T, _LEAST * total))

    def nearest(self, residual: FeatureRows, count: int) -> tuple[list[TreatmentTerm], FeatureRows]:
        """Return the `count` nonlinear terms and as many products that the `residual` of treatment follows most.

        Their values (2 count, n) are standardised.
        """
        residual = residual[:: self.stride]
        gain = np.abs(self.values @ residual - self.means * float(residual.sum())) / self.spread
        nearest_terms = np.argsort(-gain, kind="stable")[:count]
        pair_gain = np.triu(np.abs((self.standard * residual) @ self.standard.T) / self.of_pairs, 1)
        most_pairs = len(pair_gain) * (len(pair_gain) - 1) // 2
        pairs = np.argsort(-pair_gain, axis=None, kind="stable")[: min(count, most_pairs)]
        first, second = np.unravel_index(pairs, pair_gain.shape)
        terms = [self.nonlinear_terms[k] for k in nearest_terms]
        terms += [TreatmentTerm(int(j), other=int(k)) for j, k in zip(first, second, strict=True)]
        values = np.empty((len(terms), self.whole.shape[1]), self.whole.dtype)
        for row, term in zip(values, terms, strict=True):
            row[:] = term.of(self.whole)
        return terms, _standardised(values)


def _quadratic(
    standard: FeatureRows, numbers: Places, rows: int, taken: list[TreatmentTerm]
) -> tuple[list[TreatmentTerm], FeatureRows]:
    """Return the squares of numbers and products of two columns that are not known, where they are few beside rows."""
    first, second = np.triu_indices(len(standard), 1)
    if not 0 < len(first) + len(numbers) <= min(_MOST_QUADRATIC, rows / _ROWS_EACH):
        return [], standard[:0]
    quadratic = [TreatmentTerm(int(j), 2) for j in numbers]
    quadratic += [TreatmentTerm(int(j), other=int(k)) for j, k in zip(first, second, strict=True)]
    terms = [term for term in quadratic if term not in taken]
    values = np.array([term.of(standard) for term in terms], standard.dtype).reshape(-1, standard.shape[1])
    return terms, _standardised(values)


def _standardised(values: FeatureRows) -> FeatureRows:
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

    def __init__(
        self, standard: FeatureRows, treated: NDArray[np.bool_], scores: NDArray[np.floating]
    ) -> None:
        # In double precision: what rounding does to slopes must not show in weights.
        self.treated = treated.astype(np.float64)
        self.offset = logit(np.clip(scores.astype(np.float64), _LEAST, 1.0 - _LEAST))
        self.columns = np.concatenate([np.ones((1, len(self.offset))), standard])
        self.weights = np.zeros(len(self.columns))
        self.terms = list[TreatmentTerm]()
        self.look()

    def look(self) -> None:
        """Find what is left of treatment under the present weights, and the curvature there."""
        chance = expit(self.offset + self.weights @ self.columns)
        self.left = self.treated - chance
        self.curvature = chance * (1.0 - chance)
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

    def add(self, terms: list[TreatmentTerm], values: FeatureRows) -> None:
        """Take these terms in, if there are any, by one step of Newton's; what is left has to be looked at again."""
        if not terms:
            return
        if self.moved:
            self.look()
        scaled = values * self.root
        cross = self.bent @ scaled.T
        self.terms += terms
        self.products = np.block([[self.products, cross], [cross.T, scaled @ scaled.T]])
        self.columns = np.concatenate([self.columns, values])
        self.weights = np.append(self.weights, np.zeros(len(terms)))
        self._factor()
        self.weights = self.weights + cho_solve(self.factor, self.columns @ self.left - self.weights)
        self.moved = True

    def tests(self, values: FeatureRows) -> Floats:
        """Return for candidates (c, n) how many standard errors treatment follows them by, beyond the model."""
        # Which terms are taken does not hang on last digits.
        scaled = values * self.root.astype(values.dtype)
        cross = (self.bent.astype(values.dtype) @ scaled.T).astype(np.float64)
        projected = solve_triangular(self.factor[0], cross, lower=True, check_finite=False)
        variance = np.einsum("ij,ij->i", scaled, scaled) - np.einsum("ij,ij->j", projected, projected)
        score = values @ self.left.astype(values.dtype) - cross.T @ cho_solve(
            self.factor, self.columns @ self.left
        )
        varies = variance > _LEAST * float(self.curvature.sum())
        return np.where(varies, np.abs(score) / np.sqrt(np.where(varies, variance, 1.0)), 0.0)


def _outstanding(
    model: _Model, candidates: _Candidates, limit: int
) -> tuple[list[TreatmentTerm], FeatureRows]:
    """Return the candidates that stand out, at most `limit`, with their values (k, n)."""
    terms, values = candidates.nearest(model.left, _CLOSELY * limit)
    z_scores = model.tests(values)
    before = model.columns[len(model.columns) - len(model.terms) :]
    chosen: list[int] = []
    for k in np.argsort(-z_scores, kind="stable"):
        if z_scores[k] < _STANDS_OUT or len(chosen) == limit:
            break
        correlation = np.abs(np.concatenate([before, values[chosen]]) @ values[k])
        if not len(correlation) or float(correlation.max()) < _ALIKE * values.shape[1]:
            chosen.append(int(k))
    return [terms[k] for k in chosen], values[chosen]
