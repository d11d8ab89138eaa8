"""Figures 3 to 5 and 8 to 11: errors of pooled effects by cells of ten repetitions, with the published site methods.

Koga, Chaudhuri and Page: difference in means with Laplace noise on four sums; exact one-to-one matching with
noise from the global or the printed smooth sensitivity. Budgets are split evenly over the releases.
Everything is in units of the outcome's range.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property
from math import log
from typing import Any
from zlib import crc32

import numpy as np
import pandas as pd
from numpy.typing import NDArray

import counterveil as cv
from counterveil.data import Layout, Study
from counterveil.datasets import ihdp, ist, nsw, star, synth_strata
from counterveil.datasets.dataset import Dataset
from counterveil.errors import DataError
from counterveil.inference.site_weights import pooling_weights
from counterveil.numerics.arrays import Floats, Integers
from counterveil.published.strata import (
    match_in_order,
    printed_log_sd,
    printed_noise_scale,
    printed_smooth_change,
    printed_smoothness,
    printed_variance_within,
    published_variance,
)
from counterveil.published.strata_sensitivity import StratumCounts, largest_discounted
from counterveil.results.result import OneEffect
from counterveil_lab.reproduce.page import Cell, Row

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
        treatment=cv.Treatment(
            declared.treatment, treated=declared.treatment_labels[0], control=declared.control
        ),
        outcome=cv.Outcome(declared.outcome, declared.outcome_range),
        covariates={name: declared.covariates[name] for name in strata},
        assignment=cv.Trial() if declared.randomised else cv.Observational(),
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


DELTA = 1e-5


@dataclass(frozen=True)
class Answer:
    """What a site sends: an estimate, and a variance that is not below that of the noise."""

    estimate: float
    variance: float


def mean_difference(rows: Rows) -> float:
    """Return the difference in means."""
    return float(rows.outcome[rows.treated].mean() - rows.outcome[~rows.treated].mean())


def private_mean_difference(rows: Rows, epsilon: float, rng: np.random.Generator) -> Answer:
    """Return the published difference in means; half of epsilon for the sums, half for the sums of squares."""
    scale = 2 / epsilon
    means, noise, sampling = [], 0.0, 0.0
    for arm in (rows.outcome[rows.treated], rows.outcome[~rows.treated]):
        mean = (arm.sum() + rng.laplace(0, scale)) / len(arm)
        square = ((arm**2).sum() + rng.laplace(0, scale)) / len(arm)
        means.append(mean)
        noise += 2 * scale**2 / len(arm) ** 2
        sampling += (square - mean**2) / len(arm)
    return Answer(float(means[0] - means[1]), noise + max(float(sampling), 0.0))


def stratum_counts(rows: Rows, strata: int) -> StratumCounts:
    """Return how many people each of the public strata has in each arm."""
    _, place = np.unique(rows.stratum, return_inverse=True)
    treated = np.bincount(place, rows.treated).astype(np.int64)
    return StratumCounts.of(treated, np.bincount(place) - treated, strata)


class Matching:
    """Exact one-to-one matching at one site; what does not depend on epsilon is found once."""

    def __init__(self, rows: Rows, strata: int) -> None:
        self._rows, self._strata, self.size = rows, strata, len(rows.outcome)
        self._within: dict[int, float] = {}

    @cached_property
    def _matched(self) -> tuple[float, float]:
        """The effect and its variance, people without a match counting as zero."""
        rows = self._rows
        partner, uses = match_in_order(rows.stratum, rows.treated)
        gap = np.where(partner >= 0, rows.outcome - rows.outcome[partner], 0.0)
        effect = float(np.where(rows.treated, gap, -gap).mean())
        return effect, float(published_variance(rows.outcome, partner, uses)) / (2 * self.size**2)

    @property
    def effect(self) -> float:
        """The effect without privacy."""
        return self._matched[0]

    @cached_property
    def _counts(self) -> StratumCounts:
        return stratum_counts(self._rows, self._strata)

    def _variance_bound(self, smoothness: float) -> float:
        def value(k: int, floor: float) -> float:
            del floor
            if k not in self._within:
                self._within[k] = printed_variance_within(self._counts, k)
            return self._within[k]

        most = 64.0 * (self.size + 2) ** 2
        return largest_discounted(value, most, self.size, smoothness) / self.size**2

    def _noisy_variance(self, epsilon: float, delta: float, rng: np.random.Generator) -> float:
        bound = self._variance_bound(printed_smoothness(epsilon, delta))
        return max(self._matched[1] + rng.laplace(0, printed_noise_scale(bound, epsilon)), 0.0)

    def smooth(self, epsilon: float, rng: np.random.Generator) -> Answer:
        """Return SmoothDPMatching with its variance: three releases."""
        part, delta = epsilon / 3, DELTA / 3
        smoothness = printed_smoothness(part, delta)
        bound = printed_smooth_change(self._counts, smoothness) / self.size
        estimate = self.effect + rng.laplace(0, printed_noise_scale(bound, part))
        sd = printed_log_sd(smoothness, part, delta)
        released = np.exp(log(bound) + rng.normal(0, sd) - sd**2 / 2)
        noise = 8 * float(released) ** 2 / part**2
        return Answer(estimate, noise + self._noisy_variance(part, delta, rng))

    def constant(self, epsilon: float, rng: np.random.Generator) -> Answer:
        """Return GlobalDPMatching with its variance: two releases, noise from a sensitivity of one range."""
        part, delta = epsilon / 2, DELTA / 2
        estimate = self.effect + rng.laplace(0, 1 / part)
        return Answer(estimate, 2 / part**2 + self._noisy_variance(part, delta, rng))


AGGREGATIONS = {"MVAgg": "mvagg", "AggAll": "all", "AggLargest": "largest", "IVW": "ivw"}
# Room for every question of a repetition: what one site's people lose is one epsilon, not their sum.
_ROOM = cv.Budget(10**6)
# Estimates by method, way of pooling and alpha, in ranges of the outcome.
Estimates = dict[tuple[str, str, float], float]
# What was sent, by site and epsilon.
Sent = Mapping[tuple[int, float], Answer]


def reference(panel: Panel, repetition: int) -> float:
    """Return what errors are measured from: the true effect of Synth, else all rows without privacy."""
    source = load(panel.study, repetition)
    if source.truth is not None:
        return source.truth
    return _plain(source.rows, source)


def repeat(panel: Panel, repetition: int) -> Estimates:
    """Return the pooled estimates of every method, way of pooling and alpha."""
    # Every panel cuts and draws for itself.
    rng = np.random.default_rng([crc32(panel.name.encode()), repetition])
    source = load(panel.study, repetition)
    sites = cut(panel, source, rng)
    sizes = np.array([len(site.outcome) for site in sites], dtype=np.float64)
    found: Estimates = {}
    for method, answers in _published(panel, source, sites, rng).items():
        for alpha in ALPHAS:
            sent = [answers[j, epsilon] for j, epsilon in enumerate(panel.epsilons(alpha))]
            for name, way in AGGREGATIONS.items():
                found[method, name, alpha] = _pooled(sent, sizes, way)
    found |= _ours(panel, source, sites, rng)
    plain = float(sizes @ [_plain(site, source) for site in sites] / sizes.sum())
    for alpha in ALPHAS:
        found["without privacy", "AggAll", alpha] = plain
        found["zero", "-", alpha] = 0.0
    return found


def _plain(rows: Rows, source: Source) -> float:
    return Matching(rows, source.strata).effect if source.strata else mean_difference(rows)


def _asked(panel: Panel) -> list[tuple[int, float]]:
    """Return every (site, epsilon) of the panel once: the first site answers once for all alphas."""
    return sorted({(j, e) for alpha in ALPHAS for j, e in enumerate(panel.epsilons(alpha))})


def _published(panel: Panel, source: Source, sites: list[Rows], rng: np.random.Generator) -> dict[str, Sent]:
    asked = _asked(panel)
    if not source.strata:
        return {"published": {(j, e): private_mean_difference(sites[j], e, rng) for j, e in asked}}
    matchings = [Matching(site, source.strata) for site in sites]
    return {
        "published, global": {(j, e): matchings[j].constant(e, rng) for j, e in asked},
        "published, smooth": {(j, e): matchings[j].smooth(e, rng) for j, e in asked},
    }


def _pooled(sent: list[Answer], sizes: Floats, method: str) -> float:
    variances = np.array([answer.variance for answer in sent])
    return float(pooling_weights(method, sizes, variances) @ [answer.estimate for answer in sent])


def _methods(source: Source) -> tuple[dict[str, str], str]:
    """Return our methods by their names in tables, and whom they protect."""
    if not source.strata:
        return {"ours": "difference_in_means"}, "outcome"
    found = {"ours": "stratified", "difference in means": "trial"}
    # A trial that is matched as if it were none: what is chosen for it as it is declared.
    return found | ({"auto": "auto"} if source.study.randomised else {}), "record"


def _ours(panel: Panel, source: Source, sites: list[Rows], rng: np.random.Generator) -> Estimates:
    methods, unit = _methods(source)
    width = float(source.study.outcome_bounds.width)
    results: dict[tuple[str, int, float], cv.results.Result] = {}
    for j, site in enumerate(sites):
        noise = cv.SeededNoise(int(rng.integers(2**62)))
        try:
            whole = cv.Session(site.frame, source.study, budget=_ROOM, noise=noise)
        except DataError:
            continue  # an arm of one person: this site gives no result, the others are pooled
        with whole as session:
            for name, method in methods.items():
                settings = cv.settings.Trial("none", "pooled") if method == "trial" else None
                for e in (e for k, e in _asked(panel) if k == j):
                    results[name, j, e] = session.ate(
                        protects=unit, epsilon=e, method=method, settings=settings
                    )
    found: Estimates = {}
    for name in methods:
        # What is there for comparison is pooled in the default way.
        ways = AGGREGATIONS if name == "ours" else {"MVAgg": "mvagg"}
        for alpha in ALPHAS:
            keys = [(name, j, e) for j, e in enumerate(panel.epsilons(alpha))]
            sent = [results[key] for key in keys if key in results]
            for pooled_by, way in ways.items():
                answer = cv.pool(sent, method=way) if len(sent) > 1 else sent[0]
                assert isinstance(answer, OneEffect)
                found[name, pooled_by, alpha] = answer.estimate / width
    return found


QUICK, FULL, BLOCK = 20, 100, 10
ALPHA_NAMES = {alpha: {0.125: "1/8", 0.25: "1/4", 0.5: "1/2"}.get(alpha, f"{alpha:g}") for alpha in ALPHAS}
KEYS = ["study", "sites", "method", "pooled_by"]
MEASURES = MEAN, SD, OUTSIDE = ("mean error", "SD of errors", "share outside [-1, 1]")


def cells_of(figure: int) -> Callable[[bool], Sequence[Cell]]:
    """Return the cells of a figure; `seed` is the number of a cell's first repetition."""

    def cells(quick: bool) -> list[Cell]:
        return [
            {
                "figure": figure,
                "study": panel.study,
                "sites": panel.cut,
                "epsilon": panel.epsilon,
                "seed": first,
                "repetitions": BLOCK,
            }
            for panel in PANELS
            if panel.figure == figure
            for first in range(0, QUICK if quick else FULL, BLOCK)
        ]

    return cells


def panel_of(cell: Cell) -> Panel:
    """Return the panel that a cell names."""
    sites = str(cell["sites"])
    sizes = None if sites == "schools" else tuple(map(int, sites.split(":")))
    return Panel(int(cell["figure"] or 0), str(cell["study"]), sizes, float(cell["epsilon"] or 0))


def run(cell: Cell) -> list[Row]:
    """Return, for every method, way of pooling and alpha, the sums over the cell's repetitions.

    `error` adds absolute errors in ranges of the outcome, `square` their squares; `outside` counts estimates that no
    effect can have.
    """
    panel, first = panel_of(cell), int(cell["seed"] or 0)
    sums: dict[tuple[str, str, float], Floats] = {}
    for place in range(first, first + int(cell["repetitions"] or 0)):
        truth = reference(panel, place)
        for key, estimate in repeat(panel, place).items():
            error = abs(estimate - truth)
            sums.setdefault(key, np.zeros(3))
            sums[key] += np.array([error, error**2, abs(estimate) > 1])
    return [
        {
            "method": method,
            "pooled_by": pooled_by,
            "alpha": alpha,
            "error": float(error),
            "square": float(square),
            "outside": int(outside),
        }
        for (method, pooled_by, alpha), (error, square, outside) in sums.items()
    ]


def table(rows: pd.DataFrame) -> pd.DataFrame:
    """Return mean and standard deviation of the absolute error, and the share of impossible estimates, by alpha."""
    parts = []
    for key, own in rows.groupby([*KEYS, "alpha"], sort=False):
        n, error, square, outside = (
            own[name].sum() for name in ("repetitions", "error", "square", "outside")
        )
        mean = error / n
        sd = max(square - n * mean**2, 0.0) ** 0.5 / max(n - 1, 1) ** 0.5
        parts.append((*key, int(n), mean, sd, outside / n))
    found = pd.DataFrame(parts, columns=[*KEYS, "alpha", "repetitions", *MEASURES])
    # Lines in the order in which they came; pandas sorts them by name otherwise.
    lines = list(dict.fromkeys(found[KEYS].itertuples(index=False, name=None)))
    panels = dict.fromkeys((study, sites) for study, sites, *_ in lines)
    by_key = found.set_index([*KEYS, "alpha"])
    return pd.DataFrame(
        [
            {"study": key[0], "sites": key[1], "measure": measure, "method": key[2], "pooled_by": key[3]}
            | {name: float(by_key.at[(*key, alpha), measure]) for alpha, name in ALPHA_NAMES.items()}
            | {"repetitions": int(by_key.at[(*key, ALPHAS[0]), "repetitions"])}
            for panel in panels
            for measure in MEASURES
            for key in lines
            if key[:2] == panel
        ]
    )


def line(
    found: pd.DataFrame, study: str, sites: str, method: str, pooled_by: str, measure: str = MEAN
) -> Floats:
    """Return one line of the table: a number for each alpha."""
    wanted = {"study": study, "sites": sites, "method": method, "pooled_by": pooled_by, "measure": measure}
    chosen = np.logical_and.reduce([(found[name] == value).to_numpy() for name, value in wanted.items()])
    numbers: Floats = found.loc[chosen, list(ALPHA_NAMES.values())].to_numpy(dtype=np.float64)[0]
    return numbers
