"""Answers of several effects, pooled row by row.

In come answers of sites, each with a table of effects by name; out comes one table: the rows that two sites
or more have, each averaged over these (`averages`), by the people behind the number. Effects of one site
share people and may depend on each other in any way, so that intervals for all rows are Bonferroni's. Units
are those of the effects. Proof: inference/pooling.proof.md.

All of it is post-processing of released numbers: nothing is spent.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import isfinite
from typing import Any, ClassVar, Self, cast

import numpy as np

from counterveil.inference.arm_means import IndependentArmMeans, JointArmMeans
from counterveil.inference.estimates import Known, symmetric_interval
from counterveil.inference.heterogeneity import Heterogeneity, heterogeneity
from counterveil.inference.pooled_uncertainty import PooledUncertainty
from counterveil.inference.quotient import DIFFERENCE
from counterveil.numerics.arrays import Ends, Floats
from counterveil.privacy import Estimand
from counterveil.questions.pooling.agreement import (
    check_agreement,
    pooled_caveats,
    pooled_opening,
    shared_details,
    shared_provenance,
    sizes_of,
)
from counterveil.questions.pooling.averages import pooled_number
from counterveil.questions.pooling.comparison import compared_known, differing_intervals
from counterveil.questions.pooling.documents import Answer, check_document
from counterveil.questions.pooling.frames import differing_columns
from counterveil.questions.pooling.known import PooledEffect, PooledKnown, PooledRatio, is_ratio
from counterveil.questions.pooling.reading import named, no_result, read_answer
from counterveil.report.measure_words import MEASURE_NAMES
from counterveil.report.pooling import METHOD_TEXTS, differing_words
from counterveil.report.survival_words import figure_words
from counterveil.report.text import rounded
from counterveil.results.effect import ByName, Effect, Linear, check_level, read, refusing
from counterveil.results.figures import interval_facts
from counterveil.results.measures import NumberNeededToTreat, known_as
from counterveil.results.result import Comparison
from counterveil.results.survival import SurvivalResult, figure_of
from counterveil.settings import WeightLimits


@dataclass(frozen=True, slots=True)
class PooledRow:
    """One pooled effect with the sites that have it.

    Attributes
    ----------
    effect : Effect
        The average, with its error.
    weights : mapping of str to float
        Weights of the sites that have the effect, by name.
    sites : tuple of Effect
        Their own effects.
    heterogeneity : Heterogeneity
        How far these differ beyond chance.
    """

    effect: Effect
    weights: Mapping[str, float]
    sites: tuple[Effect, ...]
    heterogeneity: Heterogeneity

    def facts(self) -> dict[str, Any]:
        """Return the row as JSON-ready facts.

        Returns
        -------
        dict
            Facts of the effect, with ``weights``, ``site_effects``, ``heterogeneity`` and, for random
            effects, ``prediction``.
        """
        effects = zip(self.sites, self.weights.values(), strict=True)
        facts = self.effect.facts() | {
            "weights": dict(self.weights),
            "site_effects": [effect.facts() | {"weight": weight} for effect, weight in effects],
            "heterogeneity": self.heterogeneity.to_dict(),
        }
        ends = self.prediction_interval()
        return facts if ends is None else facts | {"prediction": interval_facts(self.effect.level, ends)}

    def heterogeneity_interval(self, level: float | None = None) -> dict[str, Ends]:
        """Return intervals for how far sites differ; it spends nothing.

        Parameters
        ----------
        level : float, optional
            Confidence level, in (0, 1). Default: that of the result.

        Returns
        -------
        dict of str to tuple of (float, float)
            Of "tau", the standard deviation between sites, and of "i_squared", the part of differences beyond
            chance.

        Raises
        ------
        CounterveilError
            A level outside (0, 1): CV-P015.
        """
        chosen = self.effect.level if level is None else check_level(level)
        return differing_intervals(*compared_known([effect.known for effect in self.sites]), chosen)

    def prediction_interval(self, level: float | None = None) -> Ends | None:
        """Return the two ends of an interval for one more site like these.

        Parameters
        ----------
        level : float, optional
            Confidence level, in (0, 1). Default: that of the result.

        Returns
        -------
        tuple of (float, float) or None
            Lower and upper end; None but for random effects.

        Raises
        ------
        CounterveilError
            A level outside (0, 1): CV-P015.
        """
        chosen = self.effect.level if level is None else check_level(level)
        average = self.effect.known
        if isinstance(average, NumberNeededToTreat):
            average = average.difference
        if isinstance(average, PooledKnown | PooledRatio):
            random = average if isinstance(average, PooledKnown) else average.logarithm
            return None if random.between_sites is None else average.one_more(chosen)
        if isinstance(average, Linear) and isinstance(average.uncertainty, PooledUncertainty):
            half = average.uncertainty.prediction_half_width(chosen)
            return None if half is None else symmetric_interval(average.estimate, half)
        return None


@dataclass(frozen=True, slots=True, kw_only=True)
class _RowPooling:
    """How rows are pooled, and how their averages are shown: one of `several` effects, on the scale of a measure."""

    method: str
    level: float
    bounds: WeightLimits | None
    several: int = 1
    measure: str = DIFFERENCE

    def row(self, name: str, sites: Sequence[tuple[str, Any]], sizes: Floats) -> PooledRow:
        """Return the pooled row of the numbers that sites released for it."""
        pooled = pooled_number(sites, sizes, method=self.method, bounds=self.bounds, measure=self.measure)
        weights = {site: float(weight) for (site, _), weight in zip(sites, pooled.weights, strict=True)}
        estimates = [self._known_of(numbers) for _, numbers in sites]
        effects = tuple(
            Effect(site, estimate, self.level) for (site, _), estimate in zip(sites, estimates, strict=True)
        )
        differ = heterogeneity(*compared_known(estimates), pooled.scale)
        return PooledRow(PooledEffect(name, pooled.known, self.level, self.several), weights, effects, differ)

    def _known_of(self, numbers: Any) -> Known:
        """Return what a site knows of its own number, on the scale of the measure."""
        measured = isinstance(numbers, Linear | IndependentArmMeans | JointArmMeans)
        return known_as(self.measure, numbers) if measured else cast("Known", numbers)


def _row_words(row: PooledRow) -> str:
    """Return the sites' own numbers with their weights, and how far they differ."""
    of_sites = ", ".join(
        f"{figure_words(figure_of(effect), str(effect.name))} (weight {weight:.0%})"
        for effect, weight in zip(row.sites, row.weights.values(), strict=True)
    )
    differ = row.heterogeneity
    tau = row.heterogeneity_interval()["tau"]
    error = row.effect.std_error.total
    unit = abs(row.effect.estimate) if is_ratio(row.effect.known) and isfinite(row.effect.estimate) else 1.0
    words = f"{of_sites}; sites differ: {differing_words(differ, tau, differ.scale, error / (unit or 1.0))}"
    ends = row.prediction_interval()
    if ends is None:
        return words
    low, high = (rounded(end, error) for end in ends)
    return f"{words}; one more site lies in [{low}, {high}] ({row.effect.level:.0%}, conservative)"


@dataclass(frozen=True, slots=True, repr=False)
class PooledAverage(PooledEffect):
    """An average of one number of the sites' answers.

    Attributes
    ----------
    name : str, int or float
        Name of the number.
    known : Linear, PooledKnown, PooledRatio or NumberNeededToTreat
        Estimate and uncertainty.
    level : float
        Default confidence level, in (0, 1).
    several : int
        1: its interval is for this number alone.
    size : float or None
        None: the number of people is that of the sites.
    size_sd : float
        0.
    pooled : PooledRow
        Sites, weights, and how far they differ.
    """

    pooled: PooledRow = field(kw_only=True)


@dataclass(frozen=True, slots=True)
class PooledAnswer:
    """One site's part in a pooled table.

    Attributes
    ----------
    name : str
        Name of the site.
    result : ArmsResult, GroupsResult, OutcomesResult, EventStudyResult, SurvivalResult or QuantilesResult
        Its released answer.
    """

    name: str
    result: Answer


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class PooledTable(ByName, Comparison):
    """The effects of several sites' answers, averaged row by row: what `counterveil.pool` returns for tables.

    Nothing in it is private any more, and nothing that its methods do spends budget.

    Attributes
    ----------
    answers : tuple of PooledAnswer
        The sites' answers.
    rows : tuple of PooledRow
        Averages, each over the sites that have the row, two at least.
    estimand : Estimand
        Population over which effects are averaged.
    left_out : tuple of str
        Rows that only one site has.
    weight_limits : WeightLimits or None
        Limits on weights that were asked for.
    method : str
        Estimator that was used, in words.
    treatment, outcome : str
        Columns of the study.
    level : float
        Default confidence level of intervals, in (0, 1).
    guarantee : Guarantee
        What is protected, how strongly, and where that is proved.
    spent : Budget
        Exact epsilon and delta that this answer cost.
    releases : tuple of (str, str)
        Every number that noise was drawn for: its name, and its sensitivity or scale.
    not_covered : tuple of Caveat or Detail
        What intervals do not cover, the worst first. Compare values, never words:
        ``cv.results.Caveat.CONFOUNDING in result.not_covered``.
    details : dict of str to float or str
        Further public or released numbers, such as ``"rows"``.
    diagnostics : dict of str to list
        Tables such as ``"balance"`` and ``"overlap"`` where they are public; else empty.
    interval_target : Target, WeightedContrast, LearnersAnswer, AtSites or None
        What intervals are for where they are not for the effect; None where they are.
    condition : NotAdjusted, AtSites or None
        Declared bound on confounding under which an unadjusted interval covers.
    assumptions : FoldModels, LinearScores, LinearIn, KnownScore, AtSites or None
        Models that must be right for intervals to cover; None where they need none.
    population : KeptPeople, KeptByTrim, AtSites or None
        Whom ``trim`` kept; None for everyone.
    repeat : Repeat or None
        Study, call and command that ask the same again, for reports. Not stored.
    by_arm : dict or None
        Table 1 of public covariates by arm, for reports. Not stored.
    """

    _DERIVED: ClassVar[tuple[str, ...]] = ("rows", "left_out")

    answers: tuple[PooledAnswer, ...]
    rows: tuple[PooledRow, ...]
    estimand: Estimand = Estimand.ATE
    left_out: tuple[str, ...] = ()
    weight_limits: WeightLimits | None = None

    @property
    def table(self) -> tuple[Effect, ...]:
        """Pooled effects, in the order of the first site's answer."""
        return tuple(row.effect for row in self.rows)

    def average(self, of: Callable[[Any], Effect]) -> PooledAverage:
        """Return the average of any number of the sites' answers; it spends nothing.

        Parameters
        ----------
        of : callable
            Takes a site's answer and returns an `Effect`, such as ``lambda site: site.hazard_ratio()``.

        Returns
        -------
        PooledAverage
            The average, with its error. It is one of many that could be asked for: its interval is for this
            number alone.
        """
        effects = [(site.name, of(site.result)) for site in self.answers]
        sizes = sizes_of([(site.name, site.result) for site in self.answers])
        pooling = _RowPooling(method=self.method, level=self.level, bounds=self.weight_limits)
        row = pooling.row(str(effects[0][1].name), [(name, effect.known) for name, effect in effects], sizes)
        return PooledAverage(row.effect.name, row.effect.known, self.level, pooled=row)

    @property
    def _compared(self) -> Sequence[Effect]:
        return [effect for effect in self.table if isinstance(effect.known, Linear)]

    def _columns(self) -> list[dict[str, Any]]:
        return [
            {"effect": row.effect.name, "sites": len(row.weights), "estimand": self.estimand.value}
            | differing_columns(row.heterogeneity, row.prediction_interval())
            for row in self.rows
        ]

    def _shown(self) -> dict[str, Any]:
        return {
            "sentence": f"{self.estimand.sentence}; averages over {len(self.answers)} sites",
            "effects": [row.facts() for row in self.rows],
            "notes": [*self._notes()],
        }

    def _notes(self) -> Iterator[tuple[str, str]]:
        yield "Average", f"{METHOD_TEXTS[self.method]}, row by row; intervals for all rows are Bonferroni's"
        if isinstance(self.answers[0].result, SurvivalResult):
            ratio = self.average(lambda site: site.hazard_ratio())
            yield "Hazard ratio", f"{figure_words(figure_of(ratio))}; {_row_words(ratio.pooled)}"
        for row in self.rows:
            yield str(row.effect.name), _row_words(row)
        if self.left_out:
            yield "Left out", f"{'; '.join(self.left_out)}: of one site alone"

    def report_facts(self) -> dict[str, Any]:
        """Return what reports and pictures show: the facts of `to_dict`, and how sites are weighted.

        Returns
        -------
        dict
            Facts by name; numbers may be infinite.
        """
        return self.to_dict() | {"method": METHOD_TEXTS[self.method]}

    @classmethod
    def from_dict(cls, facts: dict[str, Any]) -> Self:
        """Return what `to_dict` wrote, pooled again from the sites' answers in it.

        Parameters
        ----------
        facts : dict
            Facts of a pooled table of this version of the format.

        Returns
        -------
        PooledTable
            Equal to the one that was written.

        Raises
        ------
        CounterveilError
            Facts of another kind or version, or facts that do not fit together: CV-P661.
        """
        with refusing(cls):
            for site in facts["answers"]:
                result = site["result"]
                check_document(result | {"kind": result["is"]})
        return read(cls, facts)

    @classmethod
    def _made(
        cls,
        method: str,
        level: float,
        answers: tuple[PooledAnswer, ...],
        weight_limits: WeightLimits | None,
        **_: Any,
    ) -> PooledTable:
        sites = named({site.name: site.result for site in answers}, read_answer)
        check_agreement(sites)
        return pooled_table(sites, method, level, weight_limits)


def pooled_table(
    sites: list[tuple[str, Any]], method: str, level: float, bounds: WeightLimits | None
) -> PooledTable:
    """Return the tables of several sites as one: rows that two sites have, each averaged over these."""
    figures = {site: {figure.name: figure for figure in result._site_figures()} for site, result in sites}
    names = list(dict.fromkeys(name for of_site in figures.values() for name in of_site))
    sites_with = {name: [site for site, of_site in figures.items() if name in of_site] for name in names}
    shared = [name for name in names if len(sites_with[name]) > 1]
    if not shared:
        raise no_result(sites[1][0], "no effect that another site has")
    first = sites[0][1]
    people = dict(zip(figures, sizes_of(sites), strict=True))
    measure = getattr(first, "measure", DIFFERENCE)
    pooling = _RowPooling(method=method, level=level, bounds=bounds, several=len(shared), measure=measure)
    rows = []
    for name in shared:
        of_sites = [(site, figures[site][name]) for site in sites_with[name]]
        # By the people behind the number where these are public, else by those of the site.
        sizes = [
            people[site] if figure.size is None else max(float(figure.size), 1.0) for site, figure in of_sites
        ]
        rows.append(pooling.row(name, [(site, figure.numbers) for site, figure in of_sites], np.array(sizes)))
    weighed = {site for row in rows for site, weight in row.weights.items() if weight > 0}
    scale = {} if pooling.measure == DIFFERENCE else {"measure": MEASURE_NAMES[pooling.measure]}
    return PooledTable(
        answers=tuple(PooledAnswer(name, result) for name, result in sites),
        rows=tuple(rows),
        left_out=tuple(name for name in names if name not in shared),
        weight_limits=bounds,
        estimand=getattr(first, "estimand", Estimand.ATE),
        level=level,
        **shared_provenance(sites, method),
        not_covered=pooled_caveats(sites, [name for name, _ in sites if name not in weighed]),
        details=shared_details(people.values(), scale),
        **pooled_opening([(name, result) for name, result in sites if name in weighed]),
    )
