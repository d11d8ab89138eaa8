"""Survival curves, restricted means, tests and hazard ratios from noisy tables of events by time cell.

A block is an arm, or an arm of a stratum. Its table has (K + 1) J + 1 entries: events by cause and cell, censorings by
cell, and people who were followed to the horizon; K is 1 without competing risks. With d events among E people at risk,
a cell's hazard is h = d / E, and the curve is the product of 1 - h (Kaplan and Meier 1958). Sampling errors are
Greenwood's; those of the noise follow by the delta method, in the numerators and in the denominators. Where the people
at risk are lost in the noise, a curve is not known any more.

The interval of a probability is Wilson's at the effective number of people (Rothman 1978), with the variance of the
noise added, so that it holds for few events and for estimates that noise moved beyond 0 or 1. A difference takes both
arms' intervals (Zou and Donner 2008). Where a curve is lost in the noise, it may be anywhere between 0 and its last
known upper end. Exposure in every cell is known; hazards that change within cells in which people are censored may
still move curves, and intervals hold for every such bias up to a bound (Armstrong and Kolesar 2018).

The log-rank test takes events of the treated less those expected if all hazards were alike, summed over cells and
strata (Mantel 1966; Peto and Peto 1972), with the hypergeometric variance and the noise of events and people at risk.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from itertools import pairwise
from math import ceil, exp, floor, hypot, inf, isfinite, isinf, isnan, log, nan, sqrt

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri

from counterveil.inference.biased_intervals import biased_half_width, biased_half_widths
from counterveil.inference.measures import Apart, p_value
from counterveil.inference.simultaneous import simultaneous
from counterveil.numerics.arrays import Ends, Floats
from counterveil.numerics.running_sums import FLAT, SUMS, Form

# People at risk are known where they are this many times the standard deviation of their noise.
# Set by `python -m experiments.survival --only tuning`.
LEAST_AT_RISK = 3.0
# By where people are censored: whether those of an entry are gone in its cell. "middle": they count in parts at both
# ends of their cell, and an entry holds those at its beginning. "end": they are at risk in the whole cell.
_GONE = {"middle": 1.0, "end": 0.0}
# What may be off of the exposure of people who are censored, at least: times are rounded to an eighth of a cell.
_ROUNDED = 1 / 16
# Events added to a block for its sampling variance alone, so that no events do not mean no error.
_ADDED = 1.0


@dataclass(frozen=True, slots=True)
class TableNoise:
    """The noise of tables: its covariance in one block (M, M), and which blocks' totals are public together.

    `groups` holds the places of blocks whose entries add up to a public number: the tables were moved to it, which
    takes the noise of that sum away. `root` (M, M) makes the noise of a block of independent numbers; None where
    that of entries is independent itself.
    """

    covariance: Floats
    groups: tuple[tuple[int, ...], ...]
    root: Floats | None = None

    def of(self, gradients: Floats) -> Floats:
        """Return the covariance (K, K) of K linear functions of all blocks; gradients are (K, B, M)."""
        spread = gradients @ self.covariance
        covariance = spread.reshape(len(spread), -1) @ gradients.reshape(len(spread), -1).T
        total_variance = float(self.covariance.sum())
        if total_variance <= 0:
            return np.asarray(covariance)
        for group in self.groups:
            group_spread = spread[:, list(group)].sum(axis=(1, 2))
            covariance -= np.outer(group_spread, group_spread) / (total_variance * len(group))
        return np.asarray(covariance)

    def heaviness(self, gradients: Floats) -> Floats:
        """Return the excess kurtosis of K linear functions as a part of that of one noisy number; 0 is normal."""
        independent = gradients if self.root is None else gradients @ self.root
        squares = (independent**2).sum(axis=(1, 2))
        return np.asarray((independent**4).sum(axis=(1, 2)) / np.maximum(squares, 1e-150) ** 2)


def with_totals(counts: Floats, noise: TableNoise, totals: Sequence[float]) -> Floats:
    """Return noisy tables (B, M) moved to the public totals of their groups, the most precise way there is."""
    moved = counts.copy()
    total_variance = float(noise.covariance.sum())
    if total_variance <= 0:
        return moved
    towards = noise.covariance.sum(axis=0) / total_variance
    for group, total in zip(noise.groups, totals, strict=True):
        blocks = list(group)
        moved[blocks] -= towards * (moved[blocks].sum() - total) / len(blocks)
    return moved


@dataclass(frozen=True)
class Blocks:
    """Curves of all blocks, (B, J + 1) from time 0 on, with how they depend on every entry.

    Attributes
    ----------
    counts : ndarray of float, shape (B, M)
        Tables as released, moved to public totals.
    noise : TableNoise
        Noise of the tables.
    convention : {"middle", "end"}
        Where in a cell people are censored.
    design : ndarray of float, shape (B,)
        For weighted counts the ratio of squared weights to weights; 1 without weights.
    inflation : float
        Factor of the sampling variance, for bias that is allowed for.
    causes : int
        Number of causes of the event, each with columns of its own.
    """

    counts: Floats
    noise: TableNoise
    convention: str
    design: Floats
    inflation: float = 1.0
    causes: int = 1

    @property
    def cells(self) -> int:
        """The number of time cells."""
        return int(self.counts.shape[1] - 1) // (self.causes + 1)

    def event_rows(self, cause: int | None = None) -> Floats:
        """Return the matrix (J, M) that makes events of a table: those of one cause, or of all."""
        chosen = [float(one == cause or cause is None) for one in range(self.causes)]
        return np.hstack([np.kron([*chosen, 0.0], np.eye(self.cells)), np.zeros((self.cells, 1))])

    @cached_property
    def events(self) -> Floats:
        """Events of any cause by block and cell."""
        return self.counts @ self.event_rows().T

    @property
    def censored(self) -> Floats:
        """Censorings by block and cell."""
        return self.counts[:, -1 - self.cells : -1]

    @cached_property
    def risk_rows(self) -> Floats:
        """The matrix (J, M) that makes people at risk of a table."""
        cells = self.cells
        later = np.triu(np.ones((cells, cells)))
        rows = np.hstack([np.tile(later, self.causes + 1), np.ones((cells, 1))])
        rows[np.arange(cells), self.causes * cells + np.arange(cells)] -= _GONE[self.convention]
        return rows

    @cached_property
    def starting(self) -> Floats:
        """People under observation when each cell begins, (B, J), of weighted counts the effective number (Kish)."""
        people = self.at_risk + _GONE[self.convention] / 2 * self.censored
        people[:, 0] = self.counts.sum(axis=1)
        return np.asarray(people / self.design[:, None])

    @cached_property
    def at_risk(self) -> Floats:
        """People at risk by block and cell, (B, J)."""
        return self.counts @ self.risk_rows.T

    @cached_property
    def risk_sd(self) -> Floats:
        """Standard deviation of the noise of the people at risk, (J,)."""
        variances = ((self.risk_rows @ self.noise.covariance) * self.risk_rows).sum(axis=1)
        return np.asarray(np.sqrt(np.maximum(variances, 0.0)))

    @cached_property
    def event_variances(self) -> Floats:
        """Variance of the noise of events in a cell by cause, and of any event in the last row, (K + 1, J)."""
        rows = (self.event_rows(cause) for cause in (*range(self.causes), None))
        return np.array([((one @ self.noise.covariance) * one).sum(axis=1) for one in rows])

    @cached_property
    def known(self) -> Floats:
        """In how many cells from the first on the people at risk are more than noise, by block."""
        fewest = np.maximum(LEAST_AT_RISK * self.risk_sd, 1e-9)
        return np.asarray(np.cumprod(self.at_risk > fewest, axis=1).sum(axis=1))

    @property
    def sure(self) -> Floats:
        """Which cells are known, (B, J)."""
        return np.asarray(np.arange(self.cells) < self.known[:, None])

    @cached_property
    def hazards(self) -> Floats:
        """Hazards (B, J); 0 in cells that are not known."""
        sure = self.sure
        hazards = np.where(sure, self.events / np.where(sure, self.at_risk, 1.0), 0.0)
        return np.minimum(hazards, 1.0)

    @cached_property
    def curves(self) -> Floats:
        """Probabilities of being free of the event, (B, J + 1)."""
        return np.hstack([np.ones((len(self.counts), 1)), np.cumprod(1 - self.hazards, axis=1)])

    @cached_property
    def shown(self) -> Floats:
        """The same, but after a curve was lost in the noise it falls as that of the nearest possible table.

        People at risk are not taken for fewer than one, nor than one standard deviation of their noise: noise among
        nobody is no event.
        """
        hazards = self.shown_hazards(self.event_rows(), self.hazards)
        return np.hstack([np.ones((len(hazards), 1)), np.cumprod(1 - hazards, axis=1)])

    def shown_hazards(self, rows: Floats, known_hazards: Floats) -> Floats:
        """Return `known_hazards` in known cells, in others those of the nearest possible table; `rows` make events."""
        possible = np.array([_possible(table) for table in self.counts])
        people = possible @ self.risk_rows.T
        after = possible @ rows.T / np.maximum(people, np.maximum(self.risk_sd, 1.0))
        return np.where(self.sure, known_hazards, np.clip(after, 0.0, 1.0))

    @cached_property
    def slack(self) -> Floats:
        """How far curves that are lost in the noise may have fallen since they were last known, (B, J + 1)."""
        lost = np.arange(self.cells + 1) > self.known[:, None]
        return np.where(lost, np.clip(self.curves, 0.0, 1.0), 0.0)

    @cached_property
    def sampling(self) -> Floats:
        """Greenwood's covariance of every block's curve, (B, J + 1, J + 1)."""
        sure = self.sure
        people = np.where(sure, np.maximum(self.at_risk, 1.0), 1.0)
        events = np.clip(self.events, 0, None) + _ADDED / self.cells
        hazards = np.clip(np.where(sure, events / people, 0.0), 0.0, 1.0)
        variances = self.inflation * self.design[:, None] * hazards * (1 - hazards) / people
        slopes = self.slopes()
        return np.asarray(np.einsum("bik,bk,bjk->bij", slopes, variances, slopes))

    @cached_property
    def grouping(self) -> Floats:
        """How far curves may be off as hazards change within the cells that people are censored in, (B, J + 1)."""
        moved = self.hazards * self.either
        # No sum of noisy parts is taken for less than 0.
        return np.asarray(np.maximum(np.einsum("bpj,bj->bp", -self.slopes(), moved), 0.0))

    @cached_property
    def either(self) -> Floats:
        """By which part hazards may be off as they change within the cells that people are censored in, (B, J).

        Exposure is known, so that constant hazards are not off.
        """
        if not _GONE[self.convention]:
            return np.zeros_like(self.hazards)
        people = np.where(self.sure, self.at_risk, 1.0)
        chance = (
            np.clip(self.events, 0.0, None) * self.design[:, None] + self.event_variances[-1]
        ) / people**2
        off = np.clip(_uneven(self.hazards, chance)[0], _ROUNDED, 0.5)
        lost = self.censored + np.pad(self.censored[:, 1:], ((0, 0), (0, 1)), mode="edge")
        lost[:, 0] += self.censored[:, 0]
        return np.asarray(self.sure * off * lost / 2 / people)

    def slopes(self) -> Floats:
        """Return how curves move with each hazard, (B, J + 1, J)."""
        blocks, cells = self.hazards.shape
        slopes = np.zeros((blocks, cells + 1, cells))
        for j in range(cells):
            slopes[:, j + 1] = (1 - self.hazards[:, j, None]) * slopes[:, j]
            slopes[:, j + 1, j] = -self.curves[:, j]
        return slopes

    @cached_property
    def gradients(self) -> Floats:
        """How curves move with each entry of their own table, (B, J + 1, M)."""
        return np.asarray(self.slopes() @ self.moved(self.event_rows(), self.hazards))

    def moved(self, rows: Floats, hazards: Floats) -> Floats:
        """Return how hazards d / E move with each entry, (B, J, M); `rows` make their events."""
        people = np.where(self.sure, self.at_risk, 1.0)
        moved = (rows[None] - hazards[:, :, None] * self.risk_rows[None]) / people[:, :, None]
        return np.asarray(moved * self.sure[:, :, None])


@dataclass(frozen=True)
class Incidence:
    """The probability of not having had the event of one cause, whatever else happened (Aalen and Johansen 1978).

    Curves are 1 minus cumulative incidences, (B, J + 1); `base` holds what is true of any event.
    """

    base: Blocks
    cause: int

    @cached_property
    def _own(self) -> Floats:
        """Hazards of the cause, (B, J)."""
        base = self.base
        sure = self.base.sure
        events = base.counts @ base.event_rows(self.cause).T
        return np.asarray(np.where(sure, events / np.where(sure, base.at_risk, 1.0), 0.0))

    @property
    def curves(self) -> Floats:
        """One minus the cumulative incidence."""
        return _not_yet(self.base.curves, self._own)

    @property
    def shown(self) -> Floats:
        """The same, falling on where curves are lost in the noise."""
        base = self.base
        return _not_yet(base.shown, base.shown_hazards(base.event_rows(self.cause), self._own))

    @property
    def slack(self) -> Floats:
        """How far curves may have fallen since they were last known: by all that was then free of any event."""
        return self.base.slack

    @cached_property
    def _parts(self) -> tuple[Floats, Floats]:
        """How incidences move with hazards of the cause alone, and through being free of any event, (B, J + 1, J)."""
        base = self.base
        alone = np.tri(base.cells + 1, base.cells, -1) * base.curves[:, None, :-1]
        later = np.cumsum(self._own[:, :, None] * base.slopes()[:, :-1], axis=1)
        return alone, np.hstack([np.zeros_like(later[:, :1]), later])

    @cached_property
    def sampling(self) -> Floats:
        """The covariance of every block's curve, (B, J + 1, J + 1): hazards of a cell are shares of the same people."""
        base = self.base
        people = np.where(base.sure, np.maximum(base.at_risk, 1.0), 1.0)
        hazards = np.clip(self._own, 0.0, None) + base.sure * _ADDED / (base.cells * base.causes) / people
        hazards = np.clip(hazards, 0.0, 1.0)
        any_hazards = np.clip(np.maximum(base.hazards, hazards), 0.0, 1.0)
        scale = base.inflation * base.design[:, None] / people
        alone, through = self._parts
        cross = np.einsum("bik,bk,bjk->bij", alone, scale * hazards * (1 - any_hazards), through)
        covariance = cross + cross.transpose(0, 2, 1)
        for slopes, share in ((alone, hazards), (through, any_hazards)):
            covariance += np.einsum("bik,bk,bjk->bij", slopes, scale * share * (1 - share), slopes)
        return np.asarray(covariance)

    @property
    def grouping(self) -> Floats:
        """How far curves may be off as hazards change within the cells that people are censored in, (B, J + 1)."""
        off = self.base.either
        hazards = (self._own, self.base.hazards)
        moved = [np.einsum("bpj,bj->bp", part, h * off) for part, h in zip(self._parts, hazards, strict=True)]
        return np.asarray(np.abs(moved[0] + moved[1]))

    @property
    def gradients(self) -> Floats:
        """How curves move with each entry of their own table, (B, J + 1, M)."""
        (alone, through), base = self._parts, self.base
        of_cause, any_event = (
            base.moved(base.event_rows(cause), hazards)
            for cause, hazards in ((self.cause, self._own), (None, base.hazards))
        )
        return np.asarray(-(alone @ of_cause + through @ any_event))


def _uneven(held: Floats, variances: Floats, rounded: bool = False) -> tuple[Floats, NDArray[np.bool_]]:
    """Return how far what cells hold may be from evenly spread in them, as a part of it, (B, J), and where smoothly.

    Where what a cell holds is by a part r less or more than the larger of it and its neighbour, a smooth sum is up to
    about r / 8 (1 + r) from its chord. In the first and the last cell, where nothing is seen beyond, powers are up to
    r / 6 (1 + 3 r) from it. Between neighbours of which one holds less and one more, levels may also change at once in
    the cell. Of a cell that surely holds more than twice what those beside it hold nothing is supposed: all may lie at
    one place. What chance and noise, with these variances, add to squared changes is taken off. Where outcomes may be
    `rounded`, a cell that holds more than those beside it, of which one holds less than both of its own, may hold a
    crowd; so may the first and the last, with outcomes beyond the range,
    unless they surely hold less than twice their neighbour; so may a cell between two dense ones, or between one and
    a cell that holds less than half of it, as a part of them; and changes at the ends count that chance may hide.
    """
    if held.shape[1] < 2:
        return np.ones_like(held), np.zeros(held.shape, dtype=bool)
    padded, padded_variances = (np.pad(one, ((0, 0), (1, 1)), mode="reflect") for one in (held, variances))
    change = np.diff(padded, axis=1)
    chance = padded_variances[:, 1:] + padded_variances[:, :-1]
    sure = np.sqrt(np.clip(change**2 - chance, 0.0, None))
    hidden = np.zeros_like(sure)
    hidden[:, [0, -1]] = rounded * _HIDDEN * np.sqrt(chance[:, [0, -1]])
    changes = np.maximum(sure, hidden) / np.maximum(np.maximum(padded[:, 1:], padded[:, :-1]), 1e-9)
    r = np.minimum(np.maximum(changes[:, 1:], changes[:, :-1]), 1.0)
    inner = np.ones(held.shape[1], dtype=bool)
    inner[[0, -1]] = False
    smooth = np.where(inner, r / 8 * (1 + r), r / 6 * (1 + 3 * r))
    before = sure[:, :-1]
    after = sure[:, 1:]
    larger_change = np.where(sure > 0, sure + _UNSURE * np.sqrt(chance), 1e-300)
    step = 1 / (1 / larger_change[:, :-1] + 1 / larger_change[:, 1:]) / np.maximum(held, 1e-9)
    outer = np.pad(np.abs(change), ((0, 0), (1, 1)))
    gradual = 3 * np.minimum(outer[:, :-3], outer[:, 3:]) / np.maximum(before + after, 1e-300)
    step *= np.clip(1 - gradual, 0.0, 1.0) * (change[:, 1:] * change[:, :-1] > 0)
    is_dense = held > padded[:, 2:] + padded[:, :-2] + _SURELY * np.sqrt(variances)
    if rounded:
        unclear = np.sqrt(variances + 2 * (padded_variances[:, 2:] + padded_variances[:, :-2]))
        is_dense[:, [0, -1]] |= (held > padded[:, 2:] + padded[:, :-2] - _HIDDEN * unclear)[:, [0, -1]]
        before_it, after_it = (
            np.pad(is_dense, ((0, 0), (1, 1)))[:, one] for one in (slice(-2), slice(2, None))
        )
        is_dense |= before_it & (after_it | (held > 2 * padded[:, 2:])) | after_it & (
            held > 2 * padded[:, :-2]
        )
    beyond = np.pad(change, ((0, 0), (1, 1)))
    excess = np.clip(held - np.minimum(padded[:, 2:], padded[:, :-2]), 0.0, None) / np.maximum(held, 1e-9)
    troughs = ((beyond[:, :-3] < 0) & (before > 0)) | ((beyond[:, 3:] > 0) & (after > 0))
    excess *= rounded & troughs
    abrupt = np.where(is_dense, 1.0, np.maximum(step, excess))
    return np.clip(np.maximum(smooth, abrupt), 0.0, 1.0), inner & (smooth > abrupt)


# A cell is dense that holds twice what those beside it hold, and so many standard deviations more.
_SURELY = 4.0
# How many standard deviations of chance a change may be that is not seen, and by how many one that is seen may be more.
_HIDDEN, _UNSURE = 2.0, 1.5


def _not_yet(free: Floats, hazards: Floats) -> Floats:
    """Return one minus the incidence of an event with these hazards among those free of any."""
    return np.hstack([np.ones((len(free), 1)), 1 - np.cumsum(free[:, :-1] * hazards, axis=1)])


def _possible(table: Floats) -> Floats:
    """Return the nearest table without negative entries that adds up to the same."""
    total = max(float(table.sum()), 0.0)
    falling = np.sort(table)[::-1]
    excess = (np.cumsum(falling) - total) / np.arange(1, len(table) + 1)
    # The largest entry is always above; beside very large ones rounding may hide it.
    last = max(int(np.count_nonzero(falling > excess)) - 1, 0)
    return np.asarray(np.maximum(table - excess[last], 0.0))


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

        Then whether it is less towards the ends of the cell, as smooth curves are, and whether cells beside it hold
        more (1) or less (-1) the later they are.
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
        cells, smooth = _uneven(held / relative_lengths, variances / relative_lengths**2, self.rounded)
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


def points_of(lengths: Floats) -> NDArray[np.bool_]:
    """Return which cells are points: so short that all that they hold is at their upper end."""
    return np.asarray(lengths < _POINT * lengths.sum())


# Cells of points are two steps of 2^-24 of the range long, all others at least 2^-15 of it.
_POINT = 2.0**-20
# Nothing is supposed of where outcomes lie within a cell that holds more than this part of an arm, or that is so many
# times as long as one beside it.
_COARSE, _LONGER = 1 / 3, 3.0


def standardised(
    blocks: Blocks,
    shares: Floats,
    per_person: float = 0.0,
    of: Blocks | Incidence | None = None,
    lengths: Floats | None = None,
) -> Curves:
    """Return the curves of both arms over strata with these shares; blocks are (stratum, arm), control first.

    Curves are those of the blocks, or those `of` one cause of the event; cells have these `lengths`, or one length.

    `per_person` is 1 over the number of people where the shares are those of the noisy tables themselves, else 0.
    """
    of = of or blocks
    strata = len(shares)
    points = blocks.cells + 1
    size = blocks.counts.shape[1]
    curves = of.curves.reshape(strata, 2, points)
    survival, shown = (
        np.einsum("s,sap->ap", shares, one.reshape(strata, 2, points)) for one in (of.curves, of.shown)
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
        np.einsum("s,sap->ap", shares, one.reshape(strata, 2, points)) for one in (of.slack, of.grouping)
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


# How far apart arms may be in what changes within cells, as a part of what is possible.
_APART = 0.25


def quantiles(level: float, heavy: float) -> tuple[float, float]:
    """Return how many standard deviations of sampling error and of noise an interval takes.

    `heavy` is the excess kurtosis of the noise as a part of Laplace's. That of one Laplace number is taken at its own
    quantile, that of several at Cornish and Fisher's where it is less; a normal plus a Laplace number is not beyond the
    root of both squares more often.
    """
    normal = -float(ndtri((1 - level) / 2))
    several = normal + heavy * (normal**3 - 3 * normal) / 8
    return normal, max(normal, min(several, -log(1 - level) / sqrt(2)))


def joint_bias(first: float, second: float, apart: float = _APART) -> float:
    """Return how far the difference of two arms may be off, each of which may be off by so much alone.

    Hazards change within cells in much the same way in both arms: what differs by arm is not taken for more than a
    quarter of what is possible, or than another part `apart`.
    """
    return min(abs(first - second) + apart * (first + second), first + second)


@dataclass(frozen=True, slots=True)
class Probability:
    """The probability of being free of the event at one time in one arm.

    Attributes
    ----------
    estimate : float
        The likeliest probability, in [0, 1].
    middle : float
        Where the curve was last known before it was lost in the noise; the estimate as released otherwise.
    variance : float
        Sampling variance.
    noise : float
        Variance of the privacy noise.
    size : float
        Number of people that the sampling error is worth.
    heavy : float
        Excess kurtosis of the noise as a part of Laplace's: 0 for normal noise.
    slack : float
        How far the curve may have fallen since it was last known.
    bias : float
        How far it may be off as hazards change within cells.
    """

    estimate: float
    middle: float
    variance: float
    noise: float
    size: float
    heavy: float
    slack: float = 0.0
    bias: float = 0.0

    @property
    def sampling_sd(self) -> float:
        """Standard deviation of the sampling error."""
        return sqrt(self.variance)

    @property
    def noise_sd(self) -> float:
        """Standard deviation of the privacy noise, and of where a lost curve may be, evenly between its bounds."""
        return sqrt(self.noise + self.slack**2 / 12)

    def interval(self, level: float) -> Ends:
        """Return the two ends of an interval, truncated to [0, 1].

        Parameters
        ----------
        level : float
            Confidence level, in (0, 1).

        Returns
        -------
        tuple of (float, float)
            Lower and upper end.
        """
        low, high = (
            self.middle + biased_half_width(end, self.bias, level) * sign for end, sign in self._ends(level)
        )
        return min(max(low - self.slack, 0.0), 1.0), min(max(high, 0.0), 1.0)

    def _ends(self, level: float) -> tuple[Ends, Ends]:
        low, high = self.untruncated(level)
        return (self.middle - low, -1.0), (high - self.middle, 1.0)

    def untruncated(self, level: float) -> Ends:
        """Return the two ends around where the curve was last known, not truncated to [0, 1].

        Parameters
        ----------
        level : float
            Confidence level, in (0, 1).

        Returns
        -------
        tuple of (float, float)
            Lower and upper end.
        """
        normal, heavy = quantiles(level, self.heavy)
        per = normal**2 / self.size
        lead = 1 + per
        half = self.middle + per / 2
        root = sqrt(max(half**2 - lead * (self.middle**2 - heavy**2 * self.noise), 0.0))
        return (half - root) / lead, (half + root) / lead


@dataclass(frozen=True, slots=True)
class Complement:
    """One minus a probability.

    Attributes
    ----------
    of : Probability
        The probability.
    """

    of: Probability

    @property
    def estimate(self) -> float:
        """One minus the estimate."""
        return 1 - self.of.estimate

    @property
    def sampling_sd(self) -> float:
        """Standard deviation of the sampling error."""
        return self.of.sampling_sd

    @property
    def noise_sd(self) -> float:
        """Standard deviation of the privacy noise."""
        return self.of.noise_sd

    def interval(self, level: float) -> Ends:
        """Return the two ends of an interval, in [0, 1].

        Parameters
        ----------
        level : float
            Confidence level, in (0, 1).

        Returns
        -------
        tuple of (float, float)
            Lower and upper end.
        """
        low, high = self.of.interval(level)
        return 1 - high, 1 - low


@dataclass(frozen=True, slots=True)
class Gap(Apart):
    """The difference of two probabilities.

    Attributes
    ----------
    one : Probability
        That of the treated.
    other : Probability
        That of the controls.
    shared : float
        Covariance of their noise.
    apart : float
        How far the biases of both may differ, as a part of them.
    """

    one: Probability
    other: Probability
    shared: float
    apart: float = _APART

    @property
    def noise_sd(self) -> float:
        """Standard deviation of the privacy noise."""
        return sqrt(max(self.one.noise_sd**2 + self.other.noise_sd**2 - 2 * self.shared, 0.0))

    @property
    def _correlation(self) -> float:
        """The correlation of both errors, sampling error and noise together."""
        sizes = [hypot(each.sampling_sd, each.noise_sd) for each in (self.one, self.other)]
        product = sizes[0] * sizes[1]
        return self.shared / product if product > 0 else 0.0

    def interval(self, level: float) -> Ends:
        """Return the two ends; all that both intervals leave possible where one arm is lost in the noise.

        Parameters
        ----------
        level : float
            Confidence level, in (0, 1).

        Returns
        -------
        tuple of (float, float)
            Lower and upper end.
        """
        if self.one.slack or self.other.slack:
            (low, high), (least, most) = self.one.interval(level), self.other.interval(level)
            return low - most, high - least
        (low, high), (least, most) = self.one.untruncated(level), self.other.untruncated(level)
        treated, control = self.one.middle, self.other.middle
        bias = joint_bias(self.one.bias, self.other.bias, self.apart)
        down = biased_half_width(_joined(treated - low, most - control, self._correlation), bias, level)
        up = biased_half_width(_joined(high - treated, control - least, self._correlation), bias, level)
        ends = (treated - control - down, treated - control + up)
        return min(max(ends[0], -1.0), 1.0), max(min(ends[1], 1.0), -1.0)


def _joined(first: float, second: float, correlation: float) -> float:
    return sqrt(max(first**2 + second**2 - 2 * correlation * first * second, 0.0))


@dataclass(frozen=True, slots=True)
class Area:
    """The restricted mean time free of the event in one arm, or the difference of two.

    Attributes
    ----------
    estimate : float
        Restricted mean, in the unit of the data.
    middle : float
        Middle of what curves that were lost in the noise leave possible.
    variance : float
        Sampling variance.
    noise : float
        Variance of the privacy noise.
    limits : tuple of (float, float)
        What it can be at all.
    heavy : bool
        Whether the noise is Laplace's.
    slack : float
        How far it may lie to either side of `middle`, as curves were lost in the noise.
    bias : float
        How far it may be off as hazards change within cells.
    curvature : float
        How far it moves when curves are known at every other time only: about as far as their curvature can
        move it.
    steps : float
        How much more it is where curves fall at whole times only.
    """

    estimate: float
    middle: float
    variance: float
    noise: float
    limits: Ends
    heavy: bool
    slack: float = 0.0
    bias: float = 0.0
    curvature: float = 0.0
    steps: float = 0.0

    @property
    def sampling_sd(self) -> float:
        """Standard deviation of the sampling error."""
        return sqrt(self.variance)

    @property
    def noise_sd(self) -> float:
        """Standard deviation of the privacy noise, and of where lost curves may be, evenly between their bounds."""
        return sqrt(self.noise + self.slack**2 / 3)

    def interval(self, level: float) -> Ends:
        """Return the two ends of an interval, truncated to what is possible.

        Parameters
        ----------
        level : float
            Confidence level, in (0, 1).

        Returns
        -------
        tuple of (float, float)
            Lower and upper end.
        """
        normal, heavy = quantiles(level, self.heavy)
        half = hypot(normal * self.sampling_sd, heavy * sqrt(self.noise))
        half = biased_half_width(half, self.bias + abs(self.curvature), level) + self.slack
        least, most = self.limits
        low = self.middle - half + min(self.steps, 0.0)
        high = self.middle + half + max(self.steps, 0.0)
        return min(max(low, least), most), max(min(high, most), least)


@dataclass(frozen=True, slots=True)
class AreaRatio:
    """The ratio of two restricted means, treated over control.

    Attributes
    ----------
    one : Area
        Restricted mean of the treated.
    other : Area
        Restricted mean of the controls.
    shared : float
        Covariance of their noise.

    Notes
    -----
    The interval is log r -+ h on the scale of logarithms, by the delta method; where a mean is lost in the
    noise, it is all that the intervals of both means leave possible.
    """

    one: Area
    other: Area
    shared: float = 0.0

    @property
    def estimate(self) -> float:
        """Mean of the treated over that of the controls; infinite where the latter is not above 0."""
        return max(self.one.estimate, 0.0) / self.other.estimate if self.other.estimate > 0 else inf

    @property
    def known(self) -> bool:
        """Whether both means are above 0."""
        return self.one.estimate > 0 and self.other.estimate > 0

    @property
    def p_value(self) -> float:
        """Two-sided p-value of equal means, noise included."""
        return p_value(self.interval, 1.0)

    @property
    def _relative(self) -> tuple[float, float]:
        """Standard deviations of the logarithm of the ratio, from sampling and from noise."""
        first, second = self.one, self.other
        noise = (first.noise_sd / first.estimate) ** 2 + (second.noise_sd / second.estimate) ** 2
        noise -= 2 * self.shared / (first.estimate * second.estimate)
        sampling = hypot(first.sampling_sd / first.estimate, second.sampling_sd / second.estimate)
        return sampling, sqrt(max(noise, 0.0))

    @property
    def sampling_sd(self) -> float:
        """Standard deviation of the sampling error of the ratio."""
        return self.estimate * self._relative[0] if self.known else inf

    @property
    def noise_sd(self) -> float:
        """Standard deviation of the privacy noise of the ratio."""
        return self.estimate * self._relative[1] if self.known else inf

    def interval(self, level: float) -> Ends:
        """Return the two ends of an interval.

        Parameters
        ----------
        level : float
            Confidence level, in (0, 1).

        Returns
        -------
        tuple of (float, float)
            Lower and upper end.
        """
        (low, high), (least, most) = self.one.interval(level), self.other.interval(level)
        widest = (low / most if most > 0 else 0.0, high / least if least > 0 else inf)
        if not self.known or self.one.slack or self.other.slack:
            return widest
        normal, heavy = quantiles(level, self.one.heavy or self.other.heavy)
        sampling, noise = self._relative
        one, other = self.one, self.other
        bias = joint_bias(one.bias / one.estimate, other.bias / other.estimate)
        bias += abs(one.curvature / one.estimate - other.curvature / other.estimate)
        bias += abs(one.steps / one.estimate - other.steps / other.estimate)
        half = biased_half_width(hypot(normal * sampling, heavy * noise), bias, level)
        middle = log(self.estimate)
        return max(exp(middle - half), widest[0]), min(exp(middle + half), widest[1])


@dataclass(frozen=True, slots=True)
class SurvivalAnswers:
    """Everything that is read off two curves.

    Attributes
    ----------
    curves : Curves
        Survival of both arms, control first.
    edges : ndarray of float, shape (J + 1,)
        Time 0 and the ends of all cells.
    convention : {"middle", "end"}
        Where in a cell people are censored.
    heavy : bool
        Whether the noise is Laplace's.
    cut : int
        Number of cells that make one of the declared grid, by which times are counted.
    whole : bool
        Whether curves fall to 0 by the last edge: distribution functions do.
    ties : float
        Unit at whose multiples alone curves may fall; 0 for none.
    """

    curves: Curves
    edges: Floats
    convention: str
    heavy: bool
    cut: int = 1
    whole: bool = False
    ties: float = 0.0

    def at(self, arm: int, place: int) -> Probability:
        """Return the probability of one arm at a time of the grid.

        Parameters
        ----------
        arm : {0, 1}
            0 for the controls, 1 for the treated.
        place : int
            Position of the time in the grid; time 0 has 0.

        Returns
        -------
        Probability
            The probability of being free of the event, with its error.
        """
        return self.end(arm, place * self.cut)

    def end(self, arm: int, place: int) -> Probability:
        """Return the probability of one arm at the end of a cell.

        Parameters
        ----------
        arm : {0, 1}
            0 for the controls, 1 for the treated.
        place : int
            Position among all edges.

        Returns
        -------
        Probability
            The probability of being free of the event, with its error.
        """
        curves = self.curves
        shown = (float(curves.shown[arm, place]), float(curves.survival[arm, place]))
        variance = float(curves.sampling[arm, place, place])
        noise = max(float(curves.noise[arm, place, arm, place]), 0.0)
        slack, bias = float(curves.slack[arm, place]), float(curves.grouping[arm, place])
        heavy = self.heavy * float(curves.heaviness[arm, place])
        size = float(self._sizes(arm)[place])
        return Probability(*shown, variance, noise, size, heavy, slack, bias)

    def ends(self, arm: int, level: float) -> tuple[Floats, Floats]:
        """Return the ends of the intervals of one arm at every edge: those of `end`, at once.

        Parameters
        ----------
        arm : {0, 1}
            0 for the controls, 1 for the treated.
        level : float
            Confidence level, in (0, 1).

        Returns
        -------
        tuple of (ndarray, ndarray)
            Lower and upper ends, each of shape (J + 1,).
        """
        curves, normal = self.curves, quantiles(level, 0.0)[0]
        middle, slack = curves.survival[arm, 1:], curves.slack[arm, 1:]
        noise = np.maximum(np.diagonal(curves.noise[arm, :, arm])[1:], 0.0)
        several = normal + self.heavy * curves.heaviness[arm, 1:] * (normal**3 - 3 * normal) / 8
        heavy = np.clip(several, normal, max(quantiles(level, 1.0)[1], normal))
        sizes = self._sizes(arm)[1:]
        lead = 1 + normal**2 / sizes
        half = middle + normal**2 / sizes / 2
        root = np.sqrt(np.maximum(half**2 - lead * (middle**2 - heavy**2 * noise), 0.0))
        down = middle - (half - root) / lead
        up = (half + root) / lead - middle
        off = curves.grouping[arm, 1:]
        low = np.clip(middle - biased_half_widths(down, off, level) - slack, 0.0, 1.0)
        high = np.clip(middle + biased_half_widths(up, off, level), 0.0, 1.0)
        high[-1] *= not self.whole
        return np.append(1.0, low), np.append(1.0, high)

    def whole_times(self, time: float, up: bool) -> float:
        """Return the next multiple of the unit at whose multiples alone curves may fall.

        Parameters
        ----------
        time : float
            A time.
        up : bool
            Whether the next multiple above, or below.

        Returns
        -------
        float
            The multiple; the time itself without such a unit.
        """
        if not self.ties or isinf(time):
            return time
        units = time / self.ties
        return float(ceil(units - _ROUNDING) if up else floor(units + _ROUNDING)) * self.ties

    def _sizes(self, arm: int) -> Floats:
        """Return the numbers of people without censoring whose shares would err as much, (J + 1,).

        Each lies between what those under observation last and all of them are worth.
        """
        people = np.maximum(self.curves.worth[arm], 1.0)
        survival = np.clip(self.curves.survival[arm], 0.0, 1.0)
        variance = np.diagonal(self.curves.sampling[arm])
        sizes = np.where(variance > 0, survival * (1 - survival) / np.where(variance > 0, variance, 1.0), inf)
        return np.clip(sizes, np.append(people[0], np.minimum.accumulate(people)), people[0])

    def gap(self, place: int) -> Gap:
        """Return the difference of treated and control at a time of the grid.

        Parameters
        ----------
        place : int
            Position of the time in the grid; time 0 has 0.

        Returns
        -------
        Gap
            The difference, with its error.
        """
        point = place * self.cut
        apart = 1.0 if self.whole else _APART
        return Gap(self.at(1, place), self.at(0, place), float(self.curves.noise[0, point, 1, point]), apart)

    @property
    def _weights(self) -> Floats:
        """The weights (J + 1,) that a restricted mean gives to the curve."""
        return _weights(self.edges, 0.0 if self.convention == "end" else 0.5)

    @property
    def _thinning_weights(self) -> Floats:
        """The weights (J + 1,) that say how far a restricted mean moves without every other point of the curve."""
        weights = np.zeros(len(self.edges))
        if self.convention != "end":
            every_other = np.unique([*range(0, len(self.edges), 2), len(self.edges) - 1])
            weights += self._weights
            weights[every_other] -= _weights(self.edges[every_other], 0.5)
        return weights

    def area(self, arm: int) -> Area:
        """Return the restricted mean of one arm.

        Parameters
        ----------
        arm : {0, 1}
            0 for the controls, 1 for the treated.

        Returns
        -------
        Area
            Mean time free of the event up to the last edge, with its error.
        """
        weights = self._weights
        variance = float(weights @ self.curves.sampling[arm] @ weights)
        noise = max(float(weights @ self.curves.noise[arm, :, arm] @ weights), 0.0)
        rest = float(weights @ self.curves.slack[arm]) / 2
        estimate, middle = float(weights @ self.curves.shown[arm]), float(weights @ self.curves.survival[arm])
        bias, curvature = (
            float(weights @ self.curves.grouping[arm]),
            float(self._thinning_weights @ self.curves.shown[arm]),
        )
        steps = self.ties * max(1 - float(self.curves.shown[arm, -1]), 0.0) / 2
        limits = (0.0, float(self.edges[-1]))
        return Area(
            estimate, middle - rest, variance, noise, limits, self.heavy, rest, bias, curvature, steps
        )

    def area_gap(self) -> Area:
        """Return the difference of the restricted means, treated minus control.

        Returns
        -------
        Area
            The difference, with its error.
        """
        one, other = self.area(1), self.area(0)
        rest, end = one.slack + other.slack, float(self.edges[-1])
        noise = max(one.noise + other.noise - 2 * self._shared, 0.0)
        variance = one.variance + other.variance
        apart = (one.estimate - other.estimate, one.middle - other.middle)
        off = (joint_bias(one.bias, other.bias), one.curvature - other.curvature, one.steps - other.steps)
        return Area(*apart, variance, noise, (-end, end), self.heavy, rest, *off)

    def area_ratio(self) -> AreaRatio:
        """Return the ratio of the restricted means, treated over control.

        Returns
        -------
        AreaRatio
            The ratio, with its error.
        """
        return AreaRatio(self.area(1), self.area(0), self._shared)

    @property
    def _shared(self) -> float:
        """The covariance of the noise of both restricted means."""
        return float(self._weights @ self.curves.noise[1, :, 0] @ self._weights)

    # Bands that hold at all times at once.

    def band_level(self, level: float, arms: tuple[int, ...]) -> float:
        """Return the level of each interval at which those of a curve, or of a difference, hold together.

        Parameters
        ----------
        level : float
            Confidence level of the band, in (0, 1).
        arms : tuple of int
            (0,) or (1,) for the curve of an arm, (0, 1) for the difference.

        Returns
        -------
        float
            Level of each interval, at least `level`.
        """
        total = sum(self.curves.sampling[arm] + self.curves.noise[arm, :, arm] for arm in arms)
        if len(arms) == 2:
            cross = self.curves.noise[0, :, 1]
            total = total - cross - cross.T
        # Time 0 is known without an error.
        covariance = np.asarray(total)[self.cut :: self.cut, self.cut :: self.cut]
        wide = simultaneous(np.eye(len(covariance)), covariance, level)
        return min(max(level, 1 - 2 * float(ndtr(-wide))), 1 - 2.0**-53)


def _weights(edges: Floats, later: float) -> Floats:
    """Return the weights of an integral of a curve known at these times; `later` is the part of a cell's end."""
    lengths = np.diff(edges)
    weights = np.zeros(len(edges))
    weights[:-1] += (1 - later) * lengths
    weights[1:] += later * lengths
    return weights


@dataclass(frozen=True, slots=True)
class NoisyTables:
    """Released numbers of events and people by block.

    Blocks are strata in their order, and in each the control arm first.

    Attributes
    ----------
    numbers : tuple of tuple of float
        Numbers of every block, in the form in which they were released.
    form : {"flat", "sums"}
        Counts, or running sums of them.
    noise_sd : float
        Standard deviation of the noise of each number.
    heavy : bool
        Whether the noise is Laplace's.
    totals : tuple of float
        Public numbers of people: of everyone, or of every block where arms are public.
    edges : tuple of float
        Time 0 and the ends of the time cells.
    convention : {"middle", "end"}
        Where in a cell people are censored.
    shares : tuple of float
        Public shares of the strata; empty where they are read off the tables.
    design : tuple of float
        Ratio of squared weights to weights of every block; 1 without weights.
    inflation : float
        Factor of the sampling variance, for bias that intervals allow for.
    cut : int
        Number of cells that make one of the declared grid.
    causes : tuple of str
        Names of competing events; empty where there is one event.
    """

    numbers: tuple[tuple[float, ...], ...]
    form: str
    noise_sd: float
    heavy: bool
    totals: tuple[float, ...]
    edges: tuple[float, ...]
    convention: str
    shares: tuple[float, ...]
    design: tuple[float, ...]
    inflation: float = 1.0
    cut: int = 1
    causes: tuple[str, ...] = ()

    def _check(self) -> None:
        """Raise ValueError where the parts do not belong together."""
        blocks = len(self.numbers)
        entries = (max(len(self.causes), 1) + 1) * (len(self.edges) - 1) + 1
        sound = (
            blocks >= 2
            and blocks % 2 == 0
            and all(len(one) == entries for one in self.numbers)
            and len(self.design) == blocks
            and len(self.totals) in (1, blocks)
            and len(self.shares) in (0, blocks // 2)
            and self.form in (FLAT, SUMS)
            and self.convention in _GONE
            and self.noise_sd >= 0
            and self.cut >= 1
            and (len(self.edges) - 1) % self.cut == 0
            and all(one > 0 for one in (*self.design, self.inflation))
            and all(later > earlier for earlier, later in pairwise(self.edges))
        )
        if not sound:
            raise ValueError("no tables of events by time")


@lru_cache(maxsize=32)
def blocks_of(tables: NoisyTables) -> Blocks:
    """Return the tables as counts, moved to public totals."""
    causes = max(len(tables.causes), 1)
    form = Form(tables.form, len(tables.edges) - 1, causes)
    count = len(tables.numbers)
    everyone = len(tables.totals) == 1
    groups = (tuple(range(count)),) if everyone else tuple((place,) for place in range(count))
    root = None if tables.form == FLAT else form.inverse
    noise = TableNoise(tables.noise_sd**2 * form.inverse @ form.inverse.T, groups, root)
    counts = with_totals(form.counts(np.array(tables.numbers)), noise, tables.totals)
    return Blocks(counts, noise, tables.convention, np.array(tables.design), tables.inflation, causes)


@lru_cache(maxsize=32)
def answers_of(tables: NoisyTables, cause: int | None = None) -> SurvivalAnswers:
    """Return everything that the tables say of survival, or of not having had the event of one cause."""
    blocks = blocks_of(tables)
    of = blocks if cause is None else Incidence(blocks, cause)
    edges = np.array(tables.edges)
    ties = _ties(tables)
    if ties:
        # Curves are those of the last multiple of the unit.
        edges = np.floor(edges / ties + _ROUNDING) * ties
    lengths = np.maximum(np.diff(edges), ties)
    if tables.shares:
        curves = standardised(blocks, np.array(tables.shares), of=of, lengths=lengths)
    else:
        people = blocks.counts.reshape(len(tables.numbers) // 2, -1).sum(axis=1)
        shares = np.clip(people, 0.0, None)
        several = len(shares) > 1
        curves = standardised(
            blocks, shares / max(shares.sum(), 1e-9), 1 / tables.totals[0] if several else 0.0, of, lengths
        )
    return SurvivalAnswers(curves, edges, tables.convention, tables.heavy, tables.cut, ties=ties)


def _ties(tables: NoisyTables) -> float:
    """Return the unit whose multiples times may be, 0 where they are between.

    Where cells hold unequal numbers of multiples for their lengths, the events tell. Where the declared ends are whole,
    cells do not tell whole times from others: then they may be whole.
    """
    edges = np.array(tables.edges)
    blocks = blocks_of(tables)
    events = blocks.events.sum(axis=0)
    noise = len(blocks.counts) * blocks.event_variances[-1]
    lengths = np.diff(edges)
    variances = np.maximum(events, 1.0) + noise
    if tables.convention == "end" or len(lengths) < _FEWEST:
        return 0.0
    least = _roughness(events, variances, lengths) - _BETTER
    longest = 0.0
    for unit in _UNITS:
        held = np.diff(np.floor(edges / unit + _ROUNDING))
        if edges[-1] / unit % 1 > _ROUNDING:
            continue
        if unit == 1 and np.abs(held - lengths).max() < _ROUNDING:
            return 1.0
        rough = _roughness(events, variances, held)
        if rough < least:
            least, longest = rough, unit
    return longest


def _roughness(events: Floats, variances: Floats, sizes: Floats) -> float:
    """Return how far events are from a smooth number for each size, as a sum of squares in standard deviations."""
    full = sizes > 0
    rates = events[full] / sizes[full]
    spread = variances[full] / sizes[full] ** 2
    apart = rates[1:-1] - (rates[2:] + rates[:-2]) / 2
    smooth = np.sum(apart**2 / (spread[1:-1] + (spread[2:] + spread[:-2]) / 4))
    return float(smooth + np.sum(events[~full] ** 2 / variances[~full]))


# Units that times are recorded in: whole ones, quarters, months and weeks of a year. Cells that are needed to tell, and
# how much less rough events must be.
_UNITS, _FEWEST, _BETTER = (1.0, 1 / 4, 1 / 12, 1 / 52), 4, 8.0


@lru_cache(maxsize=32)
def log_rank_of(tables: NoisyTables) -> LogRank:
    """Return the log-rank test of equal hazards, within strata."""
    test = log_rank(blocks_of(tables), tables.heavy)
    return replace(test, cells=test.cells // tables.cut)


@dataclass(frozen=True, slots=True)
class LogRank:
    """Events of the treated less those expected, and their test.

    Attributes
    ----------
    difference : float
        Observed less expected events of the treated.
    variance : float
        Sampling variance of it.
    noise : float
        Variance of its privacy noise.
    heavy : float
        Excess kurtosis of the noise as a part of Laplace's: 0 for normal noise.
    cells : int
        Number of time cells that entered, at least.
    bias : float
        How far the difference may be off as hazards change within cells.
    """

    difference: float
    variance: float
    noise: float
    heavy: float
    cells: int
    bias: float = 0.0

    @property
    def statistic(self) -> float:
        """The difference over its standard error, noise included; its square is the usual chi-square."""
        total = self.variance + self.noise
        return self.difference / sqrt(total) if total > 0 else 0.0

    @property
    def p_value(self) -> float:
        """Two-sided p-value of equal hazards, privacy noise included; 1 where no cell is known."""
        return p_value(self.interval) if self.variance + self.noise > 0 else 1.0

    def interval(self, level: float) -> Ends:
        """Return the two ends of an interval of the difference.

        Parameters
        ----------
        level : float
            Confidence level, in (0, 1).

        Returns
        -------
        tuple of (float, float)
            Lower and upper end.
        """
        normal, heavy = quantiles(level, self.heavy)
        half = biased_half_width(sqrt(normal**2 * self.variance + heavy**2 * self.noise), self.bias, level)
        return self.difference - half, self.difference + half


def log_rank(blocks: Blocks, heavy: float) -> LogRank:
    """Return the test over all strata, in the cells that are known of both arms; blocks are (stratum, arm)."""
    strata = len(blocks.counts) // 2
    cells = blocks.cells
    known_cells = blocks.known.reshape(strata, 2).min(axis=1)
    used = np.arange(cells) < known_cells[:, None]
    events = blocks.events.reshape(strata, 2, cells)
    people = np.where(used[:, None], blocks.at_risk.reshape(strata, 2, cells), 1.0)
    control, treated = people[:, 0], people[:, 1]
    both, total = events.sum(axis=1), people.sum(axis=1)
    difference = float(np.sum(used * (events[:, 1] * control - events[:, 0] * treated) / total))
    happened = np.clip(both, 0.0, total)
    remaining = np.maximum(total - 1, 1e-9)
    spread = used * treated * control * happened * (total - happened) / (total**2 * remaining)
    # (S, 2, J): how the difference moves with events and with people at risk.
    by_events = used[:, None] * np.stack([-treated, control], axis=1) / total[:, None]
    by_people = used[:, None] * np.stack([treated, -control], axis=1) * (both / total**2)[:, None]
    moved = table_gradient(blocks, by_events, by_people)
    noise = float(blocks.noise.of(moved)[0, 0])
    heavy = heavy * float(blocks.noise.heaviness(moved)[0])
    noise += of_products(blocks, used / total)
    # The variance is a noisy number too: it is taken one standard deviation of its noise larger.
    share = np.stack([used * treated * control / total**2] * 2, axis=1)
    unsure = sqrt(max(float(blocks.noise.of(table_gradient(blocks, share, 0 * share))[0, 0]), 0.0))
    # Of weighted counts, each arm's own variance is larger than counts would have it.
    design = blocks.design.reshape(strata, 2).max(axis=1)
    variance = blocks.inflation * (float(np.sum(design[:, None] * spread)) + float(design.max()) * unsure)
    off = blocks.either.reshape(strata, 2, cells) * people
    either = used[:, None] * off * people[:, ::-1] * (both / total**2)[:, None]
    bias = joint_bias(*(max(float(one), 0.0) for one in either.sum(axis=(0, 2))))
    return LogRank(difference, variance, max(noise, 0.0), heavy, int(known_cells.min()), bias)


def table_gradient(blocks: Blocks, by_events: Floats, by_people: Floats, cause: int | None = None) -> Floats:
    """Return how a number moves with each entry, (1, B, M), that moves with events and people at risk as given."""
    cells = blocks.cells
    gradient = by_people.reshape(-1, cells) @ blocks.risk_rows
    gradient += by_events.reshape(-1, cells) @ blocks.event_rows(cause)
    return np.asarray(gradient[None])


def of_products(blocks: Blocks, weights: Floats, cause: int | None = None) -> float:
    """Return the variance of products of an arm's noise in events and the other's in people at risk.

    `weights` (S, J) are what each product is multiplied by.
    """
    events = blocks.event_variances[-1 if cause is None else cause]
    return float(np.sum(weights**2 * 2 * events * blocks.risk_sd**2))


# Hazard ratios and a test of proportional hazards from noisy tables of events by time cell.
#
# Grouped data with proportional hazards: of Y people at risk in a cell, each of arm a has the event with chance 1 -
# exp(-x_a), x_a = theta^a lambda, with lambda the cell's own (Prentice and Gloeckler 1978). The complementary log-log
# likelihood has residuals r_a = d_a x_a / (1 - exp(-x_a)) - x_a Y_a and information lambda v_a in each arm, with v_a
# = theta^a Y_a x_a / (exp(x_a) - 1). With lambda profiled out, a cell's score is (v_0 r_1 - v_1 r_0) / (v_0 + v_1),
# its information lambda v_0 v_1 / (v_0 + v_1). Ties are what grouping means, so that nothing is done for them.
#
# To first order the score does not move with lambda, and it is linear in events: negative counts do no harm. The
# interval holds every ratio whose score is no farther from 0 than its sampling variance and noise at that ratio
# explain.

# Logarithms of ratios that are looked at.
_FARTHEST = 10.0
# Steps towards a cell's own hazard, and the largest that is supposed.
_STEPS, _MOST = 4, 5.0


@dataclass(frozen=True, slots=True)
class HazardRatio:
    """The ratio of both arms' hazards, treated over control, within strata.

    Attributes
    ----------
    tables : NoisyTables
        Numbers of events and of people, as released.
    cause : int or None
        Position of the cause among ``tables.causes``; None for all events.

    Notes
    -----
    The ratio r is where the score of the grouped Cox model is 0: the observed events of the treated less
    those expected at r. An interval holds the ratios whose score test does not reject.
    """

    tables: NoisyTables
    cause: int | None = None

    def score(self, logarithm: float) -> LogRank:
        """Return the score at a ratio, whose test is that of this ratio.

        Parameters
        ----------
        logarithm : float
            Logarithm of the ratio.

        Returns
        -------
        LogRank
            Observed less expected events, with the two-sided p-value.
        """
        return _score(self.tables, self.cause, logarithm)

    @property
    def _logarithm(self) -> float:
        # A stratum whose cells are all lost in the noise says nothing; others do.
        if not blocks_of(self.tables).known.reshape(-1, 2).min(axis=1).any():
            return nan
        root = _root(lambda at: self.score(at).difference, -_FARTHEST, _FARTHEST)
        return root if abs(root) < _FARTHEST else root * inf

    @property
    def estimate(self) -> float:
        """The ratio at which the score is 0; 0 or infinite where an arm's events are lost in the noise."""
        return exp(self._logarithm)

    def _sd(self, part: str) -> float:
        logarithm = self._logarithm
        if not isfinite(logarithm):
            return inf
        step = 0.01
        slope = (self.score(logarithm - step).difference - self.score(logarithm + step).difference) / (
            2 * step
        )
        return exp(logarithm) * sqrt(getattr(self.score(logarithm), part)) / slope if slope > 0 else inf

    @property
    def sampling_sd(self) -> float:
        """Standard deviation of the sampling error."""
        return self._sd("variance")

    @property
    def noise_sd(self) -> float:
        """Standard deviation of the privacy noise."""
        return self._sd("noise")

    def interval(self, level: float) -> Ends:
        """Return the two ends: 0 or infinite where noise leaves them open.

        Parameters
        ----------
        level : float
            Confidence level, in (0, 1).

        Returns
        -------
        tuple of (float, float)
            Lower and upper end.
        """
        start = self._logarithm
        if isnan(start):
            return 0.0, inf
        start = min(max(start, -_FARTHEST), _FARTHEST)
        low = _root(lambda at: self.score(at).interval(level)[0], -_FARTHEST, start)
        high = _root(lambda at: self.score(at).interval(level)[1], start, _FARTHEST)
        return 0.0 if low == -_FARTHEST else exp(low), inf if high == _FARTHEST else exp(high)

    @property
    def p_value(self) -> float:
        """Two-sided p-value of equal hazards, privacy noise included."""
        return self.score(0.0).p_value

    @property
    def proportionality(self) -> LogRank:
        """Test that the ratio is the same at all times: its change along time is 0."""
        found = self._logarithm
        return _score(self.tables, self.cause, found if isfinite(found) else 0.0, trend=True)


def _root(falling: Callable[[float], float], low: float, high: float) -> float:
    """Return where a falling function is 0; the end at which it is nearest to it where it is 0 nowhere between."""
    from scipy.optimize import brentq  # takes long to load, and most questions have no need of it

    if falling(low) <= 0:
        return low
    return high if falling(high) >= 0 else float(brentq(falling, low, high, xtol=1e-10))


@lru_cache(maxsize=512)
def _score(tables: NoisyTables, cause: int | None, logarithm: float, trend: bool = False) -> LogRank:
    middles = np.array(tables.edges[1:]) + np.array(tables.edges[:-1])
    return score(blocks_of(tables), tables.heavy, logarithm, cause, middles if trend else None)


def score(
    blocks: Blocks, heavy: float, logarithm: float, cause: int | None = None, times: Floats | None = None
) -> LogRank:
    """Return the score of a logarithm of the hazard ratio over all strata, in the cells that are known of both arms.

    With `times` (J,), that of its change along them, which does not move with the ratio itself.
    """
    strata = len(blocks.counts) // 2
    cells = blocks.cells
    known_cells = blocks.known.reshape(strata, 2).min(axis=1)
    used = np.arange(cells) < known_cells[:, None]
    ratio = np.array([1.0, exp(logarithm)])[:, None]
    events = (blocks.counts @ blocks.event_rows(cause).T).reshape(strata, 2, cells)
    people = np.where(used[:, None], blocks.at_risk.reshape(strata, 2, cells), 1.0)
    exposed = (ratio * people).sum(axis=1)
    hazard = events.sum(axis=1) / exposed
    for _ in range(_STEPS):
        x = np.clip(ratio * hazard[:, None], 1e-9, _MOST)
        grown = x / -np.expm1(-x)
        hazard = (events * grown).sum(axis=1) / exposed
    share = ratio * people * x / np.expm1(x)
    others = share[:, ::-1] / share.sum(axis=1)[:, None] * used[:, None]
    # (S, 2, J): how the score moves with residuals.
    sign = np.array([-1.0, 1.0])[:, None] * others
    # The information of a cell is so much for every event.
    cell_variance = (share * others).sum(axis=1) / 2 / exposed
    if times is not None:
        sampling = cell_variance * np.clip(events.sum(axis=1), 0.0, None)
        centred = times - float(np.sum(sampling * times)) / max(float(sampling.sum()), 1e-300)
        sign = sign * centred
        cell_variance = cell_variance * centred**2
    difference = float(np.sum(sign * (events * grown - ratio * hazard[:, None] * people)))
    by_people = -sign * ratio * hazard[:, None]
    moved = table_gradient(blocks, sign * grown, by_people, cause)
    noise = float(blocks.noise.of(moved)[0, 0])
    tail = float(blocks.noise.heaviness(moved)[0])
    scale = sqrt((1 + ratio[1, 0] ** 2) / 2)
    noise += of_products(blocks, used * (1.0 if times is None else centred) * scale / exposed, cause)
    # The variance is a noisy number too: it is taken larger, by up to one standard deviation of its noise.
    shared = np.stack([cell_variance] * 2, axis=1)
    unsure = max(float(blocks.noise.of(table_gradient(blocks, shared, 0 * shared, cause))[0, 0]), 1e-300)
    design = blocks.design.reshape(strata, 2).max(axis=1)
    happened = max(float(np.sum(design[:, None] * cell_variance * (events * grown).sum(axis=1))), 0.0)
    unsure *= float(design.max()) ** 2
    variance = blocks.inflation * (happened + unsure / max(happened, sqrt(unsure)))
    either = np.abs(np.sum(by_people * blocks.either.reshape(strata, 2, cells) * people, axis=(0, 2)))
    bias = joint_bias(*map(float, either))
    return LogRank(difference, variance, max(noise, 0.0), heavy * tail, int(known_cells.min()), bias)


# Intervals of distributions, their quantiles, and where noisy curves cross a share.
#
# A time is in the interval where the curve's own interval at that time holds the share (Brookmeyer and Crowley 1982):
# no density is estimated. Within a cell the curve lies between those of its ends, and is as far from a straight line as
# unlike neighbouring cells suggest; where everything happens at the ends of cells, it is a step. A difference takes
# both intervals (Zou and Donner 2008).

_DEFAULT_LEVEL = 0.95
_NORMAL = 1.959963984540054
# Times that are so little above a whole number are that number.
_ROUNDING = 1e-9


@dataclass(frozen=True, slots=True)
class Crossing:
    """Where one arm's curve falls to a level: a quantile.

    Attributes
    ----------
    answers : SurvivalAnswers
        Both arms' curves.
    arm : {0, 1}
        0 for the controls, 1 for the treated.
    left : float
        Level of the curve, in (0, 1): one minus the probability of the quantile.
    """

    answers: SurvivalAnswers
    arm: int
    left: float

    @property
    def estimate(self) -> float:
        """Middle between where the noisy curve first reaches the level and where it is above it last.

        It is infinite where the curve does not fall so far before its last time.
        """
        shown = self.answers.curves.shown[self.arm]
        return (self._first(shown) + self._last(shown)) / 2

    def _part(self, noise: bool) -> float:
        """Return the standard deviation that the interval stands for, as the curve's is divided at the estimate."""
        low, high = self.interval(_DEFAULT_LEVEL)
        total = (high - low) / (2 * _NORMAL)
        curves = self.answers.curves
        if not isfinite(total):
            return inf
        index = min(int(np.searchsorted(self.answers.edges, self.estimate)), len(self.answers.edges) - 1)
        drawn = float(curves.noise[self.arm, index, self.arm, index].clip(0.0))
        both = drawn + float(curves.sampling[self.arm, index, index])
        # Where neither is known, as noise hides the arm, all is noise.
        noise_share = drawn / both if both > 0 else 1.0
        return total * sqrt(noise_share if noise else 1 - noise_share)

    @property
    def sampling_sd(self) -> float:
        """Standard deviation of the sampling error."""
        return self._part(noise=False)

    @property
    def noise_sd(self) -> float:
        """Standard deviation of the privacy noise."""
        return self._part(noise=True)

    def interval(self, level: float) -> Ends:
        """Return the two ends; the upper one is infinite where the curve may not fall so far.

        Parameters
        ----------
        level : float
            Confidence level, in (0, 1).

        Returns
        -------
        tuple of (float, float)
            Lower and upper end.
        """
        low, high = self.ends(level, curved=True)
        return low, self.answers.whole_times(high, up=True)

    def ends(self, level: float, curved: bool = False) -> Ends:
        """Return the ends where curves are straight in cells, or as far from it as is allowed for.

        Parameters
        ----------
        level : float
            Confidence level, in (0, 1).
        curved : bool, default False
            Whether the curvature that is allowed for is added.

        Returns
        -------
        tuple of (float, float)
            Lower and upper end.
        """
        low, high = self.answers.ends(self.arm, level)
        curves = self.answers.curves
        arm = self.arm
        sides = np.abs(np.array([low, high]) - curves.survival[arm])
        sides = (sides[:, 1:] + sides[:, :-1]) / 2
        # Errors of two edges are not the same: between them there is less error than at them, if nobody is censored.
        shifts, arcs = np.zeros_like(sides), sides * (1 - curves.halfway[arm]) * curves.rounded
        if curved:
            # How curves bend is no matter of chance but a bias up to a bound, or anything where a cell is crowded.
            (curvature, smooth), held = (
                (one[arm] for one in curves.curvature[:2]),
                -np.diff(curves.shown[arm]),
            )
            arcs *= smooth
            extra = np.array([biased_half_widths(side, curvature, level) - side for side in sides - arcs])
            extra = np.where((curvature < held) | (held <= 0), extra, inf)
            shifts = np.where(smooth, 0.0, -extra)
            arcs = np.where(smooth, arcs - extra, 0.0)
        first = self._first(low, (shifts[0], arcs[0]))
        last = self._last(high, (-shifts[1], -arcs[1]))
        return min(first, float(self.answers.edges[-1])), last

    def _first(self, curve: Floats, moved: tuple[Floats, Floats] | None = None) -> float:
        """Return where a curve first reaches the share."""
        below = np.flatnonzero(curve <= self.left)
        return self._between(curve, int(below[0]), moved, first=True) if len(below) else inf

    def _last(self, curve: Floats, moved: tuple[Floats, Floats] | None = None) -> float:
        """Return up to where a curve is above the share."""
        index = int(np.flatnonzero(curve > self.left)[-1]) + 1
        return self._between(curve, index, moved, first=False) if index < len(curve) else inf

    def _between(self, curve: Floats, place: int, moved: tuple[Floats, Floats] | None, first: bool) -> float:
        """Return where the line into this point, moved by shifts and arcs, crosses the share within its cell."""
        edges = self.answers.edges
        if self.answers.convention == "end" or place == 0 or points_of(np.diff(edges))[place - 1]:
            return float(edges[place])
        if first and moved is not None and self.answers.curves.slack[self.arm, place] > 0:
            # Lost in the noise: it may cross as soon as it is.
            return float(edges[place - 1])
        above = curve[place - 1] - self.left
        falls = curve[place - 1] - curve[place]
        shift, arc = (0.0, 0.0) if moved is None else (float(one[place - 1]) for one in moved)
        return float(edges[place - 1] + _part(above + shift, falls, arc) * (edges[place] - edges[place - 1]))

    def pinned(self, end: float) -> bool:
        """Return whether an end is the edge of a cell about whose inside nothing is assumed.

        Parameters
        ----------
        end : float
            An end of an interval.

        Returns
        -------
        bool
            True at such an edge.
        """
        curves, edges, arm = self.answers.curves, self.answers.edges, self.arm
        curvature, held = curves.curvature[0][arm], -np.diff(curves.shown[arm])
        free = (
            ((curvature >= held) & (held > 0))
            | (curves.slack[arm, 1:] > 0)
            | (self.answers.convention == "end")
        )
        return bool((free & ((edges[1:] == end) | (edges[:-1] == end))).any())


def _part(above: float, falls: float, arc: float) -> float:
    """Return the part u of a cell where above - falls u + 4 arc u (1 - u) is 0: a line that bends between its ends."""
    if not 0 < above < falls:
        return float(above > 0)
    slope = falls - 4 * arc
    return 2 * above / (slope + sqrt(max(slope**2 + 16 * arc * above, 0.0)))


def _mean_curvature(straight: Ends, curved: Ends) -> float:
    """Return how far ends move on average as curves bend in their cells; an open end has no such distance."""
    down = straight[0] - curved[0]
    return (down + curved[1] - straight[1]) / 2 if isfinite(curved[1]) else down


_ANGLES = 8


@dataclass(frozen=True, slots=True)
class CrossingGap(Apart):
    """The difference of two arms' quantiles.

    Attributes
    ----------
    one : Crossing
        Quantile of the treated.
    other : Crossing
        Quantile of the controls.
    """

    one: Crossing
    other: Crossing

    @property
    def estimate(self) -> float:
        """One quantile minus the other; infinite where only one is known, not a number where none is."""
        treated, control = self.one.estimate, self.other.estimate
        return treated - control if isfinite(treated) or isfinite(control) else nan

    @property
    def p_value(self) -> float:
        """Two-sided p-value of equal quantiles, privacy noise included."""
        return p_value(self.interval)

    def interval(self, level: float) -> Ends:
        """Return the two ends; infinite where a quantile may lie beyond the last time.

        Parameters
        ----------
        level : float
            Confidence level, in (0, 1).

        Returns
        -------
        tuple of (float, float)
            Lower and upper end.
        """
        low, high = self._between(level)
        answers = self.one.answers
        return answers.whole_times(low, up=False), answers.whole_times(high, up=True)

    def _between(self, level: float) -> Ends:
        (low, high), (least, most) = (one.ends(level, curved=True) for one in (self.one, self.other))
        treated, control = self.one.estimate, self.other.estimate
        widest = low - most if isfinite(most) else -inf, high - least if isfinite(high) else inf
        if not (isfinite(treated) and isfinite(control)):
            return widest
        straight, straight_control = self.one.ends(level), self.other.ends(level)
        down, up = self._distances(level)
        curved = self._curvature_bias(
            _mean_curvature(straight, (low, high)), _mean_curvature(straight_control, (least, most))
        )
        # Where outcomes lie in a dense cell, and whom weights leave out, is no matter of chance.
        left_out = self.one.answers.whole and bool(self.one.answers.curves.grouping.any())
        pinned = [
            left_out or self.one.pinned(end) or self.other.pinned(another)
            for end, another in ((low, most), (high, least))
        ]
        return (
            widest[0]
            if pinned[0] or isinf(widest[0])
            else treated - control - biased_half_width(down, curved, level),
            widest[1]
            if pinned[1] or isinf(widest[1])
            else treated - control + biased_half_width(up, curved, level),
        )

    def _curvature_bias(self, own: float, others: float) -> float:
        """Return how far the difference may be off as curves bend: about as far in both arms where they bend alike."""
        leans = self.one.answers.curves.curvature[2]
        edges = self.one.answers.edges[1:-1]
        signs = [leans[one.arm, np.searchsorted(edges, one.estimate)] for one in (self.one, self.other)]
        return joint_bias(own, others, _APART if signs[0] == signs[1] else 1.0)

    def _distances(self, level: float) -> Ends:
        """Return how far the difference may be off: the most over errors of both arms that are as unlikely together.

        Two errors of cos(a) and sin(a) times the normal quantile are; where curves are straight the most is the root
        of the sum of squares. Where nobody lies between two values, both quantiles may be off by all of the way.
        """
        treated = self.one.estimate
        control = self.other.estimate
        distances = [(0.0, 0.0)]
        straight, theirs = self.one.ends(level), self.other.ends(level)
        distances += [
            (
                hypot(treated - straight[0], theirs[1] - control),
                hypot(straight[1] - treated, control - theirs[0]),
            )
        ]
        angles = np.arange(1, _ANGLES) * np.pi / (2 * _ANGLES)
        levels = 2 * ndtr(ndtri((1 + level) / 2) * np.sin(angles)) - 1
        by_arm = [[one.ends(float(each)) for each in levels] for one in (self.one, self.other)]
        for (low, high), (least, most) in zip(by_arm[0], reversed(by_arm[1]), strict=True):
            distances.append((treated - low + most - control, high - treated + control - least))
        return max(down for down, _ in distances), max(up for _, up in distances)


# Distribution functions of both arms from noisy counts of outcomes by cell, as curves that fall from 1 to 0.
#
# One minus a distribution function is a survival curve that nobody is censored from, so that intervals, bands and
# quantiles are those of survival.


@dataclass(frozen=True, slots=True)
class NoisyHistograms:
    """Released counts of outcomes by cell, of the control arm first.

    Attributes
    ----------
    numbers : tuple of tuple of float
        Counts, or sums of public weights up to 1, by arm and cell.
    noise_sd : float
        Standard deviation of the noise of each.
    heavy : bool
        Whether the noise is Laplace's.
    totals : tuple of float
        Public numbers of people: of everyone, or of each arm; empty where weights follow private treatments.
    edges : tuple of float
        Edges of the cells, in units of the outcome.
    design : tuple of float
        Ratio of squared weights to weights of each arm; 1 without weights.
    inflation : float
        Factor of the sampling variance, for bias that intervals allow for.
    left_out : tuple of (float, float)
        Share of people for whom nobody in an arm stands, as weights are capped.
    """

    numbers: tuple[tuple[float, ...], ...]
    noise_sd: float
    heavy: bool
    totals: tuple[float, ...]
    edges: tuple[float, ...]
    design: tuple[float, ...]
    inflation: float = 1.0
    left_out: tuple[float, ...] = (0.0, 0.0)

    def _check(self) -> None:
        """Raise ValueError where the parts do not belong together."""
        sound = (
            len(self.numbers) == len(self.design) == len(self.left_out) == 2
            and all(0 <= one <= 1 for one in self.left_out)
            and all(len(one) == len(self.edges) - 1 >= 2 for one in self.numbers)
            and len(self.totals) <= 2
            and self.noise_sd >= 0
            and all(one > 0 for one in (*self.design, *self.totals, self.inflation))
            and all(later > earlier for earlier, later in pairwise(self.edges))
        )
        if not sound:
            raise ValueError("no counts of outcomes by cell")


@lru_cache(maxsize=32)
def distributions_of(tables: NoisyHistograms) -> SurvivalAnswers:
    """Return both arms' curves, one minus distribution functions, with their errors."""
    cells = len(tables.edges) - 1
    groups: tuple[tuple[int, ...], ...] = ((), ((0, 1),), ((0,), (1,)))[len(tables.totals)]
    noise = TableNoise(tables.noise_sd**2 * np.eye(cells), groups)
    counts = with_totals(np.array(tables.numbers), noise, tables.totals)
    people = counts.sum(axis=1)
    is_known = people > max(LEAST_AT_RISK * tables.noise_sd * cells**0.5, 1e-9)
    size = np.where(is_known, people, 1.0)[:, None]
    later = np.triu(np.ones((cells + 1, cells)))  # (P, J): what lies beyond an edge
    curves = np.where(is_known[:, None], counts @ later.T / size, (np.arange(cells + 1) < cells) * 1.0)
    slopes = is_known[:, None, None] * (later - curves[:, :, None]) / size[:, :, None]
    full = np.zeros((2, cells + 1, 2, cells))
    full[0, :, 0], full[1, :, 1] = slopes
    moved = full.reshape(2 * (cells + 1), 2, cells)
    worth = size / (np.array(tables.design) * tables.inflation)[:, None]
    falling = np.minimum.accumulate(np.clip(curves, 0.0, 1.0), axis=1)
    shared = np.minimum(falling[:, :, None], falling[:, None, :]) - falling[:, :, None] * falling[:, None, :]
    slack, off = np.zeros_like(curves), np.zeros_like(curves)
    slack[~is_known, 1:-1] = 1.0
    off[:, 1:-1] = np.array(tables.left_out)[:, None]
    return SurvivalAnswers(
        Curves(
            survival=curves,
            shown=curves,
            sampling=shared / worth[:, :, None],
            noise=noise.of(moved).reshape(2, cells + 1, 2, cells + 1),
            slack=slack,
            grouping=off,
            people=np.repeat(people[:, None], cells, axis=1),
            worth=np.repeat(worth, cells, axis=1),
            heaviness=noise.heaviness(moved).reshape(2, cells + 1),
            lengths=np.diff(tables.edges),
            rounded=True,
            heaped=_heaped(np.array(tables.edges), counts, np.array(tables.design), tables.noise_sd),
        ),
        np.array(tables.edges),
        "middle",
        tables.heavy,
        whole=True,
    )


def _heaped(edges: Floats, counts: Floats, design: Floats, noise_sd: float) -> float:
    """Return the largest round number of which cells surely hold the more, the more of its multiples are in them.

    How much more a cell holds of its length than the two beside it is compared with how many more multiples it has. The
    first and the last cell, which hold outcomes beyond the range, say nothing.
    """
    points = points_of(np.diff(edges))
    edges = edges[np.append(~points, True)]
    counts = _with_their_points(counts, points)
    lengths = np.diff(edges)[1:-1]
    if len(lengths) < _FEWEST:
        return 0.0
    # Whole numbers with cells of their own are no crowds within others.
    whole_numbers = bool(points[1:-1].any())
    dense = np.clip(_around(counts[:, 1:-1] / lengths), 1e-12, None)
    above = _beside(counts[:, 1:-1] / lengths)
    variances = (
        (np.maximum(dense * lengths[1:-1], 1.0) * design[:, None] + noise_sd**2) / lengths[1:-1] ** 2 * 1.5
    )
    seen = 0.0
    first = 10.0 ** floor(np.log10(lengths.mean() * _FINEST))
    for unit in (first * step * ten for ten in (1, 10) for step in (1, 2, 5)):
        held = np.diff(np.floor(edges / unit + _ROUNDING))[1:-1] * unit / lengths
        expected = dense * _beside(held[None])
        power = float(np.sum(expected**2 / variances))
        evidence = float(np.sum(expected * above / variances))
        is_seen = power > 0 and evidence > max(_SEEN * sqrt(power), _PART_ROUNDED * power)
        if is_seen and not (whole_numbers and unit >= 1):
            seen = unit
    return seen


def _with_their_points(counts: Floats, points: NDArray[np.bool_]) -> Floats:
    """Return the counts (2, J) of cells, of which those of points are added to the cell before, which they end."""
    cell = np.maximum(np.cumsum(~points) - 1, 0)
    return np.array([np.bincount(cell, weights=one, minlength=int((~points).sum())) for one in counts])


def _beside(cells: Floats) -> Floats:
    """Return how much more every inner cell has than the two beside it have on average."""
    return np.asarray(cells[:, 1:-1] - (cells[:, 2:] + cells[:, :-2]) / 2)


def _around(cells: Floats) -> Floats:
    """Return the mean of every inner cell and the two beside it."""
    return np.asarray((cells[:, 1:-1] * 2 + cells[:, 2:] + cells[:, :-2]) / 4)


# Round numbers from this part of a cell on are looked for, by so many standard deviations, and at least this part of
# outcomes must be rounded.
_FINEST, _SEEN, _PART_ROUNDED = 0.3, 3.5, 0.2
