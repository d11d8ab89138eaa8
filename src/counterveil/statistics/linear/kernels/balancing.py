"""Features of weighting, and the weights that balance them.

Bends and products of covariates that treatment follows beyond a line in them, found by score tests.

Outcomes that follow the same terms bias an estimate whose weights do not balance them, and no other term biases it by
more than chance does. Candidates are steps, squares and cubes of numbers and products of any two columns. A candidate
is tested against the residuals of a logistic model (Rao 1948), the columns of the model being projected out; the ones
that stand out are added to the model, and the rest are tested again. Nothing here reads an outcome.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, fields, replace
from itertools import combinations, pairwise
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import block_diag, cho_factor, cho_solve, solve_triangular
from scipy.linalg.lapack import dpotrf, dpotrs, dtrtri
from scipy.special import expit, logit

from counterveil.errors import refusal
from counterveil.numerics import columns as column_products
from counterveil.numerics.arrays import Floats
from counterveil.numerics.columns import MadeLines, RawLines, StandardColumns, varying, write_levels
from counterveil.numerics.columns import scores as scores_of
from counterveil.numerics.products import Kind

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


# Groups of rows that treatment follows beyond its score: the leaves of small trees, grown on treatment alone.
#
# Outcomes that jump where a covariate passes a value, and by more or less as another one does, are in no line, square
# or single product. Where treatment follows the same jumps, trees grown on what a score leaves of treatment find the
# groups of rows between them. Trees are boosted (Friedman 2001) by second-order steps, every split being the one of
# largest gain, and nothing is drawn at random. Nothing here reads an outcome.


Inside = NDArray[np.bool_]
Pairs = NDArray[np.intp]

# How many trees at most, how deep, and how much of its fit each takes off: chosen by hand on the studies of
# `python -m experiments.outcome_level.leaves --tuning`, which have 4,802 rows.
_TREES, _DEPTH, _RATE = 10, 3, 0.3
# Rows for each tree: of few rows many leaves follow chance, and what is left of their imbalance lengthens intervals.
_TREATMENT_LEAVES_ROWS_EACH = 400
# Where columns are cut: at so many evenly placed ranks.
_CUTS = 15
# The part of the rows that a step has on either side at least, and the rows that a leaf has.
_LEAST_PART, _LEAST_ROWS = 0.01, 40
# What is added to the curvature of a leaf, so that a small one moves little.
_HOLD = 1.0
# Rows that splits are found among.
_READ = 10_000
# Standard errors by which treatment in a leaf must be off its scores. Of 0, 1 and 2 (all, three quarters, half of the
# leaves), tried by hand, 2 erred least on settings 6 and 9 of ACIC 2016; `python -m experiments.causal.expected --acic
# FOLDER` prints what is taken.
_LEAST_OFF = 2.0
# Scores nearer to 0 or 1 than this count as that near.


def treatment_leaves(lines: Lines, treated: NDArray[np.bool_], scores: NDArray[np.floating]) -> Inside:
    """Return the leaves (m, n), true for the rows inside, of trees that treatment (n,) follows beyond its scores (n,).

    `lines` (d, n) are columns to cut. Leaves in which treatment is as its scores say are left out.
    """
    rows = lines.shape[1]
    some = slice(None, None, max(1, rows // _READ))
    cuts = [_cuts(line) for line in lines[:, some]]
    codes = np.array(
        [np.searchsorted(cut, line) for cut, line in zip(cuts, lines[:, some], strict=True)], np.uint8
    )
    if not any(map(len, cuts)):
        return np.empty((0, rows), np.bool_)
    bins = max(map(len, cuts)) + 1
    # Two columns at a time, the last with itself: sums by both codes give those by either.
    pairs = codes[::2].astype(np.intp) * bins + codes[[*range(1, len(codes), 2), -1][: -(-len(codes) // 2)]]
    chances = np.clip(scores.astype(np.float64), _LEAST, 1.0 - _LEAST)
    beyond, variance = treated - chances, chances * (1.0 - chances)
    margin, found = logit(chances[some]), dict[bytes, Inside]()
    for _ in range(min(max(rows // _TREATMENT_LEAVES_ROWS_EACH, 1), _TREES)):
        fitted = expit(margin)
        place, leaves = _grown(lines, cuts, pairs, some, treated[some] - fitted, fitted * (1.0 - fitted))
        sums = [
            np.bincount(place[some], part, leaves)
            for part in (treated[some] - fitted, fitted * (1.0 - fitted))
        ]
        margin += (_RATE * sums[0] / (sums[1] + _HOLD))[place[some]]
        off = np.bincount(place, beyond, leaves) ** 2 / (np.bincount(place, variance, leaves) + _HOLD)
        inside = [place == leaf for leaf in np.flatnonzero(off >= _LEAST_OFF**2)]
        found |= {leaf.tobytes(): leaf for leaf in inside}
    return np.array(list(found.values()), np.bool_).reshape(-1, rows)


def _grown(
    lines: Lines, cuts: list[Lines], pairs: Pairs, some: slice, left: Floats, curvature: Floats
) -> tuple[NDArray[np.uint8], int]:
    """Return the leaf of one tree that every row is in, and how many there are; some rows find the splits."""
    place, leaves, bins = np.zeros(lines.shape[1], np.uint8), 1, max(map(len, cuts)) + 1
    for _ in range(_DEPTH):
        for leaf, split in enumerate(_splits(pairs, bins, place[some], left, curvature, leaves)):
            if split is not None:
                column, cut = split
                place[(place == leaf) & (lines[column] > cuts[column][cut])] = leaves
                leaves += 1
    return place, leaves


def _cuts(line: Lines) -> Lines:
    """Return the values at which a column (n,) is cut, in order: rows above are on the far side."""
    rows, ordered = len(line), np.sort(line)
    ranks = np.arange(1, _CUTS + 1) * rows // (_CUTS + 1)
    # The value at a rank may be that of many rows: the cut is below them, or above.
    tried = np.unique(np.concatenate([ordered[ranks], ordered[np.searchsorted(ordered, ordered[ranks]) - 1]]))
    shares = 1.0 - np.searchsorted(ordered, tried, side="right") / rows
    kept, last = list[int](), 1.0
    for place, share in enumerate(shares):
        if _LEAST_PART <= share <= 1.0 - _LEAST_PART and last - share > _LEAST_PART / 2:
            kept.append(place)
            last = share
    return tried[kept]


def _splits(
    pairs: Pairs, bins: int, place: NDArray[np.uint8], left: Floats, curvature: Floats, leaves: int
) -> list[tuple[int, int] | None]:
    """Return for each leaf the column and the cut of largest gain, None where no cut gains."""
    by_pair, first = np.empty((leaves, len(pairs), 2, bins, 3)), place.astype(np.intp) * bins**2
    for own, pair in zip(by_pair.swapaxes(0, 1), pairs, strict=True):
        at = first + pair
        parts = [np.bincount(at, part, leaves * bins**2) for part in (left, curvature, None)]
        both = np.stack(parts, axis=1).reshape(leaves, bins, bins, 3)
        own[:, 0], own[:, 1] = both.sum(axis=2), both.sum(axis=1)
    sums = by_pair.reshape(leaves, -1, bins, 3)
    whole = sums[:, :1].sum(axis=2)[:, :, None]
    far = sums[:, :, ::-1].cumsum(axis=2)[:, :, -2::-1]
    near = whole - far
    gain = _fit(far) + _fit(near) - _fit(whole)
    gain[np.minimum(far[..., 2], near[..., 2]) < _LEAST_ROWS] = 0.0
    best = gain.reshape(leaves, -1).argmax(axis=1)
    most = gain.reshape(leaves, -1).max(axis=1)
    return [
        divmod(int(at), bins - 1) if gained > 0.0 else None for at, gained in zip(best, most, strict=True)
    ]


def _fit(sums: Floats) -> Floats:
    """Return how much better a leaf of these sums fits with a step of its own, but for a factor."""
    return np.asarray(sums[..., 0] ** 2 / (np.maximum(sums[..., 1], 0.0) + _HOLD))


# The features that balancing weights balance: covariates, their squares, the propensity score, what treatment
# follows.
#
# The features are a guess, made before any outcome is seen, of how the mean outcome varies: each block (linear,
# squares, products, score, strata, terms, direction, bends, leaves) receives a share of its supposed variance, spread
# evenly over the block's columns; of the bends the slow ones receive more. The linear part of the score deserves a
# share of its own, for it is the direction in which the arms differ most and an unbalanced outcome is biased. So do
# the terms that treatment follows beyond a line (`treatment_terms`), their sum as it enters treatment, cosines of the
# score's rank, which an outcome may follow that bends along the score, and groups of rows between jumps that
# treatment follows (`treatment_leaves`).


ColumnKind = Literal["number", "binary", "label"]

# Scores nearer to 0 or 1 than this count as that near.
_SCORE_CLIP = 1e-3
# Rows that ranks of scores are read off, and rows whose cosines are made together.
_WEIGHT_FEATURES_RANKED, _TOGETHER = 4096, 2048


@dataclass(frozen=True, slots=True)
class FeatureShares:
    """How the supposed variance of the mean outcome is divided among the blocks, up to a common factor.

    `linear`: all covariates. `squares`: squares of the numbers. `score`: the logit of the propensity
    score. `strata`: indicators of `strata_count` equal-sized groups of the score. `products`: products of two
    of the `products_of` numbers or two-label covariates that go with the score most. `terms` and `direction`: what
    treatment follows beyond a line, each and as a sum. `bends`: cosines of the score's rank, `bends_count` of them.
    `leaves`: groups of rows between jumps that treatment follows.
    """

    linear: float = 0.7
    squares: float = 0.3
    score: float = 0.1
    strata: float = 0.0
    strata_count: int = 10
    products: float = 0.0
    products_of: int = 5
    terms: float = 0.0
    direction: float = 0.0
    bends: float = 0.0
    bends_count: int = 5
    leaves: float = 0.0

    def __post_init__(self) -> None:
        counts = ("strata_count", "products_of", "bends_count")
        shares = [getattr(self, f.name) for f in fields(self) if f.name not in counts]
        fine = all(math.isfinite(s) and s >= 0.0 for s in shares) and sum(shares) > 0.0
        if not fine or min(self.strata_count, self.products_of, self.bends_count) < 2:
            raise refusal("CV-P265", what=self)


def parted_features(
    covariates: NDArray[np.floating] | MadeLines,
    kinds: Sequence[ColumnKind],
    scores: NDArray[np.float64],
    shares: FeatureShares | None = None,
    dtype: type[np.floating] = np.float32,
    total: float | None = None,
    followed: TreatmentTerms | None = None,
    leaves: Inside | None = None,
    rows: Rows | None = None,
) -> tuple[NDArray[np.floating], int, Floats | None]:
    """Return the centred (n, p) feature matrix; its columns' variances are the shares divided evenly.

    With it comes how many of the first columns are made of covariates alone: lines, squares and products. Where rows
    are given, the matrix has these alone, and the means (p,) of all, which rounding left, come last.

    With a `total` variances are multiplied by what makes them add up to it. `followed` are the terms that treatment
    follows and `leaves` (m, n) the groups of rows, where they have a share.

    `covariates` is (n, d); a column of kind "label" holds whole-number codes from 0 and becomes one
    indicator a code, which together count as one column; they follow the other covariates. `scores` (n,)
    are propensity scores in (0, 1). Constant columns are left out. The matrix is kept column by
    column; covariates are read fastest if they are kept like that, too, or come as lines.
    """
    shares = shares or FeatureShares()
    raw: RawLines = covariates
    if not isinstance(covariates, MadeLines):
        _check(covariates, kinds, scores)
        raw = np.ascontiguousarray(covariates.T, np.float64)
    clipped = np.clip(scores, _SCORE_CLIP, 1.0 - _SCORE_CLIP)
    logit = np.asarray(np.log(clipped / (1.0 - clipped)))
    blocks = list(_covariate_blocks(raw, kinds, logit, shares))
    own = sum(len(block.variances) for block in blocks)
    blocks += [
        *_leaf_blocks(leaves, shares),
        *_term_blocks(followed, shares),
        *_score_blocks(logit, shares, followed),
    ]
    ends = np.cumsum([0, *(len(block.variances) for block in blocks)])
    lines = np.empty((int(ends[-1]), len(scores) if rows is None else len(rows)), dtype)
    means = np.zeros(len(lines))
    held = sum(float(block.variances.sum()) for block in blocks)
    scale = 1.0 if total is None or held == 0.0 else math.sqrt(total / held)
    for first, end in pairwise(ends):
        # Dropped once it is written, with what it was made of.
        block = blocks.pop(0)
        everybody = lines[first:end] if rows is None else np.empty((end - first, len(scores)), dtype)
        block.write(scale * np.sqrt(block.variances), everybody)
        if rows is not None:
            np.take(everybody, rows, axis=1, out=lines[first:end], mode="clip")
            means[first:end] = everybody.mean(axis=1, dtype=np.float64)
    return lines.T, own, None if rows is None else means


@dataclass(frozen=True, slots=True)
class _Block:
    """Features of one kind, by the variances (k,) that they are to have.

    `write` takes deviations (k,), and writes centred features that have them to lines (k, n).
    """

    variances: Floats
    write: Callable[[Floats, Lines], object]


def _covariate_blocks(
    raw: RawLines, kinds: Sequence[ColumnKind], logit: Floats, shares: FeatureShares
) -> Iterator[_Block]:
    """Yield the linear block, labels last, then squares and products; `raw` is (d, n)."""
    each = shares.linear / max(len(kinds), 1)
    plain = StandardColumns.of(raw, np.array([j for j, kind in enumerate(kinds) if kind != "label"], np.intp))
    if shares.linear > 0.0:
        yield _plain(plain, each)
        yield from (_indicators(raw[j], each) for j, kind in enumerate(kinds) if kind == "label")
    near, mean, variance = plain.sums(logit - logit.mean())
    number = np.array([kinds[j] == "number" for j in plain.which], np.bool_)
    if shares.squares > 0.0 and number.any():
        kept = number & varying(mean, variance)
        yield _squares(plain.only(kept), mean[kept], variance[kept], shares.squares / int(number.sum()))
    chosen = np.argsort(-np.abs(near), kind="stable")[: shares.products_of]
    if shares.products > 0.0 and len(chosen) > 1:
        pairs = list(combinations(np.sort(chosen).tolist(), 2))

        def product(place: int) -> Floats:
            one, other = (plain.clipped(k, plain.line(k)) for k in pairs[place])
            return np.multiply(one, other, out=one)

        products = StandardColumns.of(MadeLines(len(pairs), product), np.arange(len(pairs)))
        yield _plain(products, shares.products / len(pairs))


def _term_blocks(followed: TreatmentTerms | None, shares: FeatureShares) -> Iterator[_Block]:
    """Yield the terms that treatment follows, which are standardised."""
    if followed is None or not len(followed.columns) or shares.terms == 0.0:
        return
    lines = followed.columns
    yield _Block(
        np.full(len(lines), shares.terms / len(lines)),
        lambda deviations, out: np.multiply(lines, deviations[:, None], out=out, casting="same_kind"),
    )


def _leaf_blocks(leaves: Inside | None, shares: FeatureShares) -> Iterator[_Block]:
    """Yield the groups of rows between jumps that treatment follows."""
    if leaves is None or not len(leaves) or shares.leaves == 0.0:
        return
    part = leaves.mean(axis=1)
    kept = (part > 0.0) & (part < 1.0)
    inside, part = leaves[kept], part[kept]

    def write(deviations: Floats, lines: Lines) -> None:
        high = deviations / np.sqrt(part * (1.0 - part))
        for line, rows, mean, size in zip(lines, inside, part, high, strict=True):
            line[:] = np.where(rows, (1.0 - mean) * size, -mean * size)

    yield _Block(np.full(len(inside), shares.leaves / len(leaves)), write)


def _score_blocks(logit: Floats, shares: FeatureShares, followed: TreatmentTerms | None) -> Iterator[_Block]:
    """Yield the columns made from the propensity score and from the sum of the terms."""
    if shares.strata > 0.0:
        inner = np.quantile(logit, np.linspace(0.0, 1.0, shares.strata_count + 1)[1:-1])
        yield _indicators(np.searchsorted(inner, logit).astype(np.float64), shares.strata)
    if shares.score > 0.0:
        yield _plain(StandardColumns.of(logit[None], np.zeros(1, np.intp)), shares.score)
    if shares.direction > 0.0 and followed is not None and followed.direction is not None:
        along = followed.direction.astype(np.float64)[None]
        yield _plain(StandardColumns.of(along, np.zeros(1, np.intp)), shares.direction)
    if shares.bends > 0.0:
        yield _cosines(logit, shares.bends_count, shares.bends)


def _cosines(logit: Floats, count: int, share: float) -> _Block:
    """Return cos(pi j r), j = 2, ..., count + 1, of the score's rank r in (0, 1), slow ones with more of the share.

    The first cosine is left out: it is nearly the score itself. All are made wherever they are read, a few rows at a
    time.
    """
    known, rows = np.sort(logit[:: max(1, len(logit) // _WEIGHT_FEATURES_RANKED)]), len(logit)
    first = np.cos(np.pi * np.interp(logit, known, (np.arange(len(known)) + 0.5) / len(known)))
    mean, variance = np.zeros(count), np.zeros(count)
    for part in _parts(rows):
        mean += _waves(first[part], count).sum(axis=1) / rows
    for part in _parts(rows):
        beyond = _waves(first[part], count) - mean[:, None]
        variance += np.einsum("ij,ij->i", beyond, beyond) / rows
    kept = np.flatnonzero(varying(mean, variance))
    slow = np.asarray((kept + 2.0) ** -2, np.float64)

    def write(deviations: Floats, lines: Lines) -> None:
        factor = deviations / np.sqrt(variance[kept])
        for part in _parts(rows):
            waves = _waves(first[part], count)[kept]
            lines[:, part] = (waves - mean[kept, None]) * factor[:, None]

    return _Block(share * slow / max(float(slow.sum()), np.finfo(float).tiny), write)


def _waves(first: Floats, count: int) -> Floats:
    """Return the cosines (count, n) from the first one (n,)."""
    waves = np.empty((count, len(first)))
    last, now = np.ones_like(first), first
    for wave in waves:
        wave[:] = 2.0 * first * now - last
        last, now = now, wave
    return waves


def _parts(rows: int) -> Iterator[slice]:
    return (slice(start, start + _TOGETHER) for start in range(0, rows, _TOGETHER))


def _plain(columns: StandardColumns, share: float | Floats) -> _Block:
    """Return columns as they are, each with this share, or with its own."""
    return _Block(
        np.broadcast_to(np.asarray(share, np.float64), columns.which.shape).copy(),
        lambda deviations, lines: columns.write(deviations / columns.deviation, lines),
    )


def _squares(columns: StandardColumns, mean: Floats, variance: Floats, share: float) -> _Block:
    """Return the squares of columns, of these means and variances, each with this share."""
    return _Block(
        np.full(len(columns.which), share),
        lambda deviations, lines: columns.write_squares(mean, deviations / np.sqrt(variance), lines),
    )


def _indicators(codes: Floats, share: float) -> _Block:
    """Return one indicator a level, scaled by one factor so that their variances add up to the share."""
    mean = np.bincount(codes.astype(np.intp)) / len(codes)
    variance = mean * (1.0 - mean)
    levels = np.flatnonzero(variance > 0.0)
    mean, variance = mean[levels], variance[levels]

    def write(deviations: Floats, lines: Lines) -> None:
        factor = deviations / np.sqrt(variance)
        write_levels(codes, levels, -mean * factor, (1.0 - mean) * factor, lines)

    return _Block(variance * (share / max(float(variance.sum()), np.finfo(float).tiny)), write)


def _check(
    covariates: NDArray[np.floating], kinds: Sequence[ColumnKind], scores: NDArray[np.float64]
) -> None:
    shape = covariates.shape
    if len(shape) != 2 or scores.shape != shape[:1] or len(kinds) != shape[1] or shape[0] == 0:
        raise refusal("CV-P262b", shape=shape, kinds=len(kinds), scores=scores.shape)
    strange = sorted(set(kinds) - {"number", "binary", "label"})
    if strange:
        raise refusal("CV-P266", got=", ".join(map(repr, strange)))


# Newton's method on the dual of the capped weighting problem.
#
# For arms a with features F_a (m_a, p), reference weights r_a and targets c_a, the primal is
#
# minimise sum_a [ kappa/2 |u_a|^2 + 1/2 |w_a - r_a|^2 ] - kappa alike u_1'u_0 + gamma/2 t^2 over u_a = F_a'w_a - c_a,
# 0 <= w_a <= t, 1'w_a = 1, t >= floor.
#
# With multipliers lam_a for u_a and nu_a for the sum, the inner minimum has the closed form w_a = clip(s_a, 0, t),
# s_a = r_a - F_a lam_a + nu_a, where the best cap solves sum (s - t)_+ = gamma t or is the floor. The dual is
# concave, once differentiable and piecewise quadratic in only (p + 1) numbers an arm: a Newton step needs the Gram
# matrix of the rows strictly between 0 and t, plus one rank-one term through which the cap moves with all rows that
# touch it. What two arms have in common couples their multipliers by a multiple of the identity. The cap is thus
# found together with the weights; the optimum over t is global because the primal is jointly convex in (w, t).
#
# Weights of a linear effect estimate that trade balance, variance and the largest weight.
#
# The estimate is sum_i w_i Y_i with w_i >= 0 for treated rows, w_i <= 0 for control rows, arm totals +1 and -1, and
# outcomes in an interval of length B. Its error has three parts, here in units of B^2:
#
# rho^2 (|u_1|^2 + |u_0|^2 - 2 alike u_1'u_0) + sigma^2 |w - reference|^2 + noise_variance * max|w|^2,
#
# with u_a the totals of the features in arm a under the weights' sizes, less their target. The first is the expected
# squared bias when an arm's mean outcome is linear in the features with independent coefficients of variance rho^2,
# whose correlation between the arms is `arm_correlation`; the second is the variance of the outcomes around that
# mean; the third is noise whose scale is proportional to the largest weight. The sum is convex, and `balance_weights`
# returns its global minimum with a certificate. Nothing here reads an outcome.


# One arm of a weighting problem: its rows of the feature matrix, which is kept column by column.
#
# Rows that follow each other are read where they are, scattered ones are copied once. Features may be kept in
# float32; sums are taken in float64.


Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]
Rows = NDArray[np.intp]


@dataclass(frozen=True, slots=True)
class ArmRows:
    """The rows of one arm: the entries `start` to `stop` of every line of `columns` (p, n), a line for each feature.

    `totals` (p,) are the sums of the rows' features, `squares` that of all their squares and `products` (p, p) those of
    the features' products, which alone were found in the precision `kind`.
    """

    columns: NDArray[np.floating]
    start: int
    stop: int
    totals: Vector
    squares: float
    products: Matrix
    kind: Kind

    @classmethod
    def of(cls, features: NDArray[np.floating], rows: Rows, kind: Kind = np.float64) -> ArmRows:
        """Return the arm of some rows, in increasing order, of a (n, p) matrix; `kind` is the precision of products."""
        columns, start, stop = features.T, int(rows[0]), int(rows[-1]) + 1
        if columns.dtype not in (np.float32, np.float64):
            columns = columns.astype(np.float64)
        if stop - start != len(rows) or not columns.flags.c_contiguous:
            columns, start, stop = np.take(columns, rows, axis=1), 0, len(rows)
        kind = kind if columns.dtype == np.float32 else np.float64
        totals, squares = np.zeros(len(columns)), 0.0
        for _, block in column_products.blocks(columns, start, stop, np.float64):
            totals += block.sum(axis=1)
            squares += float(np.einsum("ij,ij->", block, block))
        products = column_products.products(columns, start, stop, kind)
        return cls(columns, start, stop, totals, squares, products, kind)

    @property
    def size(self) -> int:
        """Number of rows."""
        return self.stop - self.start

    @property
    def exact_products(self) -> Matrix:
        """The products, found in double precision."""
        if self.kind is np.float64:
            return self.products
        return column_products.products(self.columns, self.start, self.stop)

    def scores(self, direction: Vector, kind: Kind = np.float64) -> NDArray[np.floating]:
        """Return F @ direction, shape (m,), found in the precision `kind`."""
        return column_products.scores(self.columns, self.start, self.stop, direction.astype(kind, copy=False))

    def weighted(self, weights: NDArray[np.floating]) -> Vector:
        """Return F' weights, shape (p,), found in the precision of the weights."""
        if weights[0] == weights[-1] and (weights == weights[0]).all():
            return float(weights[0]) * self.totals
        return column_products.totals(self.columns, self.start, self.stop, weights)


@dataclass(frozen=True, slots=True)
class ArmBalancing:
    """The rows of one arm and what is asked of their weights.

    `reference` (m,) holds the weights to stay close to, `target` (p,) the feature totals to reach.
    """

    held: ArmRows
    reference: Vector
    target: Vector

    @property
    def size(self) -> int:
        """Number of rows of the arm."""
        return self.held.size

    @property
    def width(self) -> int:
        """Number of features."""
        return len(self.target)


def solve_positive(matrix: Matrix, sides: Matrix) -> Matrix:
    """Return matrix^-1 sides for a symmetric positive definite (w, w) matrix and (w, k) sides."""
    return factored(matrix)(sides)


def factored(matrix: Matrix) -> Callable[[Matrix], Matrix]:
    """Return a function that multiplies (w, k) sides by the inverse of a symmetric positive definite (w, w) matrix.

    Its lower triangle is read.
    """
    try:
        root = lower_root(matrix)
    except np.linalg.LinAlgError:
        whole = np.tril(matrix) + np.tril(matrix, -1).T
        return lambda sides: np.asarray(
            np.linalg.solve(whole, sides), np.float64
        )  # positive up to rounding only
    return lambda sides: np.asarray(dpotrs(root, sides, lower=1)[0])


def lower_root(matrix: Matrix) -> Matrix:
    """Return the lower triangle L with L L' = matrix, for the lower triangle of a positive definite matrix."""
    found, fault = dpotrf(matrix, lower=1, clean=1)
    if fault:
        raise np.linalg.LinAlgError("not positive")
    return np.asarray(found)


def inverse_root(matrix: Matrix) -> Matrix:
    """Return an upper triangular W with W W' = matrix^-1, for a symmetric positive definite matrix."""
    return np.asarray(dtrtri(lower_root(matrix), lower=1)[0]).T


# Added to a sum's curvature, relative to the arm's size, so that the factorisation exists.
_RIDGE = 1e-12
# Rows gathered at once.
_BALANCING_TOGETHER = 512
# A Newton step is kept whole when it leaves at most this share of the slope it started from; a searched one stops at
# the other share.
_WHOLE_STEP, _SEARCHED_STEP = 0.5, 0.1
_MAX_PROBES = 60
# Most problems are solved in fewer steps; the others are approached through softened ones.
_DIRECT_ITERATIONS = 20
_SOFTENINGS = (300.0, 100.0, 30.0, 10.0, 3.0)
_ROUGH = 1e-4


@dataclass(frozen=True, slots=True)
class DualProblem:
    """The arms and numbers of the primal; `cap` fixes t and makes gamma irrelevant.

    `arm_correlation` is in [0, 1), and 0 with one arm.
    """

    arms: tuple[ArmBalancing, ...]
    kappa: float
    gamma: float
    floor: float
    cap: float | None = None
    arm_correlation: Vector | None = None

    @property
    def soft(self) -> Vector:
        """What the dual's quadratic term adds to the curvature of an arm's multipliers, shape (p,)."""
        if self.arm_correlation is None:
            return np.full(self.arms[0].width, 1.0 / self.kappa)
        return np.asarray(1.0 / (self.kappa * (1.0 - self.arm_correlation**2)))

    def pulls(self, multipliers: Matrix) -> Matrix:
        """Return the slopes of the dual's quadratic term, shape (arms, p), at these multipliers, (arms, p+1)."""
        own = multipliers[:, :-1]
        return (
            self.soft * own
            if self.arm_correlation is None
            else self.soft * (own + self.arm_correlation * own[::-1])
        )

    def best_cap(self, scores: Vector, near: float) -> float:
        """Return the given cap, or the t >= floor with sum (s - t)_+ = gamma t for scores s, or the floor.

        `near` is where to look first.
        """
        if self.cap is not None:
            return self.cap
        if self.gamma == 0.0:
            return max(self.floor, float(scores.max()))
        cap, first = max(near, self.floor), True
        while True:
            # Newton on a convex decreasing function: from anywhere it steps below the end, then it climbs to it.
            above = scores[scores > cap]
            raised = max(float(above.sum()) / (len(above) + self.gamma), self.floor)
            if raised == cap or (raised < cap and not first):
                return cap
            cap, first, scores = raised, False, scores if first else above


@dataclass(frozen=True, slots=True)
class DualSolution:
    """Weights in [0, cap] for each arm, with the certificate.

    `residual` is the largest violation of the equations (sums, and totals against multipliers in
    units of a typical feature); `lower_bound` is the dual's value, which no feasible weights beat.
    """

    weights: tuple[Vector, ...]
    cap: float
    residual: float
    lower_bound: float
    iterations: int


@dataclass(frozen=True, slots=True)
class _Trial:
    """Where a step leads: scores (n,), the weights clip(scores, 0, cap), and how the dual still climbs there."""

    step: float
    scores: Vector
    weights: Vector
    cap: float
    slope: float


class _State:
    """The current multipliers with everything derived from them; sums over rows are found in the precision `kind`."""

    def __init__(self, problem: DualProblem, multipliers: Matrix, kind: Kind) -> None:
        """Take multipliers, shape (arms, p+1), and compute all that follows from them."""
        self.problem, self.multipliers, self.kind = problem, multipliers, kind
        ends = np.cumsum([a.size for a in problem.arms])
        self.spans = tuple(
            (slice(int(end) - a.size, int(end)) for a, end in zip(problem.arms, ends, strict=True))
        )
        self.targets = np.stack([arm.target for arm in problem.arms])
        self.scores = np.concatenate([arm.reference for arm in problem.arms])
        for arm, span, m in zip(problem.arms, self.spans, multipliers, strict=True):
            self.scores[span] += m[-1] - arm.held.scores(m[:-1], kind) if m[:-1].any() else m[-1]
        self.cap = problem.best_cap(self.scores, problem.floor)
        self.weights = np.clip(self.scores, 0.0, self.cap)
        self.gradient = np.empty_like(multipliers)
        for k in range(len(problem.arms)):
            self._slope(k)

    def advance(self, direction: Matrix, moving: NDArray[np.bool_]) -> bool:
        """Move along a direction, shape (arms, p+1), of the arms that are `moving`; return whether the dual climbs."""
        opening = float(np.vdot(direction, self.gradient))
        if not opening > 0.0:
            return False
        drift = np.empty_like(self.scores)
        for k, (arm, span) in enumerate(zip(self.problem.arms, self.spans, strict=True)):
            drift[span] = direction[k, -1]
            if moving[k]:
                drift[span] -= arm.held.scores(direction[k, :-1], self.kind)
        trial, before = self._search(direction, drift, opening), self.cap
        self.multipliers = self.multipliers + trial.step * direction
        self.scores, self.weights, self.cap = trial.scores, trial.weights, trial.cap
        for k, span in enumerate(self.spans):
            # The weights of an arm that does not move change with the cap alone; coupled arms move together.
            if moving[k] or self.scores[span].max() > min(before, self.cap):
                self._slope(k)
        return True

    def _search(self, direction: Matrix, drift: Vector, opening: float) -> _Trial:
        """Return a step that leaves a small share of the opening slope; the slope only falls with the step."""
        own, pulls = direction[:, :-1], self.problem.pulls
        line = float(direction[:, -1].sum() - np.vdot(own, self.targets + pulls(self.multipliers)))
        bend = float(np.vdot(own, pulls(direction)))

        def trial(step: float) -> _Trial:
            scores = self.scores + step * drift
            cap = self.problem.best_cap(scores, self.cap)
            weights = np.clip(scores, 0.0, cap)
            return _Trial(step, scores, weights, cap, line - step * bend - float(drift @ weights))

        high, low, slope_low = trial(1.0), 0.0, opening
        if abs(high.slope) <= _WHOLE_STEP * opening:
            return high
        for _ in range(_MAX_PROBES):
            if high.slope > 0.0:
                low, slope_low = high.step, high.slope
                found = high = trial(2.0 * high.step)
            else:
                # The secant, kept inside the middle of the bracket, so that a flat end cannot stall it.
                width = high.step - low
                secant = low + width * slope_low / (slope_low - high.slope)
                found = trial(min(max(secant, low + 0.1 * width), high.step - 0.1 * width))
                if found.slope > 0.0:
                    low, slope_low = found.step, found.slope
                else:
                    high = found
            if abs(found.slope) <= _SEARCHED_STEP * opening:
                return found
        return trial(low) if low > 0.0 else high

    def _slope(self, k: int) -> None:
        """Write an arm's gradient: totals less the target and the quadratic term's slope; one less all weights."""
        weights = self.weights[self.spans[k]]
        totals = self.problem.arms[k].held.weighted(weights.astype(self.kind, copy=False))
        self.gradient[k, :-1] = totals - self.targets[k] - self.problem.pulls(self.multipliers)[k]
        self.gradient[k, -1] = 1.0 - weights.sum()

    def residuals(self, unit: float) -> Vector:
        """Return for each arm the largest entry of the gradient, totals measured in `unit`."""
        sizes = np.abs(self.gradient)
        return np.asarray(np.maximum(sizes[:, :-1].max(axis=1, initial=0.0) / unit, sizes[:, -1]))

    def residual(self, unit: float) -> float:
        """Return the largest of them."""
        return float(self.residuals(unit).max())

    def lower_bound(self) -> float:
        """Return the dual's value at the current multipliers."""
        pulls = self.problem.pulls(self.multipliers)
        value = 0.5 * self.problem.gamma * self.cap**2 - 0.5 * float(np.vdot(pulls, self.multipliers[:, :-1]))
        for arm, span, m in zip(self.problem.arms, self.spans, self.multipliers, strict=True):
            weights = self.weights[span]
            value += float(m[-1] - m[:-1] @ arm.target)
            value += float(0.5 * ((weights - arm.reference) ** 2).sum())
            value += float(weights @ (arm.reference - self.scores[span]))
        return value


class _Curvature:
    """One arm's Gram matrix of the free rows, kept up to date by the rows that change sides; at first all are free.

    With Z = [F, -1] it is Z'Z, (p+1, p+1).
    """

    def __init__(self, arm: ArmBalancing, problem: DualProblem) -> None:
        self.arm, self.problem = arm, problem
        self.free = np.ones(arm.size, np.bool_)
        self.gram = np.empty((arm.width + 1, arm.width + 1))
        self.gram[:-1, :-1] = arm.held.products
        self.gram[-1, :-1] = self.gram[:-1, -1] = -arm.held.totals
        self.gram[-1, -1] = arm.size

    def update(self, scores: Vector, cap: float, above: Vector) -> bool:
        """Find the curvature at these scores, and return whether it changed.

        `above` (p+1,) receives the totals of Z over the rows above the cap.
        """
        inside = (scores >= 0.0) & (scores <= cap)
        joined, left = np.flatnonzero(inside & ~self.free), np.flatnonzero(self.free & ~inside)
        changed, self.free = len(joined) + len(left), inside
        if changed > np.count_nonzero(inside):
            self.gram[:] = 0.0
            joined, left = np.flatnonzero(inside), left[:0]
        for sign, rows in ((1.0, joined), (-1.0, left)):
            for Z in self._rows(rows):
                self.gram += sign * (Z @ Z.T)
        for Z in self._rows(np.flatnonzero(scores > cap)):
            above += Z.sum(axis=1, dtype=np.float64)
        return changed > 0

    def _rows(self, rows: Rows) -> Iterator[NDArray[np.floating]]:
        """Yield Z' of these rows, (p+1, k), a few at a time."""
        held = self.arm.held
        for first in range(0, len(rows), _BALANCING_TOGETHER):
            part = rows[first : first + _BALANCING_TOGETHER]
            Z = np.empty((self.arm.width + 1, len(part)), held.kind)
            Z[:-1] = held.columns[:, held.start + part]
            Z[-1] = -1.0
            yield Z

    def whole(self) -> Matrix:
        """Return the curvature (p+1, p+1)."""
        block = self.gram.copy()
        block[np.diag_indices(self.arm.width)] += self.problem.soft
        # With no free row the sum has no curvature: borrow the whole arm's, the search will stretch it.
        block[-1, -1] += _RIDGE * self.arm.size if self.free.any() else self.arm.size
        return block


class _Curvatures:
    """The curvatures of all arms, those of coupled arms together."""

    def __init__(self, problem: DualProblem) -> None:
        self.problem, self.arms = problem, [_Curvature(arm, problem) for arm in problem.arms]
        places = list(range(len(self.arms)))
        self.groups = [[k] for k in places] if problem.arm_correlation is None else [places]
        self.inverses: dict[int, Callable[[Matrix], Matrix]] = {}

    def direction(self, state: _State, idle: NDArray[np.bool_]) -> tuple[Matrix, NDArray[np.bool_]]:
        """Return the Newton direction, shape (arms, p+1), and which arms move.

        The curvature is one block an arm, the coupling of the arms and, where the cap is free to move, the outer
        product of the totals over all rows at the cap; the latter is added to the inverse by its known effect. An arm
        that is `idle` (solved for the cap as it is) and has no row at the cap stays where it is, unless it is coupled.
        """
        problem, touching = self.problem, np.zeros_like(state.gradient)
        moving = ~idle | (problem.arm_correlation is not None)
        along, through = np.zeros((2, *touching.shape))
        for group in self.groups:
            for k in group:
                own = state.scores[state.spans[k]]
                moving[k] |= own.max() > state.cap
                if moving[k] and self.arms[k].update(own, state.cap, touching[k]):
                    self.inverses.pop(group[0], None)
            if moving[group].any():
                sides = np.stack([state.gradient[group].ravel(), touching[group].ravel()], axis=1)
                found = self._inverse(group)(sides).T.reshape(2, len(group), -1)
                along[group], through[group] = found
        count = -float(touching[:, -1].sum())
        if problem.cap is None and count > 0.0 and state.cap > problem.floor:
            pull = float(np.vdot(touching, through)) + problem.gamma + count
            along -= through * (float(np.vdot(touching, along)) / pull)
        return along, moving

    def _inverse(self, group: list[int]) -> Callable[[Matrix], Matrix]:
        """Return what multiplies by the inverse of the curvature of arms that belong together."""
        if group[0] not in self.inverses:
            blocks = [self.arms[k].whole() for k in group]
            side, joint = len(blocks[0]), block_diag(*blocks)
            if self.problem.arm_correlation is not None:
                features = np.arange(side - 1)
                joint[side + features, features] = self.problem.arm_correlation * self.problem.soft
            self.inverses[group[0]] = factored(joint)
        return self.inverses[group[0]]


def solve(problem: DualProblem, *, unit: float, tolerance: float, max_iterations: int) -> DualSolution:
    """Return the weights that solve the problem; `unit` is the typical size of a feature.

    Most of the way is gone by sums in the precision of the arms' products.
    """
    kind, curvatures = problem.arms[0].held.kind, _Curvatures(problem)
    state = _State(problem, _equal_weights(problem), kind)
    rough = max(tolerance, _ROUGH)
    iterations = _climb(state, curvatures, unit, rough, min(max_iterations, _DIRECT_ITERATIONS))
    if state.residual(unit) > rough and iterations < max_iterations:
        spent, multipliers = _approach(problem, unit)
        state = _State(problem, multipliers, np.float64)
        iterations += spent
    elif kind is not np.float64:
        state = _State(problem, state.multipliers, np.float64)
    iterations += _climb(state, curvatures, unit, tolerance, max_iterations - iterations)
    return DualSolution(
        weights=tuple(state.weights[span] for span in state.spans),
        cap=state.cap,
        residual=state.residual(unit),
        lower_bound=state.lower_bound(),
        iterations=iterations,
    )


def _equal_weights(problem: DualProblem) -> Matrix:
    """Return the multipliers at which each arm's weights are its reference plus an equal share of the rest."""
    multipliers = np.zeros((len(problem.arms), problem.arms[0].width + 1))
    for arm, m in zip(problem.arms, multipliers, strict=True):
        m[-1] = (1.0 - arm.reference.sum()) / arm.size
    return multipliers


def _approach(problem: DualProblem, unit: float) -> tuple[int, Matrix]:
    """Return iterations spent and multipliers near the optimum, by way of problems with softer corners.

    Dividing kappa and gamma by a common number makes the quadratic term dominate, and fewer rows change
    sides at a step; the optimal multipliers grow about in proportion, which carries them to the next problem.
    """
    multipliers = _equal_weights(problem)
    iterations, before = 0, _SOFTENINGS[0]
    for softening in _SOFTENINGS:
        softer = replace(problem, kappa=problem.kappa / softening, gamma=problem.gamma / softening)
        state = _State(softer, multipliers * (before / softening), problem.arms[0].held.kind)
        iterations += _climb(state, _Curvatures(softer), unit, _ROUGH, _DIRECT_ITERATIONS)
        multipliers, before = state.multipliers, softening
    return iterations, multipliers * before


def _climb(state: _State, curvatures: _Curvatures, unit: float, tolerance: float, max_iterations: int) -> int:
    """Take Newton steps until the equations hold to the tolerance; return how many."""
    iterations = 0
    while not (idle := state.residuals(unit) <= tolerance).all() and iterations < max_iterations:
        iterations += 1
        if not state.advance(*curvatures.direction(state, idle)):
            break
    return iterations


Target = Literal["ATE", "ATT", "ATC"]
# Treated and control rows.
ArmPair = tuple[ArmRows, ArmRows]

# How far a reference's arm totals may be from one.
_REFERENCE_SUM = 1e-6
_REPAIRS = 4
# A variance below this part of the squares it was taken from is rounding.
_ROUNDING = 1e-12
# Beside sums of products that add up to one, single precision shows what is larger than this.
_SINGLE = 2.0**-24
# Which arms' weights are solved for, treated or not; the other is the target population itself. Where arms are alike,
# it may move with the first.
_BOTH = (True, False)
_SOLVED = {"ATE": _BOTH, "ATT": (False,), "ATC": (True,)}


@dataclass(frozen=True, slots=True)
class WeightSettings:
    """What is supposed of the outcomes, in units of their range B, and how precisely to solve.

    `signal` is the standard deviation, over rows, of the part of the outcome the features explain;
    `residual` that of the rest. `arm_correlation` is the correlation of the former between the arms.
    """

    signal: float = 0.0625
    residual: float = 0.0625
    tolerance: float = 1e-10
    max_iterations: int = 500
    arm_correlation: float | Vector = 0.0

    def __post_init__(self) -> None:
        for name in ("signal", "residual", "tolerance"):
            value = getattr(self, name)
            if not (math.isfinite(value) and value > 0.0):
                raise refusal("CV-P260b", name=name, value=value)


@dataclass(frozen=True, slots=True)
class Weights:
    """Signed weights (n,) with arm totals +1 and -1, and how good they are.

    `totals` (2, p) are the feature totals of treated and control rows under the weights' sizes. `cap` is
    max|w|. `imbalance` is the root mean square bias when mean outcomes vary by one standard deviation over the rows.
    `objective` is the error supposed, in units of B^2, noise included. `gap` bounds how far the objective is above
    the least possible one.
    """

    values: Vector
    totals: Matrix
    cap: float
    imbalance: float
    objective: float
    kkt_residual: float
    gap: float
    iterations: int


def balance_weights(
    features: NDArray[np.floating],
    treated: NDArray[np.bool_],
    *,
    noise_variance: float,
    target: Target | None = "ATE",
    reference: Vector | None = None,
    cap: float | None = None,
    settings: WeightSettings | None = None,
    rows: ArmPair | None = None,
) -> Weights:
    """Return the weights of least supposed error for a (n, p) feature matrix and a treatment (n,).

    `noise_variance` is the variance of the noise added when B max|w| is one. With `target="ATT"` the
    treated rows keep equal weights and the controls are balanced towards their mean ("ATC": the other
    way round); where arms are alike, both are balanced towards that mean. With a `reference` (signed weights
    (n,) with arm totals +1 and -1, such as those of matching) weights stay close to it, and with no target they
    balance towards its feature totals. A given `cap` fixes max|w| at most there instead of choosing it. `rows` is
    `arm_rows(features, treated)` where it is at hand.
    """
    settings = settings or WeightSettings()
    _balancing_check(features, treated, noise_variance)
    pair = arm_rows(features, treated, precision(settings, len(treated))) if rows is None else rows
    moments = _Moments.of(pair)
    arm_correlation = (
        np.full(features.shape[1], settings.arm_correlation) if np.any(settings.arm_correlation) else None
    )
    sides = _SOLVED[target] if arm_correlation is None and reference is None and target is not None else _BOTH
    goal = None if target is None else _goal(pair, moments, target)
    arms, kept = _arms(pair, treated, goal, sides, _magnitudes(reference, treated))
    floor = max(kept, *(1.0 / arm.size for arm in arms))
    _check_cap(cap, floor)
    price = _Price(settings.signal**2 / moments.total_variance, settings.residual**2, noise_variance)
    solution = solve(
        DualProblem(arms, price.rho2 / price.sigma2, price.noise / price.sigma2, floor, cap, arm_correlation),
        unit=math.sqrt(moments.total_variance / max(features.shape[1], 1)),
        tolerance=settings.tolerance,
        max_iterations=settings.max_iterations,
    )
    weights = [exactly_summing(w, solution.cap) for w in solution.weights]
    values = np.where(treated, kept, -kept)
    for side, w in zip(sides, weights, strict=True):
        values[treated == side] = w if side else -w
    largest = float(np.abs(values).max())
    totals = np.stack([held.totals / held.size for held in pair])
    for side, arm, w in zip(sides, arms, weights, strict=True):
        totals[0 if side else 1] = arm.held.weighted(w)
    gaps = [totals[0 if side else 1] - arm.target for side, arm in zip(sides, arms, strict=True)]
    imbalance2 = _squared_imbalance(gaps, arm_correlation)
    distance2 = sum(float(((w - a.reference) ** 2).sum()) for a, w in zip(arms, weights, strict=True))
    objective = price.rho2 * imbalance2 + price.sigma2 * distance2 + price.noise * largest**2
    return Weights(
        values=values,
        totals=totals,
        cap=largest,
        imbalance=math.sqrt(imbalance2 / moments.total_variance),
        objective=objective,
        kkt_residual=solution.residual,
        gap=objective - 2.0 * price.sigma2 * solution.lower_bound,
        iterations=solution.iterations,
    )


def _squared_imbalance(gaps: list[Vector], arm_correlation: Vector | None) -> float:
    """Return the squared gaps (p,) of the arms, less what arms that are `arm_correlation` (p,) have in common."""
    whole = sum(float(gap @ gap) for gap in gaps)
    return (
        whole
        if arm_correlation is None
        else max(whole - 2.0 * float(arm_correlation @ (gaps[0] * gaps[1])), 0.0)
    )


@dataclass(frozen=True, slots=True)
class _Price:
    """What a unit of squared imbalance, of squared distance to the reference and of squared cap costs."""

    rho2: float
    sigma2: float
    noise: float


def exactly_summing(weights: Vector, cap: float) -> Vector:
    """Return the weights moved within [0, cap] so that they sum to one up to rounding.

    Too much is taken in proportion to the weights, too little is given in proportion to the headroom under
    the cap, so no bound is crossed and equal weights stay equal.
    """
    weights = weights.copy()
    for _ in range(_REPAIRS):
        missing = 1.0 - float(weights.sum())
        if missing < 0.0:
            weights /= 1.0 - missing
        elif missing > 0.0:
            headroom = cap - weights
            weights += headroom * min(missing / max(float(headroom.sum()), missing), 1.0)
    return weights


@dataclass(frozen=True, slots=True)
class _Moments:
    """Mean (p,) and total variance of the features over all rows; the variance of constants counts as one."""

    mean: Vector
    total_variance: float

    @classmethod
    def of(cls, pair: ArmPair) -> _Moments:
        n = sum(held.size for held in pair)
        mean = (pair[0].totals + pair[1].totals) / n
        squares = sum(held.squares for held in pair) / n
        if not math.isfinite(squares):
            raise refusal("CV-P267")
        total_variance = squares - float(mean @ mean)
        return cls(mean, total_variance if total_variance > _ROUNDING * squares else 1.0)


def arm_rows(features: NDArray[np.floating], treated: NDArray[np.bool_], kind: Kind = np.float64) -> ArmPair:
    """Return the treated and the control rows of a (n, p) feature matrix, with the sums that weights depend on.

    Products are found in the precision `kind`.
    """
    one, other = (ArmRows.of(features, np.flatnonzero(arm), kind) for arm in (treated, ~treated))
    return one, other


def precision(settings: WeightSettings, rows: int) -> Kind:
    """Return in which precision products show the curvature well enough for the steps of the solver."""
    # The curvature beside that of the products, on the scale on which they add up to the number of rows.
    stiff = settings.residual**2 / settings.signal**2
    return np.float32 if rows * _SINGLE <= stiff else np.float64


def _goal(pair: ArmPair, moments: _Moments, target: Target) -> Vector:
    """Return the features' mean (p,) over the rows whose effect is asked for."""
    whose = {"ATT": pair[0], "ATC": pair[1]}.get(target)
    return moments.mean if whose is None else np.asarray(whose.totals / whose.size)


def _arms(
    pair: ArmPair,
    treated: NDArray[np.bool_],
    goal: Vector | None,
    sides: tuple[bool, ...],
    reference: Vector | None,
) -> tuple[tuple[ArmBalancing, ...], float]:
    """Return the arms to solve for, and the equal weight kept by an arm that is the target itself."""
    arms = []
    for side in sides:
        held = pair[0] if side else pair[1]
        near = np.zeros(held.size) if reference is None else reference[treated == side]
        arms.append(ArmBalancing(held, near, held.weighted(near) if goal is None else goal))
    return tuple(arms), 0.0 if len(sides) > 1 else 1.0 / (len(treated) - arms[0].size)


def _magnitudes(reference: Vector | None, treated: NDArray[np.bool_]) -> Vector | None:
    """Return the reference without its signs, after checking signs and arm totals."""
    if reference is None:
        return None
    fits = reference.shape == treated.shape
    magnitudes = np.where(treated, reference, -reference) if fits else np.zeros(len(treated))
    sums = [float(magnitudes[treated].sum()), float(magnitudes[~treated].sum())]
    near_one = max(abs(s - 1.0) for s in sums) <= _REFERENCE_SUM
    if not (near_one and float(magnitudes.min()) >= 0.0):
        raise refusal("CV-P261", reference=reference.shape, sums=sums[0], sums_2=-sums[1])
    return magnitudes


def _balancing_check(
    features: NDArray[np.floating], treated: NDArray[np.bool_], noise_variance: float
) -> None:
    if features.ndim != 2 or treated.shape != (len(features),) or treated.dtype != np.bool_:
        raise refusal("CV-P262", features=features.shape, treated=treated.shape, dtype=treated.dtype)
    if not treated.any() or treated.all():
        raise refusal("CV-P263", treated=int(treated.sum()), rows=len(treated))
    if not (math.isfinite(noise_variance) and noise_variance >= 0.0):
        raise refusal("CV-P260", noise_variance=noise_variance)


def _check_cap(cap: float | None, floor: float) -> None:
    if cap is not None and not cap >= floor:
        raise refusal("CV-P264", floor=floor, cap=cap)


# Weights of one arm's rows that estimate the mean outcome everybody would have in that arm.
#
# The estimate is sum_i w_i Y_i over the arm's rows, w_i >= 0 with total one. Its supposed error is that of
# `balancing_weights`, for one arm alone: squared imbalance towards the features' mean over everybody, variance,
# and noise whose scale is proportional to the arm's own largest weight. So each of several arms has its own
# cap, as it must where their means are released with noise of their own.


def arm_weights(
    features: NDArray[np.floating], target: Vector, *, noise_variance: float, settings: WeightSettings
) -> Vector:
    """Return the weights (m,) of an arm's rows, of least supposed error.

    `features` (m, p) are those of the arm; over everybody their total variance is one and their means the `target`.
    `noise_variance` is the variance of the noise added when (range of outcomes) * max w is one.
    """
    size, width = features.shape
    variance = settings.residual**2
    problem = DualProblem(
        (ArmBalancing(ArmRows.of(features, np.arange(size)), np.zeros(size), target),),
        kappa=settings.signal**2 / variance,
        gamma=noise_variance / variance,
        floor=1.0 / size,
    )
    solution = solve(
        problem,
        unit=1.0 / math.sqrt(max(width, 1)),
        tolerance=settings.tolerance,
        max_iterations=settings.max_iterations,
    )
    return exactly_summing(solution.weights[0], solution.cap)
