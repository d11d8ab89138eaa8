"""The middle of a regression's sandwich for errors of unequal variance (HC1), from two releases.

Least squares of the released moments gives T, which makes regressors uncorrelated, and the residual's
weights; counts of the squared lengths of rows w = q T x e then say where few rows are longer, and the mean of
w w' is released of rows shortened to that length.

Letters: x are a row's regressors, e its residual, q a weight of the row, n the number of rows. The middle of
the sandwich is M = mean of e^2 x x' (White 1980), in squared units of the response times those of regressors. With
q = 1 the mean of w w' is T M T', from which M follows, as T is known. Proof:
`rows/moments/robust_moments.proof.md`: rows of squared length at most R move the mean by at most sqrt 2 R/n.
"""

from __future__ import annotations

from dataclasses import replace
from math import sqrt

import numpy as np

from counterveil.estimators.moments.regression_plan import SHOWN, RowPlan, cut_shares
from counterveil.estimators.moments.scaling import first_few
from counterveil.inference.linear_fit import least_squares
from counterveil.inference.moments import NoisyMoments
from counterveil.numerics.arrays import Floats
from counterveil.rows.moments.outcome_moments import OutcomeRows
from counterveil.rows.moments.robust_moments import Sandwich
from counterveil.rows.moments.working_rows import WorkingRows
from counterveil.rows.records import Records
from counterveil.session import Gate

PAGE = "rows/moments/robust_moments.proof.md"
# Ends of the cells of |w|^2, in parts of what errors of equal variance give on average.
_EDGES = np.array([2.0, 4.0, 6.0, 8.0, 12.0, 16.0, 24.0, 32.0, 48.0, 64.0, 96.0, 160.0, 320.0])
# Sizes of numbers in rows that double precision multiplies without loss of sense.
_LARGEST = 1e60


def release_sandwich(
    gate: Gate,
    number: int,
    records: Records,
    rows: WorkingRows | OutcomeRows,
    *,
    moments: NoisyMoments,
    regressors: Floats,
    response: Floats,
    design: RowPlan,
) -> tuple[Floats, Floats, float]:
    """Return T (p, p), the released mean of w w' (p, p) and its noise off the diagonal.

    `number` tells the regressions of a plan apart; `regressors` (p, m) and `response` (m,) are combinations of working
    rows.
    """
    sandwich, turn, typical_length = _sandwich(rows, moments, regressors, response)
    edges = _EDGES * typical_length
    counts = sandwich.release_lengths(gate, f"robust reach {number}", records, edges=edges, pure=design.pure)
    shortened = cut_shares(design.entry_noise * sqrt(records.count)).responses
    longest, _ = first_few(
        counts.floats(),
        counts.variance,
        shortened * records.count,
        shown=SHOWN,
        edges=np.append(edges, 2 * edges[-1]),
    )
    short = replace(sandwich, squared_length=longest)
    matrix, sd = short.release_middle(gate, f"robust {number}", records)
    return turn, matrix, sd


def _sandwich(
    rows: WorkingRows | OutcomeRows, moments: NoisyMoments, regressors: Floats, response: Floats
) -> tuple[Sandwich, Floats, float]:
    """Return the rows of a sandwich, T, and their squared length if errors have equal variance.

    Where noise left no regression, T is zero and nothing depends on rows.
    """
    fit = least_squares(moments, regressors, response)
    size = len(regressors)
    turn = np.zeros((size, size))
    typical_length = 1.0
    if fit.identified:
        values, vectors = np.linalg.eigh(fit.unit * moments.rows)
        turn = (vectors * np.sqrt(np.maximum(values, 0.0))) @ vectors.T
        typical_length = size * fit.variance
    sandwich = Sandwich(rows, turn @ regressors, fit.residual)
    if np.abs(sandwich.turned).max() < _LARGEST and 1 / _LARGEST < typical_length < _LARGEST:
        return sandwich, turn, typical_length
    turn = np.zeros_like(turn)
    return Sandwich(rows, turn @ regressors, np.zeros_like(response)), turn, 1.0
