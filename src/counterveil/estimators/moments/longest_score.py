"""A bound that no doubly robust score exceeds, from released lines and weights and from the limits of rows.

Rows u = (1, z) keep |z_j| <= l and |z| <= L, outcomes v = (y - c) / s with y in [-1, 1]
(`rows.moments.scaled_rows`). For a line w = (w_0, w_1), by Cauchy and Schwarz and by Hoelder,

    |w'u| <= g(w) = |w_0| + min(L |w_1|_2, l |w_1|_1),    |v| <= f = (1 + |c|) / s,

so that a weighted residual alpha_a'u (v - beta_a'u) is at most g(alpha_a) (f + g(beta_a)) in size. In come
released numbers, out come bounds in units of the released scale. They limit where scores are clipped, and no
sensitivity. Letters: alpha_a are the weights and beta_a the line of arm a, c and s the released centre and
scale of outcomes; privacy does not depend on the bound. Proof: `estimators/moments/longest_score.proof.md`.
"""

# Proof: longest_score.proof.md

from __future__ import annotations

from math import sqrt

import numpy as np

from counterveil.numerics.arrays import Floats
from counterveil.rows.moments.linear_models import ArmLines
from counterveil.rows.moments.scaled_rows import ScaledRows
from counterveil.rows.moments.score_sums import ArmScore


def longest_score(score: ArmScore, rows: ScaledRows) -> float:
    """Return a bound of the size of every score, from released lines and weights and the limits of rows and outcomes.

    A row of arm a has the score people_a (tau'u - effect) +- alpha_a'u (v - beta_a'u).
    """
    control, treated = score.lines.values
    gain = treated - control
    gain[0] -= score.effect
    residuals = longest_weighted(score.lines, score.weights, rows)
    return float(max(_farthest_line(rows, gain) * np.array(score.people) + residuals))


def longest_weighted(lines: ArmLines, weights: Floats, rows: ScaledRows) -> Floats:
    """Return for every arm a bound of the size of its weighted residuals alpha_a'u (v - beta_a'u)."""
    # y is in [-1, 1].
    farthest_outcome = (1.0 + abs(rows.centre)) / rows.unit
    pairs = zip(weights, lines.values, strict=True)
    return np.array(
        [
            _farthest_line(rows, weight) * (farthest_outcome + _farthest_line(rows, line))
            for weight, line in pairs
        ]
    )


def _farthest_line(rows: ScaledRows, line: Floats) -> float:
    """Return a bound of |line'u|: of all rows, each coordinate and the length of z are limited."""
    by_length = sqrt(rows.standard.squared_length) * float(np.linalg.norm(line[1:]))
    by_coordinate = rows.standard.limit * float(np.abs(line[1:]).sum())
    return abs(float(line[0])) + min(by_length, by_coordinate)
