"""Strata of a question, and cut points of numeric covariates that are not known in public.

The cut points of a covariate with b bins are those inner points of an even grid of `GRID` cells over its
declared range, in units of the covariate, at which the running sum of noisy counts is nearest to 1/b, 2/b,
... of all rows: private quantiles. In: private rows, counted in public cells; each covariate to be cut takes
the part `SHARE` of the budget. Out: cut points, and the rows counted in the strata that they make.

Only counts are released; a replaced row leaves one cell and enters another. Proof: `rows/histogram.proof.md`;
all that follows is post-processing. Where covariates are public, counts are too, and cut points cost nothing.
Privacy does not depend on `GRID` and `SHARE`.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from counterveil.data import Layout, Range, Study
from counterveil.errors import refusal
from counterveil.privacy.provenance import Bounded, ReleaseRow
from counterveil.rows.public import PublicData
from counterveil.rows.strata.counted import BinnedRows, StratifiedRows, binned_rows, stratified_rows
from counterveil.session import Gate, Kind
from counterveil.settings import Stratified

HISTOGRAM_PAGE = "rows/histogram.proof.md"
# Cells of the grid on which cut points can lie.
GRID = 64
# What the cut points of one covariate cost, in parts of the budget.
SHARE = Fraction(1, 20)
MOST_RELEASED_CUTS = 19


@dataclass(frozen=True, slots=True)
class PrivateCutPoints:
    """A numeric covariate whose cut points are to be found from the data: at most `bins` - 1 of an even grid."""

    name: str
    domain: Range
    bins: int

    @property
    def release(self) -> str:
        """The name of the release that pays for them."""
        return f"cut points of {self.name}"

    @property
    def points(self) -> tuple[Fraction, ...]:
        """The inner points of the even public grid on which they lie."""
        return tuple(self.domain.lo + self.domain.width * Fraction(k, GRID) for k in range(1, GRID))

    def nearest(self, counts: NDArray[Any]) -> tuple[Fraction, ...]:
        """Return at most bins - 1 grid points, those nearest to the quantiles of the counts, without repeats."""
        running = np.cumsum(counts)[:-1]
        aims = np.arange(1, self.bins) / self.bins * float(np.sum(counts))
        nearest_points = np.unique(np.abs(running[:, None] - aims).argmin(axis=0))
        return tuple(self.points[int(index)] for index in nearest_points)


def released_cuts(study: Study, settings: Stratified) -> tuple[PrivateCutPoints, ...]:
    """Return the covariates whose cut points are to be released, or raise CV-S080."""
    to_release = []
    for name, bins in (settings.cuts or {}).items():
        domain = study.covariates.get(name)
        wanted = settings.strata is None or name in settings.strata
        if not isinstance(domain, Range) or domain.cuts or not wanted:
            raise refusal("CV-S080", name=name, got="no such covariate" if domain is None else repr(domain))
        to_release.append(PrivateCutPoints(name, domain, bins))
    return tuple(to_release)


@dataclass(frozen=True, slots=True)
class StratifiedData:
    """The rows of a question, counted by stratum as far as cut points are public.

    Attributes
    ----------
    study : Study
        The study that the rows fit.
    settings : Stratified
        Covariates that make strata, and those whose cut points are to be found.
    counted : StratifiedRows
        The rows, counted in the strata that are public.
    cut_points : tuple of PrivateCutPoints
        Covariates whose cut points are to be found.
    binned : tuple of BinnedRows
        The rows, counted in the grid of each of these.
    most_strata : int
        Strata of the layout; with cut points to be found, at most so many.
    """

    study: Study
    settings: Stratified
    counted: StratifiedRows
    cut_points: tuple[PrivateCutPoints, ...]
    binned: tuple[BinnedRows, ...]
    most_strata: int

    @property
    def rows(self) -> int:
        """The public number of rows."""
        return self.counted.rows

    @property
    def remaining_share(self) -> Fraction:
        """The part of the budget that cut points leave; CV-P640 where that is nothing."""
        if len(self.cut_points) > MOST_RELEASED_CUTS:
            raise refusal(
                "CV-P640", limit=MOST_RELEASED_CUTS, share=SHARE, released_cuts=len(self.cut_points)
            )
        return 1 - SHARE * len(self.cut_points)

    def shares(self, estimator_shares: dict[str, Fraction]) -> dict[str, Fraction]:
        """Return the shares of the budget: those of the cut points, and `estimator_shares` of what they leave."""
        return {cuts.release: SHARE for cuts in self.cut_points} | {
            name: share * self.remaining_share for name, share in estimator_shares.items()
        }

    @property
    def pages(self) -> tuple[str, ...]:
        """Proof pages that cut points add."""
        return (HISTOGRAM_PAGE,) if self.cut_points else ()

    @property
    def mechanisms(self) -> tuple[str, ...]:
        """Mechanisms that cut points add."""
        return ("laplace",) if self.cut_points else ()

    @property
    def releases(self) -> tuple[ReleaseRow, ...]:
        """The releases of cut points, as a result lists them."""
        return tuple((cuts.release, Bounded.HISTOGRAM) for cuts in self.cut_points)

    @property
    def kinds(self) -> dict[str, Kind]:
        """What the releases of cut points are planned as."""
        return {cuts.release: Kind.CELLS for cuts in self.cut_points}

    def release_cuts(self, gate: Gate) -> dict[str, tuple[Fraction, ...]]:
        """Return cut points by covariate, from released counts."""
        return {
            cuts.name: cuts.nearest(binned.release(gate, cuts.release).floats())
            for cuts, binned in zip(self.cut_points, self.binned, strict=True)
        }

    def public_cuts(self) -> dict[str, tuple[Fraction, ...]]:
        """Return cut points by covariate where covariates are public and quantiles cost nothing."""
        return {
            cuts.name: cuts.nearest(binned.counts)
            for cuts, binned in zip(self.cut_points, self.binned, strict=True)
        }

    def layout(self, cuts: dict[str, tuple[Fraction, ...]]) -> Layout:
        """Return the strata with these cut points in place of those that were to be found."""
        return Layout.of(self.study, self.settings.strata, cuts) if cuts else self.counted.layout


def stratified_data(public: PublicData, settings: Stratified) -> StratifiedData:
    """Return the rows of a question by stratum; refuses what does not fit the study, before budget is reserved."""
    private_cuts = released_cuts(public.study, settings)
    # One bin stands for the columns still to be cut, so that everything else is read and checked now.
    layout = Layout.of(public.study, settings.strata, {cuts.name: () for cuts in private_cuts})
    most_strata = layout.public
    for cuts in private_cuts:
        most_strata *= cuts.bins
    counted = stratified_rows(public, layout, most=most_strata)
    binned = tuple(binned_rows(public, cuts.name, cuts.points) for cuts in private_cuts)
    return StratifiedData(
        study=public.study,
        settings=settings,
        counted=counted,
        cut_points=private_cuts,
        binned=binned,
        most_strata=most_strata,
    )


def cut_details(cuts: dict[str, tuple[Fraction, ...]]) -> dict[str, Any]:
    """Return cut points as details of a result."""
    text = "; ".join(
        f"{name}: {', '.join(f'{float(point):.6g}' for point in points)}" for name, points in cuts.items()
    )
    return {"cut_points": text} if text else {}
