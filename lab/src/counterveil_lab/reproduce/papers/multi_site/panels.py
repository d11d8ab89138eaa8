"""The panels of the figures: which study, cut into which sites, at which budgets."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from counterveil.data import Layout, Study
from counterveil.datasets import ihdp, ist, nsw, star, synth_strata
from counterveil.datasets.dataset import Dataset
from counterveil.numerics.arrays import Floats, Integers

ALPHAS = (0.125, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0)
THREE_SITES = ((1, 1, 1), (3, 2, 1), (9, 9, 2), (18, 1, 1))
# Largest first, as the published proportions 5 : 3 : 3 : 1 have them.
SCHOOLS = ("RURAL", "SUBURBAN", "INNER CITY", "URBAN")
IHDP_STRATA = ("x7", "x9", "x14")  # sex, mother married at birth, first born


@dataclass(frozen=True)
class Panel:
    """One panel of a figure: sizes of the sites in proportion (None: schools), epsilon of the first site."""

    figure: int
    study: str
    sizes: tuple[int, ...] | None
    epsilon: float

    @property
    def cut(self) -> str:
        """How people are divided, as tables show it: `3:2:1`, or `schools`."""
        return "schools" if self.sizes is None else ":".join(map(str, self.sizes))

    @property
    def name(self) -> str:
        """A name that no other panel has; it enters the seeds."""
        return f"figure{self.figure:02d}-{self.study.lower()}-{self.cut.replace(':', '-')}"

    @property
    def sites(self) -> int:
        """How many sites there are."""
        return len(SCHOOLS) if self.sizes is None else len(self.sizes)

    def epsilons(self, alpha: float) -> tuple[float, ...]:
        """Return every site's epsilon: that of site j is alpha^((j-1)/(J-1)) times the first's."""
        steps = np.arange(self.sites) / (self.sites - 1)
        return tuple(round(float(self.epsilon * alpha**step), 6) for step in steps)


# Figures as the published version numbers them; in the preprint 4 and 5 are the other way round.
PANELS = (
    Panel(3, "IST", (1, 1), 1),
    *(Panel(4, "IST", sizes, 1) for sizes in THREE_SITES),
    Panel(5, "STAR", None, 1),
    Panel(8, "Synth", (1, 1), 1),
    Panel(8, "IHDP", (1, 1), 5),
    Panel(8, "LaLonde", (1, 1), 5),
    *(Panel(9, "Synth", sizes, 1) for sizes in THREE_SITES),
    *(Panel(10, "IHDP", sizes, 5) for sizes in THREE_SITES),
    *(Panel(11, "LaLonde", sizes, 5) for sizes in THREE_SITES),
)


@dataclass(frozen=True)
class Rows:
    """People: their columns, and what the published methods read: outcomes in [0, 1], arm and stratum."""

    frame: dict[str, NDArray[Any]]
    outcome: Floats
    treated: NDArray[np.bool_]
    stratum: Integers

    def take(self, rows: Integers) -> Rows:
        """Return these people alone."""
        frame = {name: column[rows] for name, column in self.frame.items()}
        return Rows(frame, self.outcome[rows], self.treated[rows], self.stratum[rows])


@dataclass(frozen=True)
class Source:
    """A study as the panels use it; `strata` is how many strata are public, 0 for randomised trials."""

    study: Study
    rows: Rows
    strata: int
    truth: float | None = None
    school: NDArray[Any] = field(default_factory=lambda: np.zeros(0))


def load(study: str, repetition: int) -> Source:
    """Return the study; Synth is drawn anew for every repetition, with its true effect."""
    if study == "Synth":
        data = synth_strata(seed=20_000 + repetition)
        return _source(data, ("x",), truth=data.true_effect)
    return _fixed(study)


@cache
def _fixed(study: str) -> Source:
    if study == "IST":
        return _source(ist())
    if study == "STAR":
        return _source(star(), school="entry_urbanicity")
    if study == "IHDP":
        return _source(ihdp(1), IHDP_STRATA)
    return _source(nsw(), ("age",))


def _source(
    data: Dataset, strata: tuple[str, ...] = (), truth: float | None = None, school: str | None = None
) -> Source:
    declared = data.study
    whole = ~np.isnan(data.frame[declared.outcome].astype(np.float64))
    names = (declared.treatment, declared.outcome, *strata)
    frame = {name: data.frame[name][whole] for name in names}
    study = Study(
        treatment=declared.treatment,
        outcome=declared.outcome,
        outcome_range=declared.outcome_range,
        covariates={name: declared.covariates[name] for name in strata},
        treated=declared.treatment_labels[0],
        control=declared.control,
        randomised=declared.randomised,
    )
    low, high = map(float, declared.outcome_range)
    outcome = (np.clip(frame[declared.outcome].astype(np.float64), low, high) - low) / (high - low)
    stratum = np.zeros(len(outcome), dtype=np.int64)
    for name in strata:
        stratum = stratum * 1000 + np.unique(frame[name], return_inverse=True)[1]
    treated = frame[declared.treatment] != declared.control
    schools = np.zeros(0) if school is None else data.frame[school][whole]
    public = Layout.of(study).public if strata else 0
    return Source(study, Rows(frame, outcome, treated, stratum), public, truth, schools)


def cut(panel: Panel, source: Source, rng: np.random.Generator) -> list[Rows]:
    """Return the rows of every site: schools as they are, or people at random in the panel's proportions."""
    if panel.sizes is None:
        return [source.rows.take(np.flatnonzero(source.school == kind)) for kind in SCHOOLS]
    order = rng.permutation(len(source.rows.outcome))
    # Upwards, so that the first of equal sites is the largest.
    ends = -(-np.cumsum(panel.sizes) * len(order) // sum(panel.sizes))
    return [source.rows.take(np.sort(part)) for part in np.split(order, ends[:-1])]
