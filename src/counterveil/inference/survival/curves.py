"""Both arms' curves, standardised over strata, with the covariances of their errors.

    S_a(t) = sum over strata of share_s S_sa(t),    Var S_a = sum over strata of share_s^2 Var S_sa,

with S_sa(t) the probability of being free of the event at t in arm a of stratum s, from the curves of blocks
(stratum, arm), and share_s the stratum's part of all people. Strata hold different people, so that their
sampling errors are independent and variances add up. Where shares are read off the noisy tables themselves,
their noise is carried along by the delta method. Out: curves at the edges of cells, with covariances of
sampling and of noise apart. Only released and public numbers enter.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import nan

import numpy as np
from numpy.typing import NDArray

from counterveil.inference.survival.blocks import Blocks
from counterveil.inference.survival.incidence import Incidence
from counterveil.inference.survival.within_cells import points_of, uneven
from counterveil.numerics.arrays import Floats

# Nothing is supposed of where outcomes lie within a cell that holds more than this part of an arm,
_COARSE = 1 / 3
# nor within one that is so many times as long as one beside it.
_LONGER = 3.0


@dataclass(frozen=True)
class Curves:
    """Survival of both arms, control first, at time 0 and at the end of every cell.

    Attributes
    ----------
    survival : ndarray of float, shape (2, J + 1)
        Survival, level where a curve is lost in the noise.
    shown : ndarray of float, shape (2, J + 1)
        The same, falling on there as is likeliest.
    sampling : ndarray of float, shape (2, J + 1, J + 1)
        Covariance of each curve from sampling.
    noise : ndarray of float, shape (2, J + 1, 2, J + 1)
        Covariance of both curves from noise.
    slack : ndarray of float, shape (2, J + 1)
        How far each curve may lie lower, as it was lost in the noise before.
    grouping : ndarray of float, shape (2, J + 1)
        How far each curve may be off as hazards change within the cells that people are censored in.
    people : ndarray of float, shape (2, J)
        People under observation when each cell begins.
    worth : ndarray of float, shape (2, J)
        Number of people without strata and bias that would err as much: fewer than `people` where an arm has
        few people in strata with large shares.
    heaviness : ndarray of float, shape (2, J + 1)
        Excess kurtosis of the noise of each point, as a part of Laplace's.
    lengths : ndarray of float, shape (J,)
        Lengths of the cells.
    rounded : bool
        Whether cells hold outcomes, which may be rounded and begin steeply.
    heaped : float
        Round number to whose multiples outcomes are seen to be rounded, in part or all; 0 for none.
    """

    survival: Floats
    shown: Floats
    sampling: Floats
    noise: Floats
    slack: Floats
    grouping: Floats
    people: Floats
    worth: Floats
    heaviness: Floats
    lengths: Floats
    rounded: bool = False
    heaped: float = 0.0

    @cached_property
    def curvature(self) -> tuple[Floats, NDArray[np.bool_], Floats]:
        """How far each curve may be from straight lines in every cell, (2, J): up to all that the cell holds.

        Then whether it is less towards the ends of the cell, as smooth curves are, and whether cells beside
        it hold more (1) or less (-1) the later they are.
        """
        points = points_of(self.lengths)
        held = -np.diff(self.shown, axis=1)
        between = ~points
        # A point holds a crowd, and says nothing of those beside it.
        curvature = held.copy()
        smooth = np.zeros(held.shape, dtype=bool)
        leans = np.full(held.shape, nan)
        lengths = self.lengths[between]
        variances = self._variances[1][:, between]
        of_cells = self._curvature_between(held[:, between], lengths, variances)
        curvature[:, between], smooth[:, between], leans[:, between] = of_cells
        return curvature, smooth, leans

    def _curvature_between(
        self, held: Floats, lengths: Floats, variances: Floats
    ) -> tuple[Floats, NDArray[np.bool_], Floats]:
        """Return `curvature` of what cells of these lengths hold, with its variances."""
        # Cells of one length are compared as they are, others by what they hold of a length.
        relative_lengths = lengths / lengths.mean()
        padded_lengths = np.pad(lengths, 1, mode="reflect")
        cells, smooth = uneven(held / relative_lengths, variances / relative_lengths**2, self.rounded)
        open_ended = lengths > _LONGER * np.minimum(padded_lengths[:-2], padded_lengths[2:])
        leans = np.sign((held / relative_lengths)[:, 2:] - (held / relative_lengths)[:, :-2])
        leans = np.pad(leans, ((0, 0), (1, 1)), constant_values=nan)[:, : held.shape[1]]
        cells = np.maximum(cells, np.minimum(self.heaped / lengths, 1.0))
        curvature = np.where((held > _COARSE) | open_ended, held, cells * np.maximum(held, 0.0))
        return curvature, smooth & (curvature < held) & (self.heaped == 0), leans

    @cached_property
    def _variances(self) -> tuple[Floats, Floats]:
        """Variances at all edges, (2, J + 1), and of what cells hold, (2, J)."""
        total = self.sampling + np.stack([self.noise[arm, :, arm] for arm in (0, 1)])
        held = np.diff(np.diff(total, axis=1), axis=2)
        return np.diagonal(total, axis1=1, axis2=2), np.clip(np.diagonal(held, axis1=1, axis2=2), 0.0, None)

    @cached_property
    def halfway(self) -> Floats:
        """The standard deviation of straight lines halfway between edges, as a part of that at both, (2, J).

        Their variance there is the mean of both less a quarter of that of what the cell holds.
        """
        at, held = self._variances
        return np.asarray(np.sqrt(np.clip(1 - held / 2 / np.maximum(at[:, 1:] + at[:, :-1], 1e-300), 0, 1)))


def standardised(
    blocks: Blocks,
    shares: Floats,
    per_person: float = 0.0,
    of: Blocks | Incidence | None = None,
    lengths: Floats | None = None,
) -> Curves:
    """Return the curves of both arms over strata with these shares; blocks are (stratum, arm), control first.

    Curves are those of the blocks, or those `of` one cause of the event; cells have these `lengths`, or one
    length.

    `per_person` is 1 over the number of people where the shares are those of the noisy tables themselves,
    else 0.
    """
    of = of or blocks
    strata = len(shares)
    points = blocks.cells + 1
    size = blocks.counts.shape[1]
    curves = of.curves.reshape(strata, 2, points)
    survival, shown = (
        np.einsum("s,sap->ap", shares, by_block.reshape(strata, 2, points))
        for by_block in (of.curves, of.shown)
    )
    squares = of.sampling.reshape(strata, 2, points, points)
    sampling = np.einsum("s,sapq->apq", shares**2, squares)
    slopes = of.gradients.reshape(strata, 2, points, size)
    full = np.zeros((2, points, strata, 2, size))
    for arm in range(2):
        full[arm, :, :, arm] = np.einsum("s,spm->psm", shares, slopes[:, arm])
        if per_person:
            full[arm] += per_person * curves[:, arm].T[:, :, None, None]
    moved = full.reshape(2 * points, strata * 2, size)
    noise = blocks.noise.of(moved).reshape(2, points, 2, points)
    heaviness = blocks.noise.heaviness(moved).reshape(2, points)
    slack, grouping = (
        np.einsum("s,sap->ap", shares, by_block.reshape(strata, 2, points))
        for by_block in (of.slack, of.grouping)
    )
    people = blocks.starting.reshape(strata, 2, blocks.cells)
    variances_per_person = np.einsum("s,saj->aj", shares**2, blocks.inflation / np.maximum(people, 1.0))
    worth = 1 / np.maximum(variances_per_person, 1e-300)
    return Curves(
        survival=survival,
        shown=shown,
        sampling=sampling,
        noise=noise,
        slack=slack,
        grouping=grouping,
        people=people.sum(axis=0),
        worth=worth,
        heaviness=heaviness,
        lengths=np.ones(blocks.cells) if lengths is None else lengths,
    )
