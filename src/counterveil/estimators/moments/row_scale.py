"""How records enter moments by arm: units of features and outcome, from released numbers alone.

Features x in [-1, 1] become z = (x - mean) / scale, outcomes y in half ranges become v = (y - centre) / unit
with unit = clip (scale of the outcomes): v is in [-1, 1] but for what is clipped. `RowScale.rows` is the
declaration of such rows that releases take.

In: released means, scales and centre. Out: the map from a row to (z, v), which reads no row itself. Clipping
keeps a row's part in a release bounded; how far that moves a release is proved in
`rows/moments/arm_grams.proof.md`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from counterveil.estimators.moments.outcome_location import OutcomeLocation
from counterveil.numerics.arrays import Floats
from counterveil.numerics.products import Standard
from counterveil.rows.moments.scaled_rows import ScaledRows


@dataclass(frozen=True, slots=True)
class RowScale:
    """Units of records, and what is known of the outcome in them.

    Attributes
    ----------
    standard : Standard
        Means and scales of features, and how long rows are.
    location : OutcomeLocation
        Where the outcomes lie in their range.
    constant, outcome : float
        Squared lengths of the constant and of the outcome beside |z|^2.
    clip : float
        Where the outcome is clipped, in its scales; one of what is clipped is the unit.
    """

    standard: Standard
    location: OutcomeLocation
    constant: float
    outcome: float
    clip: float

    @property
    def unit(self) -> float:
        """What outcomes are divided by, in units of half their range."""
        return self.clip * self.location.scale

    @property
    def rows(self) -> ScaledRows:
        """The declaration of records in these units."""
        return ScaledRows(
            standard=self.standard,
            centre=self.location.centre,
            unit=self.unit,
            constant=self.constant,
            outcome=self.outcome,
        )

    def least_clip(self, levels: Floats) -> float:
        """Return the least clip of residuals, in these units: as far as outcomes reach where they are uneven.

        `levels` are the mean outcomes of the arms.
        """
        if self.location.whole:
            return 1.0 + min(float(np.abs(levels).max()), 1.0)
        return min(self.location.farthest / self.clip, 1.0) if self.location.uneven else 0.0
