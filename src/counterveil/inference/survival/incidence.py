"""Cumulative incidence of one cause of the event, from the tables of blocks in which several causes compete.

    F(t) = sum over cells up to t of S(before the cell) d_cause / E,

with d_cause the events of the cause and E the people at risk in a cell, and S the probability of being free
of any event (Aalen and Johansen 1978) [1]_. Out: curves 1 - F, which are probabilities, with sampling and
noise errors as for survival curves. In: released tables; it is post-processing.

References
----------
.. [1] Aalen, O. and Johansen, S. (1978). An empirical transition matrix for non-homogeneous Markov chains
   based on censored observations. Scandinavian Journal of Statistics 5, 141-150.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from counterveil.inference.survival.blocks import ADDED_EVENTS, Blocks
from counterveil.numerics.arrays import Floats


@dataclass(frozen=True)
class Incidence:
    """The probability of not having had the event of one cause, whatever else happened.

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
        hazards = (
            np.clip(self._own, 0.0, None) + base.sure * ADDED_EVENTS / (base.cells * base.causes) / people
        )
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
        moved = [
            np.einsum("bpj,bj->bp", slopes, h * off) for slopes, h in zip(self._parts, hazards, strict=True)
        ]
        return np.asarray(np.abs(moved[0] + moved[1]))

    @property
    def gradients(self) -> Floats:
        """How curves move with each entry of their own table, (B, J + 1, M)."""
        alone, through = self._parts
        base = self.base
        of_cause, any_event = (
            base.moved(base.event_rows(cause), hazards)
            for cause, hazards in ((self.cause, self._own), (None, base.hazards))
        )
        return np.asarray(-(alone @ of_cause + through @ any_event))


def _not_yet(free: Floats, hazards: Floats) -> Floats:
    """Return one minus the incidence of an event with these hazards among those free of any."""
    return np.hstack([np.ones((len(free), 1)), 1 - np.cumsum(free[:, :-1] * hazards, axis=1)])
