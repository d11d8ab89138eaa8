"""Answers pooled of a measure of both arms' means: ratios, odds ratios, lifts, numbers needed to treat.

With m_1j and m_0j the released means of the arms of site j and public weights w_j, the measure is that of the
averages m_a = sum_j w_j m_aj, such as m_1 / m_0: no ratio of a site is averaged, so that sites with rare
outcomes bias nothing. For random effects it is the mean of the sites' logarithms instead, whose spread says
how far sites differ. Means are in units of the outcome; nothing is spent.

In: released means of both arms of each site with their errors. Out: the measure of the averages with its
error (`inference/pooled_means.py`). All of it is post-processing of released numbers. Proof:
`inference/pooling.proof.md`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar, cast

from counterveil.errors import refusal
from counterveil.inference.arm_means import IndependentArmMeans, JointArmMeans
from counterveil.inference.heterogeneity import Heterogeneity, heterogeneity
from counterveil.inference.pooled_means import PooledMeans
from counterveil.inference.quotient import DIFFERENCE, LIFT, RATIO
from counterveil.numerics.arrays import Ends, Floats
from counterveil.questions.pooling.agreement import (
    Named,
    check_agreement,
    pooled_caveats,
    pooled_opening,
    shared_provenance,
    sizes_of,
)
from counterveil.questions.pooling.averages import of_random, pooled_number, prediction_ends
from counterveil.questions.pooling.comparison import compared, differing_intervals
from counterveil.questions.pooling.frames import columns_of_sites, with_differing
from counterveil.questions.pooling.known import PooledEffect, PooledKnown
from counterveil.questions.pooling.reading import of_means
from counterveil.report.measure_words import averaging_words, measure_noun, replaced_means_words
from counterveil.report.pooling import METHODS, SITES_LIKE_THESE, differing_words, held_words, one_more_words
from counterveil.results.effect import Effect, check_level, effect_rows
from counterveil.results.figures import interval_facts
from counterveil.results.measures import OF_MEANS, check_measure, known_as, refuse_range
from counterveil.results.result import MeasureResult
from counterveil.settings import WeightLimits


@dataclass(frozen=True, slots=True)
class MeasuredSite:
    """One site's part in an average of measures.

    Attributes
    ----------
    name : str
        Name of the site.
    weight : float
        Weight in the average, in [0, 1].
    rows : int
        Number of rows, public.
    result : MeasureResult
        Its released result.
    """

    name: str
    weight: float
    rows: int
    result: MeasureResult


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class PooledMeasure(MeasureResult):
    """A ratio, an odds ratio or a lift over several sites: what `counterveil.pool` returns for such results.

    Nothing in it is private any more, and nothing that its methods do spends budget.

    Attributes
    ----------
    sites : tuple of MeasuredSite
        The sites, with their weights.
    heterogeneity : Heterogeneity
        How far the sites' logarithms differ beyond chance; of differences and numbers needed to treat, the
        differences.
    random : PooledKnown or None
        Mean of the sites' logarithms, for random effects.
    weight_limits : WeightLimits or None
        Limits on weights that were asked for.
    measure : {"difference", "ratio", "lift", "odds_ratio", "nnt"}
        Scale of the estimate.
    numbers : PooledMeans
        Averages of both arms' means, of which the estimate is made; for random effects those of the sites in
        it.
    estimate : float
        The measure of the averaged means; for random effects that of the mean logarithm.
    uncertainty : Uncertainty
        Error by the delta method, for standard errors; intervals are not computed from it.
    independent_variance : bool
        Whether the variance shares no noise with the estimate.
    estimand : Estimand
        Population over which means are averaged.
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

    _DERIVED: ClassVar[tuple[str, ...]] = ("estimate", "uncertainty", "numbers", "heterogeneity", "random")

    sites: tuple[MeasuredSite, ...]
    heterogeneity: Heterogeneity
    random: PooledKnown | None = None
    weight_limits: WeightLimits | None = None

    @classmethod
    def _made(  # type: ignore[override]
        cls,
        measure: str,
        method: str,
        level: float,
        sites: tuple[MeasuredSite, ...],
        weight_limits: WeightLimits | None,
        **_: Any,
    ) -> PooledMeasure:
        named: Named = [(site.name, of_means(site.result, site.name, measures=True)) for site in sites]
        check_agreement(named)
        if any(site.result.measure != measure for site in sites):
            raise ValueError("sites of another measure")
        return pool_measures(named, sizes_of(named), method, level=check_level(level), bounds=weight_limits)

    @property
    def effect(self) -> Effect:
        """The measure over all sites with its error, differences between sites included."""
        if self.random is None:
            return super(PooledMeasure, self).effect
        return PooledEffect(self._effect_name, of_random(self.measure, self.random), self.level)

    @property
    def difference(self) -> Effect:
        """Average difference of both arms with its error, in units of the outcome."""
        if self.random is None:
            return super(PooledMeasure, self).difference
        return self.effect if self.measure == DIFFERENCE else self.as_measure(DIFFERENCE).effect

    @property
    def _risk_ratio(self) -> Effect | None:
        return self.effect if self.measure == RATIO else self.as_measure(RATIO).effect

    def as_measure(self, measure: str) -> PooledMeasure:
        """Return another measure of the same sites, pooled in the same way; it spends nothing.

        Parameters
        ----------
        measure : {"difference", "ratio", "lift", "odds_ratio", "nnt"}
            Scale: difference of means m1 - m0, ratio m1 / m0, lift m1 / m0 - 1, odds ratio
            m1 (1 - m0) / (m0 (1 - m1)), or number needed to treat 1 / (m1 - m0).

        Returns
        -------
        PooledMeasure
            The same releases on that scale.

        Raises
        ------
        CounterveilError
            An unknown measure: CV-P685. Outcomes that have no such measure: CV-P686.
        """
        assert self.means is not None
        refuse_range(check_measure(measure), self.means.range)
        sites: Any = [(site.name, site.result.as_measure(measure)) for site in self.sites]
        return pool_measures(sites, sizes_of(sites), self.method, level=self.level, bounds=self.weight_limits)

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
        return differing_intervals(*compared(self._means_of_sites, self.measure), chosen)

    def prediction_interval(self, level: float | None = None) -> Ends:
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
        if self.random is None:
            raise refusal("CV-P507", method=self.method)
        return prediction_ends(self.measure, self.random, self.level if level is None else check_level(level))

    @property
    def table(self) -> tuple[Effect, ...]:
        """The measure of every site, at the level of the average, and that of all."""
        rows = [
            Effect(site.name, known_as(self.measure, site.result.numbers), self.level) for site in self.sites
        ]
        return (*rows, replace(self.effect, name="pooled"))

    @property
    def _means_of_sites(self) -> list[IndependentArmMeans | JointArmMeans]:
        return [_means(site.result) for site in self.sites]

    def _columns(self) -> list[dict[str, Any]]:
        scale = {"estimand": self.estimand.value, "measure": self.measure}
        return columns_of_sites([(site.name, site.weight) for site in self.sites], scale)

    def _rows(self) -> list[dict[str, Any]]:
        """Return a dictionary for each site (`type` is "study") and one for all ("summary")."""
        sources = [*(site.result._source() for site in self.sites), self._source()]
        prediction = None if self.random is None else self.prediction_interval()
        with_sites = effect_rows(self.treatment, self._columns(), self.table, sources)
        return with_differing(with_sites, self.heterogeneity, prediction)

    def _shown(self) -> dict[str, Any]:
        *sites, pooled = (effect.facts() for effect in self.table)
        rows = [facts | {"weight": site.weight} for facts, site in zip(sites, self.sites, strict=True)]
        shown = MeasureResult._shown(self) | {
            "effects": [*rows, pooled | {"weight": 1.0, "summary": True}],
            "heterogeneity": self.heterogeneity.to_dict(),
        }
        if self.random is not None:
            shown["prediction"] = interval_facts(self.level, self.prediction_interval())
        return shown

    def report_facts(self) -> dict[str, Any]:
        """Return what reports and pictures show: a row for every site and one for all.

        Returns
        -------
        dict
            Facts by name; numbers may be infinite.
        """
        return MeasureResult.report_facts(self) | {
            "effects": self._shown()["effects"],
            "method": METHODS[self.method],
        }

    def _notes(self) -> list[tuple[str, str]]:
        notes = MeasureResult._notes(self)
        in_average = [(site.name, _means(site.result)) for site in self.sites if site.weight > 0]
        notes[:0] = [("Estimate", text) for text in replaced_means_words(self.measure, in_average)]
        differ = self.heterogeneity
        ends = self.heterogeneity_interval()["tau"]
        effect = self.difference if differ.scale == DIFFERENCE else self.effect
        # A ratio's error on the scale of logarithms; a lift is a ratio less 1.
        unit = 1.0 if differ.scale == DIFFERENCE else effect.estimate + (self.measure == LIFT)
        error = effect.std_error.total / unit
        notes.append(("Heterogeneity", differing_words(differ, ends, differ.scale, error)))
        if self.random is not None:
            if self.weight_limits is not None:
                notes.append(("Weights", held_words(self.weight_limits)))
            assert self.means is not None
            noun = measure_noun(self.measure, self.means.range) if self.measure in OF_MEANS else DIFFERENCE
            shown_as = self.effect if self.measure in OF_MEANS else self.difference
            notes.append(
                (
                    "One more site",
                    one_more_words(
                        noun, self.prediction_interval(), error=shown_as.std_error.total, level=shown_as.level
                    ),
                )
            )
        return notes

    def _sentence(self) -> str:
        if self.random is not None:
            mean = "geometric mean" if self.measure in OF_MEANS else "mean"
            return f"{self._sentence_in('sites')}; {mean} over {SITES_LIKE_THESE}"
        assert isinstance(self.means, PooledMeans)
        names = [name for name, *_ in self.means.weighed]
        limited = "site_weight_limit" in self.details
        return f"{self._sentence_in('sites')}; {averaging_words(names, limited=limited)}"


def pool_measures(
    sites: Named, sizes: Floats, method: str, level: float, bounds: WeightLimits | None
) -> PooledMeasure:
    """Return the measure of several sites; `sites` are all results of a measure with the means of both arms."""
    means = [(name, _means(result)) for name, result in sites]
    first = sites[0][1]
    assert isinstance(first, MeasureResult)
    pooled = pooled_number(means, sizes, method=method, bounds=bounds, measure=first.measure)
    weights = pooled.weights
    averages = pooled.means
    assert averages is not None
    in_average = [index for index, weight in enumerate(weights) if weight > 0]
    facts: dict[str, float | str] = {"rows": int(sizes.sum()), "sites": len(sites)}
    facts |= {"mean_treated": averages.values[0], "mean_control": averages.values[1]}
    if bounds is not None:
        facts["site_weight_limit"] = bounds.max_weight
    weight_facts = {f"weight_{name}": float(weight) for (name, _), weight in zip(sites, weights, strict=True)}
    return PooledMeasure._of_known(
        pooled.known,
        measure=first.measure,
        numbers=averages,
        random=pooled.random,
        sites=tuple(
            MeasuredSite(name, float(weight), int(size), cast("MeasureResult", result))
            for (name, result), weight, size in zip(sites, weights, sizes, strict=True)
        ),
        heterogeneity=heterogeneity(
            *compared([site_means for _, site_means in means], first.measure), pooled.scale
        ),
        weight_limits=bounds,
        **shared_provenance(sites, method),
        level=level,
        estimand=first.estimand,
        not_covered=pooled_caveats(
            sites, [name for index, (name, _) in enumerate(sites) if index not in in_average]
        ),
        details=facts | weight_facts,
        diagnostics={},
        **pooled_opening([sites[index] for index in in_average]),
    )


def _means(result: object) -> IndependentArmMeans | JointArmMeans:
    assert isinstance(result, MeasureResult)
    assert isinstance(result.means, IndependentArmMeans | JointArmMeans)
    return result.means
