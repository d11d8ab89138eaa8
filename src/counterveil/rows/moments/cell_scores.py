"""Scores of rows in public cells: their histogram, and number, sum and squares of clipped scores by cell.

Outcomes y are in half ranges around the middle of their declared range. With t = 1 for a treated row and 0
for another, a row's score psi is one of

    plain      t (y - c) / e - (1 - t) (y - c) / (1 - e),    (inverse weighting by the share e),
    adjusted   (t - e(x)) (y - m(x) - b (t - e)) / (e(x) (1 - e(x))),  (residual on residual),
    mean       y - c,

where the share e, the centre c and the linear models e(x) of treatment and m(x) of outcome with one effect b
were released before. Its mean over a cell is the effect in that group (for adjusted scores, what is left of
it beyond the effect b; for the mean, of the outcome). Models only change what is estimated and how widely
scores vary: privacy rests on the clip.

In: private rows, and a public or released rule (`Placing`) that puts a row into one cell by its own values
alone. Out: noisy counts of psi between edges, then for every cell the sums of `cell_sums` of r = (psi -
centre) / size, clipped to [-1, 1], and for adjusted scores the sums of the residuals of treatment and outcome
and of the information (how far a score moves with the effect), each in parts of its bound and with a weight.

Why it is right: a row is in one cell and its terms lie in [-1, 1], which bounds how far it moves all sums.
Proof: `rows/moments/group_scores.proof.md`; the histogram: `rows/histogram.proof.md`.
"""

# Proof: group_scores.proof.md

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from math import sqrt
from typing import TypeAlias

import numpy as np

from counterveil.data import Sums
from counterveil.numerics.arrays import Floats
from counterveil.numerics.products import Standard
from counterveil.rows.counts import release_counts, release_sums
from counterveil.rows.moments.cell_sums import CellBlock, CellTerms, cell_sums, cell_terms, three_terms
from counterveil.rows.moments.linear_models import LinearModels
from counterveil.rows.moments.placing import Placing
from counterveil.rows.moments.scores import TERM_BITS, counts_between
from counterveil.rows.records import Part, Records, TableRecords
from counterveil.session import Gate, ReleasedVector


@dataclass(frozen=True, slots=True)
class PlainRows:
    """The plain score of rows, from the share treated e and a mean outcome c."""

    share: float
    mean: float

    def value(self, block: Part, /) -> Floats:
        """Return the scores of a block of rows."""
        e = self.share
        return np.asarray(np.where(block.treated, 1 / e, -1 / (1 - e)) * (block.y - self.mean))

    placed = value


@dataclass(frozen=True, slots=True)
class MeanRows:
    """Outcomes of rows around a centre."""

    mean: float

    def value(self, block: Part, /) -> Floats:
        """Return the outcomes of a block of rows, less the centre."""
        return np.asarray(block.y - self.mean)

    placed = value


@dataclass(frozen=True, slots=True)
class AdjustedRows:
    """The doubly robust score of rows, from two linear models with one effect in common.

    Attributes
    ----------
    standard : Standard
        The map from covariates to what the models read.
    models : LinearModels
        Of treatment and outcome.
    least : float
        Propensities are kept this far from 0 and 1.
    residual_bound : float
        Where what the model leaves of outcomes is clipped when it is summed.
    weight_bound : float
        The largest weight of a residual, for what released propensities can be.
    placed_residual : float, optional
        The residual that rows are placed in a histogram for; by default their own.
    """

    standard: Standard
    models: LinearModels
    least: float
    residual_bound: float
    weight_bound: float
    placed_residual: float | None = None

    @property
    def residual_bounds(self) -> tuple[float, float, float]:
        """Bounds of the treatment's and the outcome's residuals, and of the information."""
        share = self.models.share
        return 1.0, self.residual_bound, self.weight_bound * max(share, 1 - share)

    def value(self, block: Part, /) -> Floats:
        """Return the scores of a block of rows."""
        u = block.u(self.standard)
        t = block.treated.astype(np.float64)
        return np.asarray(self._weights(u, t) * self.models.residual(u, t, block.y))

    def placed(self, block: Part, /) -> Floats:
        """Return the scores, or what they would be for the residual that rows are placed for."""
        if self.placed_residual is None:
            return self.value(block)
        weights = self._weights(block.u(self.standard), block.treated.astype(np.float64))
        return self.placed_residual * weights

    def _weights(self, u: Floats, t: Floats) -> Floats:
        e = np.clip(self.models.score(u), self.least, 1 - self.least)
        return np.asarray(self.models.treatment_residual(u, t) / (e * (1 - e)))

    def residuals(self, block: Part) -> tuple[Floats, ...]:
        """Return the residuals of treatment and outcome, and how much a score moves with the effect.

        All as parts of their bounds. Scores move by the last, the information, where every effect moves by one: by
        less on average where propensities are shrunk or kept away from 0 and 1.
        """
        u = block.u(self.standard)
        t = block.treated.astype(np.float64)
        terms = (
            self.models.treatment_residual(u, t),
            self.models.residual(u, t, block.y),
            self._weights(u, t) * (t - self.models.share),
        )
        return tuple(term / bound for term, bound in zip(terms, self.residual_bounds, strict=True))


# How scores of rows are made, of public and released numbers alone.
RowScore: TypeAlias = PlainRows | AdjustedRows | MeanRows


def release_score_counts(
    gate: Gate, records: Records, score: RowScore, edges: Floats, pure: bool
) -> ReleasedVector:
    """Return how many scores lie between every two public edges, with Laplace noise where `pure`, else Gaussian."""
    (counts,) = records.run(score_counts, score, edges)
    return release_counts(gate, "histogram", counts, pure)


def score_counts(records: TableRecords, score: RowScore, edges: Floats) -> Sums:
    """Return how many scores lie between every two edges, as `placed` has them."""
    return (counts_between(edges, (score.placed(block) for block in records.parts())),)


@dataclass(frozen=True, slots=True)
class CellScores:
    """Number, sum and squares of the clipped scores of every cell, and sums of what the models leave.

    Attributes
    ----------
    score : RowScore
        How scores of rows are made.
    placing : Placing
        Which cell every row of a block is in, by a public rule.
    cells : int
        Number of cells.
    centre, size : float
        Scores are taken as (psi - centre) / size, clipped to [-1, 1].
    pure : bool
        Laplace noise by the sum of changes, else Gaussian noise by their length.
    """

    score: RowScore
    placing: Placing
    cells: int
    centre: float
    size: float
    pure: bool

    @property
    def terms(self) -> CellTerms:
        """The terms of a cell with their weights, and how far a row moves them."""
        return cell_terms(isinstance(self.score, AdjustedRows), self.pure)

    def release(self, gate: Gate, records: Records) -> tuple[Floats, float]:
        """Return the released terms, (3 + further, cells), and the standard deviation of the noise of each."""
        terms = self.terms
        ((counts, scores, squares, *further),) = records.run(
            scored_cells,
            self.score,
            self.placing,
            self.cells,
            self.centre,
            self.size,
            sequential=self.placing.sequential,
        )
        step = Fraction(1, 1 << TERM_BITS)
        of_cells = [
            three_terms(n, step * s, step * step * q) for n, s, q in zip(counts, scores, squares, strict=True)
        ]
        values = [cell[term] for term in range(3) for cell in of_cells]
        for weight, totals in zip(terms.further, further, strict=True):
            values += [weight * step * total for total in totals]
        released = release_sums(gate, "cells", values, pure=self.pure, l1=terms.absolute, l2=terms.euclidean)
        return released.floats().reshape(-1, self.cells), sqrt(released.variance)


def scored_cells(
    records: TableRecords, score: RowScore, placing: Placing, cells: int, centre: float, size: float
) -> Sums:
    """Return the sums of `cell_sums`: counts, scores, squares and the further terms, (3 + further, cells)."""
    models = isinstance(score, AdjustedRows)

    def rows() -> Iterator[CellBlock]:
        for block in records.parts():
            residuals = score.residuals(block) if isinstance(score, AdjustedRows) else ()
            yield placing(block), (score.value(block) - centre) / size, residuals

    return cell_sums(rows(), cells, len(cell_terms(models, pure=False).further))
