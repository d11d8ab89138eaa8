"""Rows counted before anything is released: by stratum and arm, and by bins of a numeric covariate.

    by stratum x and arm a:  n_xa, sum of y, sum of y^2;    by bin j of a covariate:  N_j rows,

with outcomes y in whole steps of their range (2^24 of them).

In: private rows, and strata or bins that are public. Out: handles that hold the exact counts. Estimators see
of them what is public alone: the number of rows, and with outcomes alone private the counts by stratum; other
readings raise the refusal CV-P851. `BinnedRows.release` returns noisy counts of bins.

Why it is right: counting first means that what cannot be read or does not fit the study is refused before
privacy budget is reserved. Of bins, a replaced row moves one count down and one up by 1, so that Laplace
noise is calibrated to 2.

Proof: `rows/histogram.proof.md` for released bins; what is released of strata is proved on
`rows/strata/bounded_strata.proof.md` and `rows/strata/strata_outcome.proof.md`.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from counterveil.data import Layout
from counterveil.data.table import without_rows
from counterveil.errors import refusal
from counterveil.numerics.strata import Strata, StratumSizes
from counterveil.privacy import Unit
from counterveil.rows.counts import release_counts
from counterveil.rows.public import PublicData, private_session
from counterveil.session import Gate, ReleasedVector


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class StratifiedRows:
    """Counts and sums of outcomes by stratum and arm.

    Attributes
    ----------
    layout : Layout
        The strata that rows were counted in.
    rows : int
        The number of rows, public at each level.
    sizes : StratumSizes
        Counts by stratum and arm; public where outcomes alone are private.
    """

    layout: Layout
    unit: Unit
    _strata: Strata

    @property
    def rows(self) -> int:
        """The number of rows, public at each level."""
        return self._strata.rows

    @property
    def sizes(self) -> StratumSizes:
        """Counts by stratum and arm; CV-P851 where they are private."""
        if not self.unit.treatment_public:
            raise refusal("CV-P851", what="counts by stratum", unit=self.unit.value)
        return self._strata.sizes

    def in_layout(self, gate: Gate, layout: Layout) -> Strata:
        """Return the strata of a layout, counted anew where it has other cut points than the one counted before."""
        return self._strata if layout == self.layout else gate.rows.strata(layout)

    __repr__ = without_rows


def stratified_rows(public: PublicData, layout: Layout, most: int | None = None) -> StratifiedRows:
    """Return the rows counted in a layout; `most` is the number of strata that they may be counted in later."""
    return StratifiedRows(layout, public.unit, private_session(public).strata(layout, most=most))


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class BinnedRows:
    """How many rows have a numeric covariate in each bin of a public grid.

    A row is in one bin, so that a replaced row moves one count down and one up: `histogram.proof.md`.

    Attributes
    ----------
    counts : ndarray of int
        Counts by bin; public where covariates are.
    """

    unit: Unit
    _counts: NDArray[np.int64]

    @property
    def counts(self) -> NDArray[np.int64]:
        """Counts by bin; CV-P851 where they are private."""
        if not self.unit.covariates_public:
            raise refusal("CV-P851", what="counts by bin", unit=self.unit.value)
        return self._counts

    def release(self, gate: Gate, name: str) -> ReleasedVector:
        """Return the counts with Laplace noise."""
        return release_counts(gate, name, self._counts, pure=True)

    __repr__ = without_rows


def binned_rows(public: PublicData, covariate: str, points: tuple[Fraction, ...]) -> BinnedRows:
    """Return the rows counted in the bins that inner points make of a covariate's range."""
    return BinnedRows(public.unit, private_session(public).histogram(covariate, points))
