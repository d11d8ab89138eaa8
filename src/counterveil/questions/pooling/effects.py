"""Answers pooled of one effect of several sites, and numbers needed to treat made of them.

In come results of sites (`Result`), out comes a `PooledResult`: the average with its error (`averages`), the
weights, how far sites differ, and the weakest of the sites' guarantees. Effects are differences in units of
the outcome, treated minus control; a number needed to treat is one over their average. Nothing is spent: all
is computed from released numbers.

The average is sum_j w_j e_j of the sites' effects e_j, with weights w_j that add up to one and the variance
sum_j w_j^2 (sampling + noise of site j), as sites hold different people. Proof: `inference/pooling.proof.md`,
for random effects `inference/random_effects.proof.md`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self, cast

import numpy as np

from counterveil.errors import refusal
from counterveil.inference.estimates import symmetric_interval
from counterveil.inference.heterogeneity import Heterogeneity, heterogeneity
from counterveil.inference.pooled_uncertainty import PooledUncertainty
from counterveil.inference.quotient import DIFFERENCE, NEEDED
from counterveil.inference.site_weights import released_variance
from counterveil.numerics.arrays import Ends
from counterveil.questions.choices import repeat_of_pool
from counterveil.questions.pooling.agreement import (
    Named,
    check_agreement,
    pooled_caveats,
    pooled_opening,
    shared_details,
    shared_provenance,
    sizes_of,
)
from counterveil.questions.pooling.averages import check_method, pooled_number
from counterveil.questions.pooling.comparison import compared_known, differing_intervals
from counterveil.questions.pooling.documents import check_document
from counterveil.questions.pooling.frames import columns_of_sites, with_differing
from counterveil.questions.pooling.reading import Sources, read_sites
from counterveil.report.pooling import (
    AVERAGE_OF_SITES,
    MEAN_OF_SITES,
    METHOD_TEXTS,
    differing_words,
    held_words,
    one_more_words,
)
from counterveil.results.effect import Effect, Linear, check_level, effect_rows, read, refusing
from counterveil.results.figures import interval_facts
from counterveil.results.measures import NumberNeededToTreat, refuse_of_difference
from counterveil.results.result import MeasureResult, OneEffect, Result, measure_terms
from counterveil.settings import WeightLimits


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class PooledNumberNeededToTreat(MeasureResult):
    """The number needed to treat of an average of differences over sites.

    Nothing in it is private any more, and nothing that its methods do spends budget.

    Attributes
    ----------
    pooled : PooledResult
        The average of the differences, with its sites.
    measure : {"nnt"}
        Scale of the estimate.
    numbers : Linear
        The average of the differences.
    estimate : float
        One over that average; negative for one outcome fewer.
    uncertainty : Uncertainty
        Error by the delta method, for standard errors; intervals are not computed from it.
    independent_variance : bool
        Whether the variance shares no noise with the estimate.
    estimand : Estimand
        Population over which effects are averaged.
    limits : tuple of (float, float) or None
        What the difference can be at all.
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

    _DERIVED: ClassVar[tuple[str, ...]] = ("estimate", "uncertainty", "numbers", "site_sources")

    pooled: PooledResult

    @classmethod
    def _made(cls, pooled: PooledResult, **_: Any) -> PooledNumberNeededToTreat:  # type: ignore[override]
        return number_needed_to_treat_of(pooled)

    @property
    def table(self) -> tuple[Effect, ...]:
        """The number of every site, and that of the average."""
        return tuple(
            replace(effect, known=NumberNeededToTreat(_linear(effect))) for effect in self.pooled.table
        )

    def as_measure(self, measure: str) -> OneEffect:
        """Return the average of the differences, or the result itself; it spends nothing.

        Parameters
        ----------
        measure : {"difference", "nnt"}
            Scale of the estimate. Ratios need the means of both arms.

        Returns
        -------
        PooledResult or PooledNumberNeededToTreat
            The same releases on that scale.

        Raises
        ------
        CounterveilError
            An unknown measure: CV-P685. A measure of both means: CV-P687.
        """
        refuse_of_difference(self.method, self.limits, measure)
        return self.pooled if measure == DIFFERENCE else self

    def _rows(self) -> list[dict[str, Any]]:
        """Return a dictionary for each site (`type` is "study") and one for the average ("summary")."""
        rows = zip(self.pooled._rows(), self.table, strict=True)
        return [row | effect.row() | {"measure": NEEDED} for row, effect in rows]

    def _sentence(self) -> str:
        return f"{self._sentence_in('sites')}; differences are averaged over sites with the weights shown"

    def _shown(self) -> dict[str, Any]:
        shown = self.pooled._shown()
        between_sites = {name: shown[name] for name in ("heterogeneity", "prediction") if name in shown}
        return MeasureResult._shown(self) | between_sites

    def report_facts(self) -> dict[str, Any]:
        """Return what reports and pictures show: a row for every site and one for all.

        Returns
        -------
        dict
            Facts by name; numbers may be infinite.
        """

        facts = MeasureResult.report_facts(self)
        average = self.pooled.to_dict()
        shown = zip(average["effects"], self.table, strict=True)
        of_weights = ("weight", "summary")
        rows = [
            effect.facts() | {name: row[name] for name in of_weights if name in row} for row, effect in shown
        ]
        return facts | {
            "sites": average["sites"],
            "effects": rows,
            # Sites are compared, and the next one is predicted, on the scale of the difference.
            "notes": [*facts["notes"], *pooled_notes(self.pooled, "difference")],
        }


def number_needed_to_treat_of(pooled: PooledResult) -> PooledNumberNeededToTreat:
    """Return the number needed to treat of an average of differences, with the weights of the sites."""
    terms = measure_terms(pooled)
    terms["method"] = f"differences, pooled: {METHOD_TEXTS[pooled.method]}"
    weights = {f"weight_{row['site']}": row["weight"] for row in pooled._columns() if row["type"] == "study"}
    terms["details"] = pooled.details | weights
    return PooledNumberNeededToTreat.of(NEEDED, _linear(pooled.effect), pooled=pooled, **terms)


def _linear(effect: Effect) -> Linear:
    assert isinstance(effect.known, Linear)
    return effect.known


def pooled_notes(pooled: PooledResult, noun: str = "effect") -> list[tuple[str, str]]:
    """Return how sites differ, how they are weighed and what one more would have; their numbers are called `noun`."""
    tau = pooled.heterogeneity_interval()["tau"]
    differ = differing_words(pooled.heterogeneity, tau, noun, pooled.std_error.total)
    average = MEAN_OF_SITES if pooled.method == "random_effects" else AVERAGE_OF_SITES
    notes = [("Average", average), ("Heterogeneity", differ)]
    if pooled.weight_limits is not None:
        notes.append(("Weights", held_words(pooled.weight_limits)))
    if pooled.uncertainty.between_sites is not None:
        notes.append(
            (
                "One more site",
                one_more_words(
                    noun, pooled.prediction_interval(), error=pooled.std_error.total, level=pooled.level
                ),
            )
        )
    return notes


@dataclass(frozen=True, slots=True)
class PooledSite:
    """One site's part in an average of effects.

    Attributes
    ----------
    name : str
        Name of the site.
    weight : float
        Weight in the average, in [0, 1].
    rows : int
        Number of rows, public.
    result : Result
        Its released result.
    """

    name: str
    weight: float
    rows: int
    result: Result


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class PooledResult(OneEffect):
    """A weighted average of released effects: what `counterveil.pool` returns.

    Nothing in it is private any more, and nothing that its methods do spends budget.

    Attributes
    ----------
    sites : tuple of PooledSite
        The sites, with their weights.
    heterogeneity : Heterogeneity
        How far the sites' effects differ beyond chance.
    weight_limits : WeightLimits or None
        Limits on weights that were asked for.
    estimate : float
        Average effect in units of the outcome, treated minus control, truncated to `limits`.
    uncertainty : PooledUncertainty
        Sampling errors, privacy noise and, for random effects, differences between sites.
    estimand : Estimand
        Population over which effects are averaged.
    limits : tuple of (float, float) or None
        What the effect can be at all.
    method : {"mvagg", "ivw", "all", "largest", "random_effects"}
        How sites are weighted.
    treatment, outcome : str
        Columns of the study.
    level : float
        Default confidence level of intervals, in (0, 1).
    guarantee : Guarantee
        What is protected, how strongly, and where that is proved.
    spent : Budget
        The most that any one person's data have spent; pooling itself spends nothing.
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

    Notes
    -----
    The estimate is the sum of w_i b_i over sites; its error is that of the sum of w_i times sampling error and
    noise of site i, which are independent.

    Examples
    --------
    >>> import counterveil as cv
    >>> trial = cv.datasets.lalonde()
    >>> ask = {"protects": "outcome", "epsilon": 1, "method": "difference_in_means"}
    >>> sites = {}
    >>> for start, name in enumerate(["first", "second"]):
    ...     rows = {column: values[start::2] for column, values in trial.frame.items()}
    ...     sites[name] = cv.ate(rows, trial.study, **ask, noise=cv.SeededNoise(start))
    >>> pooled = cv.pool(sites)
    >>> [site.name for site in pooled.sites], round(sum(site.weight for site in pooled.sites), 6)
    (['first', 'second'], 1.0)
    >>> pooled.heterogeneity.df
    1
    """

    _DERIVED: ClassVar[tuple[str, ...]] = ("estimate", "uncertainty", "heterogeneity", "limits")

    uncertainty: PooledUncertainty
    sites: tuple[PooledSite, ...]
    heterogeneity: Heterogeneity
    weight_limits: WeightLimits | None = None

    def as_measure(self, measure: str) -> OneEffect:
        """Return the average itself, or for "nnt" the number needed to treat; it spends nothing.

        Parameters
        ----------
        measure : {"difference", "nnt"}
            Scale of the estimate. Ratios need the means of both arms.

        Returns
        -------
        PooledResult or PooledNumberNeededToTreat
            The same releases on that scale.

        Raises
        ------
        CounterveilError
            An unknown measure: CV-P685. Outcomes that have no such measure: CV-P686. A measure of both means:
            CV-P687.
        """
        refuse_of_difference(self.method, self.limits, measure)
        return number_needed_to_treat_of(self) if measure == NEEDED else self

    def prediction_interval(self, level: float | None = None) -> tuple[float, float]:
        """Return the two ends of an interval for one more site like these.

        Parameters
        ----------
        level : float, optional
            Confidence level, in (0, 1). Default: that of the result.

        Returns
        -------
        tuple of (float, float)
            Lower and upper end, in units of the effect.

        Raises
        ------
        CounterveilError
            Weights other than those of random effects: CV-P507. A level outside (0, 1): CV-P015.
        """
        half = self.uncertainty.prediction_half_width(self.level if level is None else check_level(level))
        if half is None:
            raise refusal("CV-P507", method=self.method)
        return symmetric_interval(self.estimate, half)

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
        chosen = self.level if level is None else check_level(level)
        estimates = np.array([site.result.estimate for site in self.sites])
        variances = np.array([released_variance(site.result.uncertainty) for site in self.sites])
        return differing_intervals(estimates, variances, chosen)

    @property
    def table(self) -> tuple[Effect, ...]:
        """Effect of every site, at the level of the average, and the average."""
        effects = [replace(site.result.effect, name=site.name, level=self.level) for site in self.sites]
        return (*effects, replace(self.effect, name="pooled"))

    def _columns(self) -> list[dict[str, Any]]:
        estimand = {"estimand": self.estimand.value}
        return columns_of_sites([(site.name, site.weight) for site in self.sites], estimand)

    def _rows(self) -> list[dict[str, Any]]:
        """Return a dictionary for each site (`type` is "study") and one for the average ("summary")."""
        sources = [*(site.result._source() for site in self.sites), self._source()]
        with_sites = effect_rows(self.treatment, self._columns(), self.table, sources)
        prediction = None if self.uncertainty.between_sites is None else self.prediction_interval()
        return with_differing(with_sites, self.heterogeneity, prediction)

    def _shown(self) -> dict[str, Any]:
        weights = [*(site.weight for site in self.sites), 1.0]
        rows = [
            effect.facts() | {"weight": weight} for effect, weight in zip(self.table, weights, strict=True)
        ]
        facts = OneEffect._shown(self) | {
            "effects": [*rows[:-1], rows[-1] | {"summary": True}],
            "heterogeneity": self.heterogeneity.to_dict(),
        }
        if self.uncertainty.between_sites is not None:
            facts["prediction"] = interval_facts(self.level, self.prediction_interval())
        return facts

    @classmethod
    def from_dict(cls, facts: dict[str, Any]) -> Self:
        """Return the result that `to_dict` wrote, pooled again from the sites' results in it.

        Parameters
        ----------
        facts : dict
            Facts of a pooled result of this version of the format.

        Returns
        -------
        PooledResult
            Equal to the one that was written.

        Raises
        ------
        CounterveilError
            Facts of another kind or version, or facts that do not fit together: CV-P661.
        """
        with refusing(cls):
            for site in facts["sites"]:
                check_document(site["result"])
        return read(cls, facts)

    @classmethod
    def _made(
        cls,
        method: str,
        level: float,
        sites: tuple[PooledSite, ...],
        weight_limits: WeightLimits | None,
        **_: Any,
    ) -> PooledResult:
        results = {site.name: site.result for site in sites}
        return pool_effects(results, method=method, level=level, weight_limits=weight_limits)

    def report_facts(self) -> dict[str, Any]:
        """Return what reports show: the facts of `to_dict`, and how sites are weighted and differ.

        Returns
        -------
        dict
            Facts by name; numbers may be infinite.
        """
        facts = self.to_dict()
        return facts | {"method": METHOD_TEXTS[self.method], "notes": pooled_notes(self)}


def pool_effects(
    results: Sources, *, method: str, level: float, weight_limits: WeightLimits | None
) -> PooledResult:
    """Return the same for differences alone; other measures are refused."""
    level = check_level(level)
    check_method(method)
    return average_of_results(read_sites(results), method, level, weight_limits)


def average_of_results(
    sites: Named, method: str, level: float, weight_limits: WeightLimits | None
) -> PooledResult:
    """Return the average of results that answer one question, with the call that repeats it."""
    check_agreement(sites)
    pooled = pooled_result(sites, method, level, weight_limits)
    repeat = repeat_of_pool([name for name, _ in sites], method, level)
    return pooled if weight_limits is not None else replace(pooled, repeat=repeat)


def pooled_result(sites: Named, method: str, level: float, bounds: WeightLimits | None) -> PooledResult:
    """Return the average of results, with weights by `method`; none is above its bound."""
    sizes = sizes_of(sites)
    rows = [(name, Linear(result.estimate, result.uncertainty, result.limits)) for name, result in sites]
    independent = all(result.independent_variance for _, result in sites)
    pooled = pooled_number(rows, sizes, method=method, bounds=bounds, independent=independent)
    average: Linear = pooled.known
    weighed = list(zip(sites, pooled.weights, strict=True))
    return PooledResult(
        estimate=average.estimate,
        uncertainty=cast("PooledUncertainty", average.uncertainty),
        sites=tuple(
            PooledSite(name, float(weight), int(size), result)
            for (name, result), weight, size in zip(sites, pooled.weights, sizes, strict=True)
        ),
        heterogeneity=heterogeneity(*compared_known([estimate for _, estimate in rows]), pooled.scale),
        **shared_provenance(sites, method),
        estimand=sites[0][1].estimand,
        level=level,
        details=shared_details(sizes, {}),
        not_covered=pooled_caveats(sites, [name for (name, _), weight in weighed if weight == 0]),
        limits=average.limits,
        weight_limits=bounds,
        **pooled_opening([site for site, weight in weighed if weight > 0]),
    )
