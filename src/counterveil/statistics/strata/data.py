"""What stratified estimators read: strata, and where cut points are bought, histograms first.

Everything that can fail for the sake of the data is done in `read_strata`, before budget is reserved.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from counterveil.data import Layout, Range, Study
from counterveil.errors import refusal
from counterveil.numerics.strata import Strata
from counterveil.privacy import Guarantee
from counterveil.results.question import Question
from counterveil.session import BaseSession, Gate, Kind
from counterveil.settings import Stratified
from counterveil.statistics.histogram import release_counts

# Cut points of numeric covariates that are not known in public: private quantiles, paid for.
#
# A noisy histogram on an even public grid over the covariate's range is released; the cut points are the
# grid's points nearest to the quantiles of its running sum. All that follows is post-processing.


PAGE = "statistics/histogram.proof.md"
# Cells of the grid on which cut points can lie.
GRID = 64
# What the cut points of one covariate cost, in parts of the budget.
SHARE = Fraction(1, 20)
MOST_BOUGHT = 19


@dataclass(frozen=True, slots=True)
class PrivateCutPoints:
    """A numeric covariate whose cut points are to be found from the data."""

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
        places = np.unique(np.abs(running[:, None] - aims).argmin(axis=0))
        return tuple(self.points[int(place)] for place in places)


def bought_cuts(study: Study, settings: Stratified) -> tuple[PrivateCutPoints, ...]:
    """Return the covariates whose cut points are bought, or raise CV-S080."""
    found = []
    for name, bins in (settings.cuts or {}).items():
        domain = study.covariates.get(name)
        wanted = settings.strata is None or name in settings.strata
        if not isinstance(domain, Range) or domain.cuts or not wanted:
            raise refusal("CV-S080", name=name, got="no such covariate" if domain is None else repr(domain))
        found.append(PrivateCutPoints(name, domain, bins))
    return tuple(found)


@dataclass(frozen=True, slots=True)
class StrataReader:
    """The strata of one question, or what is needed to find them once cut points are released."""

    session: BaseSession
    settings: Stratified
    bought: tuple[PrivateCutPoints, ...]
    histograms: tuple[NDArray[np.int64], ...]
    known: Strata
    public: int  # strata of the layout; with bought cut points, at most so many

    @property
    def rows(self) -> int:
        """The public number of rows."""
        return self.known.rows

    @property
    def left(self) -> Fraction:
        """The part of the budget that cut points leave; CV-P640 where that is nothing."""
        if len(self.bought) > MOST_BOUGHT:
            raise refusal("CV-P640", most_bought=MOST_BOUGHT, share=SHARE, bought=len(self.bought))
        return 1 - SHARE * len(self.bought)

    def shares(self, own: dict[str, Fraction]) -> dict[str, Fraction]:
        """Return the shares of the budget: the estimator's own, and those of the cut points."""
        return {cuts.release: SHARE for cuts in self.bought} | {
            name: share * self.left for name, share in own.items()
        }

    def guarantee(self, question: Question, pages: tuple[str, ...]) -> Guarantee:
        """Return the guarantee of a question at record level, with what cut points add."""
        bought = ((PAGE,), ("laplace",)) if self.bought else ((), ())
        drawn = (question.mechanism, *bought[1])
        return question.guarantee(self.session, (*pages, *bought[0]), mechanisms=drawn)

    def releases(self) -> tuple[tuple[str, str], ...]:
        """Return the releases of cut points, as a result lists them."""
        return tuple((cuts.release, "histogram, sensitivity 2") for cuts in self.bought)

    def kinds(self) -> dict[str, Kind]:
        """Return what the releases of cut points are planned as."""
        return {cuts.release: Kind.CELLS for cuts in self.bought}

    def released(self, gate: Gate) -> tuple[Strata, dict[str, float | str]]:
        """Return the strata after the cut points were released, and the cut points as details."""
        found: dict[str, tuple[Fraction, ...]] = {}
        for cuts, counts in zip(self.bought, self.histograms, strict=True):
            noisy = release_counts(gate, cuts.release, counts, pure=True)
            found[cuts.name] = cuts.nearest(noisy.floats())
        return self._strata(found), _shown(found)

    def free(self) -> tuple[Strata, dict[str, float | str]]:
        """Return the strata where covariates are public and quantiles cost nothing."""
        found = {
            cuts.name: cuts.nearest(counts) for cuts, counts in zip(self.bought, self.histograms, strict=True)
        }
        return self._strata(found), _shown(found)

    def _strata(self, found: dict[str, tuple[Fraction, ...]]) -> Strata:
        if not found:
            return self.known
        layout = Layout.of(self.session.study, self.settings.strata, found)
        return self.session.strata(layout)


def read_strata(session: BaseSession, settings: Stratified) -> StrataReader:
    """Return the reader of a question's strata; refuses what does not fit the study."""
    bought = bought_cuts(session.study, settings)
    # One bin stands for the columns still to be cut, so that everything else is read and checked now.
    layout = Layout.of(session.study, settings.strata, {cuts.name: () for cuts in bought})
    public = layout.public
    for cuts in bought:
        public *= cuts.bins
    known = session.strata(layout, most=public)
    histograms = tuple(session.histogram(cuts.name, cuts.points) for cuts in bought)
    return StrataReader(session, settings, bought, histograms, known, public)


def _shown(found: dict[str, tuple[Fraction, ...]]) -> dict[str, Any]:
    said = "; ".join(
        f"{name}: {', '.join(f'{float(cut):.6g}' for cut in cuts)}" for name, cuts in found.items()
    )
    return {"cut_points": said} if said else {}
