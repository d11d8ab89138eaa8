"""Where residuals of outcomes are clipped: noisy counts of their sizes, and what a clip may take off a mean.

In come released counts of |v - u.w| between the `EDGES`, in half ranges of the outcome. A clip C loses about
sum over cells of count (size - C)+ / n, or the noise in that, which is taken for a standard deviation
(`Sizes.lost`). The clip of least (noise unit C)^2 + lost(C)^2 is chosen, since the noise of what is summed
grows with C. Numbers that are choices were set on the designs of `experiments/cate`; privacy does not depend
on them.

Privacy of the counts: `rows/histogram.proof.md`, as a row is in one cell; of moments of clipped residuals:
`rows/moments/orthogonal_score.proof.md`.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt

import numpy as np

from counterveil.estimators.histogram import HELD, beyond
from counterveil.estimators.moments.scaling import first_few
from counterveil.numerics.arrays import Floats
from counterveil.rows.moments.arm_statistics import ResidualSizes
from counterveil.rows.moments.unit_rows import RowForm
from counterveil.session import Gate

# Edges of the cells in which sizes of residuals are counted, each a fifth above the one before; no residual
# of an outcome in [-1, 1] needs to be larger than the last.
EDGES = np.geomspace(1.0 / 128, 2.0, 31)
# Part of the residuals that may be clipped, beside as many as the noise of the counts hides.
_CLIPPED = 0.002


@dataclass(frozen=True, slots=True)
class Sizes:
    """Noisy counts of sizes of residuals between the edges, in halves of the outcome's range.

    Attributes
    ----------
    counts : ndarray of float
        Counts as parts of all rows.
    sd : float
        Standard deviation of the noise of each.
    most : float
        Nearly all residuals stay below this: skewed residuals that are clipped shift effects, so that few may
        be, as many as the noise of the counts hides.
    largest : float
        No residual is supposed beyond this.
    """

    counts: Floats
    sd: float
    most: float
    largest: float

    def lost(self, clip: float) -> float:
        """Return what a clip may take off a mean, as a standard deviation."""
        return float(self._lost(np.array([clip]))[0])

    def _lost(self, clips: Floats) -> Floats:
        low = np.append(0.0, EDGES)
        sizes = np.where(low < self.largest, (low + np.append(EDGES, EDGES[-1])) / 2, 0.0)
        return HELD * beyond(self.counts, self.sd, np.minimum(sizes, self.largest), clips)

    def clip(self, least: float, unit: float) -> float:
        """Return the clip of least error of a function whose noise is `unit` times the clip, no nearer than `least`."""
        clips = np.append(least, EDGES[least < EDGES])
        return float(clips[np.argmin((unit * clips) ** 2 + self._lost(clips) ** 2)])


def find_sizes(gate: Gate, name: str, form: RowForm, weights: Floats, *, rows: int, level: float) -> Sizes:
    """Return sizes of residuals around weights from a noisy histogram; `level` is the mean outcome."""
    counts, variance = ResidualSizes(form, weights, EDGES).release(gate, name)
    edges = np.append(EDGES, EDGES[-1])
    most = first_few(counts, variance, _CLIPPED * rows, shown=-1.0, edges=edges)[0]
    return Sizes(counts / rows, sqrt(variance) / rows, most, 1 + min(abs(level), 1.0))
