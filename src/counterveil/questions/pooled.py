"""Pooled effects of several sites: `pool(...)`.

Ratios, odds ratios and lifts over several sites, from the means of their arms, and numbers needed to treat.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from math import exp, hypot, inf, isfinite, log, sqrt
from os import PathLike
from pathlib import Path
from typing import Any, ClassVar, Self, TypeAlias, TypeVar, cast

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from counterveil.bounded_reading import (
    LARGEST,
    Fields,
    UnreadableError,
    check_values,
    parse_message,
    rational,
    read_text,
)
from counterveil.errors import CounterveilError, ParameterError, refusal, shown
from counterveil.inference.arm_means import IndependentArmMeans, JointArmMeans
from counterveil.inference.clusters import ClusterUncertainty
from counterveil.inference.convolution import half_width
from counterveil.inference.estimates import Known, OwnScale, Transformed, symmetric_interval, truncate
from counterveil.inference.moments import LinearFit, NoisyMoments, SummedMoments
from counterveil.inference.noisy_ratio import NoisyRatio, RatioDifference
from counterveil.inference.p_values import p_value
from counterveil.inference.pooling import (
    POOLING_METHODS,
    ErrorBetweenSites,
    Heterogeneity,
    PooledMeans,
    PooledUncertainty,
    held_weights,
    heterogeneity,
    i_squared_of,
    noise_sds_of_variances,
    noise_variance,
    other_variance,
    paule_mandel,
    pooling_weights,
    released_variance,
    steadied_variances,
    tau_squared_interval,
)
from counterveil.inference.quotient import DIFFERENCE, LIFT, NEEDED, ODDS, RATIO
from counterveil.inference.survival.areas import Area
from counterveil.inference.survival.probabilities import Gap
from counterveil.inference.uncertainty import Uncertainty
from counterveil.numerics.arrays import Ends, Floats
from counterveil.privacy import Budget, Estimand, Guarantee, Proof, Protected, show
from counterveil.privacy.caveats import OPENING, AtSites, Fact, SitesLeftOut
from counterveil.questions.asking import refuses_unknown
from counterveil.questions.choices import PoolMethod, repeat_of_pool
from counterveil.report.measure_words import (
    MEASURE_NAMES,
    averaging_words,
    measure_noun,
    replaced_means_words,
)
from counterveil.report.survival_words import figure_words
from counterveil.report.text import probability, rounded
from counterveil.results.arms import ArmsResult, OutcomesResult
from counterveil.results.effect import (
    ByName,
    Effect,
    Linear,
    StdError,
    check_level,
    effect_rows,
    kind_of,
    read,
    refusing,
)
from counterveil.results.figures import interval_facts
from counterveil.results.groups import GroupsResult, RatioResult
from counterveil.results.measures import (
    OF_MEANS,
    Measured,
    NumberNeededToTreat,
    check_measure,
    difference_of,
    known_as,
    refuse_of_difference,
    refuse_range,
)
from counterveil.results.regression import Formula, Matrix, Moments
from counterveil.results.result import (
    Comparison,
    MeasureResult,
    OneEffect,
    Result,
    difference_result,
    measure_terms,
)
from counterveil.results.survival import SurvivalResult, figure_of
from counterveil.settings import WeightLimits

Named = list[tuple[str, Result]]
# Sites with answers of one kind, whichever it is.
Answers: TypeAlias = Sequence[tuple[str, Any]]
One = TypeVar("One")


def check_agreement(sites: Answers) -> None:
    """Raise unless the results answer one question about different people."""
    if len(sites) < 2:
        raise refusal("CV-P500", sites=len(sites), plural="" if len(sites) == 1 else "s")
    _check_same(sites)
    _check_distinct(sites)


def _question(result: Any) -> dict[str, str]:
    found = {
        "unit of protection": result.guarantee.unit.value,
        "measure": getattr(result, "measure", DIFFERENCE),
        "estimand": getattr(result, "estimand", Estimand.ATE).value,
        "treatment": result.treatment,
        "outcome": result.outcome,
        "population": "everyone"
        if getattr(result, "population", None) is None
        else "trimmed by propensity scores",
    }
    # What the effects of a table, or the columns of moments, are of; groups that are too small may be missing.
    kept = ("by", "reference", "times", "columns")
    found |= {name: str(getattr(result, name)) for name in kept if hasattr(result, name)}
    return found | ({"kind of answer": type(result).__name__} if not isinstance(result, Result) else {})


def _check_same(sites: Answers) -> None:
    first_name, first = sites[0]
    wanted = _question(first)
    for name, result in sites[1:]:
        for word, value in _question(result).items():
            if value != wanted.get(word, "none"):
                first = wanted.get(word, "none")
                raise refusal(
                    "CV-P503", word=word, first_name=first_name, wanted=first, name=name, value=value
                )


def _check_distinct(sites: Answers) -> None:
    seen: dict[tuple[object, ...], str] = {}
    for name, result in sites:
        # Two draws of noise do not agree in every number; the same release sent twice does.
        key = (*released_numbers(result), result.spent)
        if key in seen:
            raise refusal("CV-P504", seen=seen[key], name=name)
        seen[key] = name


def released_numbers(result: Any) -> tuple[float, ...]:
    """Return numbers as the gate released them."""
    if isinstance(result, Moments):
        return tuple(value for row in result.matrix for value in row)
    if isinstance(result, SurvivalResult):
        return tuple(value for block in result.tables.numbers for value in block)
    if not isinstance(result, Result):
        return tuple(number for one in result.table for number in (one.estimate, one.known.sampling_sd))
    if isinstance(result, MeasureResult) and result.means is not None:
        # Ratios of rare outcomes are all zero where noise put the mean of the treated below the range.
        return result.means.values
    known = result.uncertainty
    return result.estimate, known.variance, known.variance_cap


PAGE = "inference/pooling.proof.md"
_DISJOINT = (
    "which site each person is in, and that nobody is in two: the sites must ensure this, it is not checked"
)
# From the best to the worst: a pooled result is as well proved as its worst part.
_ORDER = (Proof.FINITE_SAMPLE, Proof.ASYMPTOTIC, Proof.REFUTED, Proof.NONE)


def pooled_guarantee(sites: Answers) -> Guarantee:
    """Return what is guaranteed to everyone in any of the sites: the weakest of the sites' guarantees."""
    guarantees = [result.guarantee for _, result in sites]
    own = [(name, result.guarantee) for name, result in sites]
    remarks = [f"{name}: {one.warning}" for name, one in own if one.warning is not None]
    remarks += [f"{name}: {remark}" for name, one in own for remark in one.remarks]
    return Guarantee(
        epsilon=max(guarantee.epsilon for guarantee in guarantees),
        delta=max(guarantee.delta for guarantee in guarantees),
        unit=guarantees[0].unit,
        proof=max((guarantee.proof for guarantee in guarantees), key=_ORDER.index),
        public=_union([(_DISJOINT,), *(guarantee.public for guarantee in guarantees)]),
        pages=_union([(PAGE,), *(guarantee.pages for guarantee in guarantees)]),
        remarks=(_each(sites), *remarks),
        whose=min((guarantee.whose for guarantee in guarantees), key=list(Protected).index),
    )


def pooled_spending(sites: Answers) -> Budget:
    """Return the most that anyone's data have spent: sites hold different people, so nothing adds up."""
    return Budget(
        max(result.spent.epsilon for _, result in sites), max(result.spent.delta for _, result in sites)
    )


def _each(sites: Answers) -> str:
    said = [
        f"{name} {show(result.guarantee.epsilon)}"
        + (f" (delta {show(result.guarantee.delta)})" if result.guarantee.delta else "")
        for name, result in sites
    ]
    return (
        f"each person has the epsilon of their own site: {', '.join(said)}; the guarantee names the largest"
    )


def _union(lists: Iterable[Iterable[One]]) -> tuple[One, ...]:
    """Return every one of them once, in the order of first appearance."""
    return tuple(dict.fromkeys(one for each in lists for one in each))


def pooled_caveats(sites: Answers, left_out: list[str]) -> tuple[Fact, ...]:
    """Return what the pooled interval does not cover: what no site's does, and who is not in it."""
    own = _union(result.not_covered for _, result in sites)
    return (*((SitesLeftOut(tuple(left_out)),) if left_out else ()), *own)


def pooled_opening(sites: Answers) -> dict[str, Any]:
    """Return what comes first: what the interval is for, depends on and assumes at any site, and whose it is.

    Each is None where no site says anything, and that of all sites where it is one.
    """
    names = tuple(name for name, _ in sites)
    found: dict[str, Any] = {}
    for role in OPENING:
        said = tuple(getattr(result, role) for _, result in sites)
        # Of a bound and of models it is enough that one site depends on them; the others have nothing to say.
        some = {one for one in said if one is not None} if role in ("condition", "assumptions") else {*said}
        found[role] = next(iter(some), None) if len(some) < 2 else AtSites(names, said)
    return found


# Ways of pooling measures of both arms' means. All but the last average the means, with weights that are public.
METHODS = {
    "mvagg": "means of both arms, pooled by size: the subset of sites of least variance",
    "all": "means of both arms, pooled by size: all sites",
    "largest": "means of both arms of the largest site alone",
    "random_effects": "random effects: equal weights, Student's t over sites; ratios by their logarithms",
}
# The variance of a number that is lost in noise: not infinite, so that all sites together have a weight.
_LOST = 1e150
# A larger logarithm is taken for this one: its ratio is still a double.
_LARGEST_LOGARITHM = 700.0
# What the sites' own numbers are called on the scale on which they are compared.
_SCALES = {RATIO: "log ratio", ODDS: "log odds ratio", LIFT: "log of 1 + lift"}


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
        found: Named = [(site.name, _of_means(site.result, site.name, measures=True)) for site in sites]
        check_agreement(found)
        if any(site.result.measure != measure for site in sites):
            raise ValueError("sites of another measure")
        return pool_measures(found, sizes_of(found), method, check_level(level), weight_limits)

    @property
    def effect(self) -> Effect:
        """The measure over all sites with its error, differences between sites included."""
        if self.random is None:
            return super(PooledMeasure, self).effect
        return PooledEffect(self._effect_name, _of_random(self.measure, self.random), self.level)

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
        return pool_measures(sites, sizes_of(sites), self.method, self.level, self.weight_limits)

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
        return _differing_intervals(*_compared(self._means_of_sites, self.measure), chosen)

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
        return _one_more(self.measure, self.random, self.level if level is None else check_level(level))

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
        own = {"estimand": self.estimand.value, "measure": self.measure}
        return _columns_of_sites([(site.name, site.weight) for site in self.sites], own)

    def _rows(self) -> list[dict[str, Any]]:
        """Return a dictionary for each site (`type` is "study") and one for all ("summary")."""
        sources = [*(site.result._source() for site in self.sites), self._source()]
        prediction = None if self.random is None else self.prediction_interval()
        found = effect_rows(self.treatment, self._columns(), self.table, sources)
        return _with_differing(found, self.heterogeneity, prediction)

    def _shown(self) -> dict[str, Any]:
        *sites, pooled = (effect.facts() for effect in self.table)
        rows = [facts | {"weight": site.weight} for facts, site in zip(sites, self.sites, strict=True)]
        found = MeasureResult._shown(self) | {
            "effects": [*rows, pooled | {"weight": 1.0, "summary": True}],
            "heterogeneity": self.heterogeneity.to_dict(),
        }
        if self.random is not None:
            found["prediction"] = interval_facts(self.level, self.prediction_interval())
        return found

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
        found, ends = self.heterogeneity, self.heterogeneity_interval()["tau"]
        effect = self.difference if found.scale == DIFFERENCE else self.effect
        # A ratio's error on the scale of logarithms; a lift is a ratio less 1.
        unit = 1.0 if found.scale == DIFFERENCE else effect.estimate + (self.measure == LIFT)
        error = effect.std_error.total / unit
        notes.append(("Heterogeneity", differing_words(found, ends, found.scale, error)))
        if self.random is not None:
            if self.weight_limits is not None:
                notes.append(("Weights", _held(self.weight_limits)))
            assert self.means is not None
            noun = measure_noun(self.measure, self.means.range) if self.measure in OF_MEANS else DIFFERENCE
            own = self.effect if self.measure in OF_MEANS else self.difference
            notes.append(("One more site", _one_more_words(noun, self.prediction_interval(), own)))
        return notes

    def _sentence(self) -> str:
        if self.random is not None:
            mean = "geometric mean" if self.measure in OF_MEANS else "mean"
            return f"{self._sentence_in('sites')}; {mean} over {_SITES_LIKE_THESE}"
        assert isinstance(self.means, PooledMeans)
        names = [name for name, *_ in self.means.weighed]
        limited = "site_weight_limit" in self.details
        return f"{self._sentence_in('sites')}; {averaging_words(names, limited=limited)}"


def _columns_of_sites(weights: Sequence[tuple[str, float]], own: dict[str, Any]) -> list[dict[str, Any]]:
    """Return what names the rows of sites and that of all of them in a data frame."""
    rows = [{"site": name, "type": "study", "weight": weight} | own for name, weight in weights]
    return [*rows, {"site": "pooled", "type": "summary", "weight": 1.0} | own]


def differing_columns(found: Heterogeneity, prediction: Ends | None) -> dict[str, Any]:
    """Return how far sites differ as columns of a data frame, under the names of R's `broom` for metafor."""
    low, high = (None, None) if prediction is None else prediction
    return {
        "cochran_qe": found.q,
        "df_cochran_qe": found.df,
        "p_value_cochran_qe": found.p_value,
        "i_squared": found.i_squared,
        "tau_squared": found.tau_squared,
        "heterogeneity_scale": found.scale,
        "prediction_low": low,
        "prediction_high": high,
    }


def _with_differing(
    rows: list[dict[str, Any]], found: Heterogeneity, prediction: Ends | None
) -> list[dict[str, Any]]:
    """Return rows of a data frame with how far sites differ in the last, that of all sites."""
    last = differing_columns(found, prediction)
    return [*(row | dict.fromkeys(last) for row in rows[:-1]), rows[-1] | last]


def _compared(means: Sequence[IndependentArmMeans | JointArmMeans], measure: str) -> tuple[Floats, Floats]:
    """Return what is compared between sites, differences or logarithms of ratios, and its variances."""
    if measure in OF_MEANS:
        logs = _logarithms(means, measure)
        # Of a mean next to zero they are beyond floats.
        with np.errstate(over="ignore"):
            variances = np.array([one.sampling_sd for one in logs]) ** 2
            variances += np.array([one.noise_sd for one in logs]) ** 2
        return np.array([one.estimate for one in logs]), np.nan_to_num(variances, posinf=_LOST)
    differences = [one.values[0] - one.values[1] for one in means]
    return np.array(differences), np.array([one.error_of_difference.total_sd**2 for one in means])


def _of_random(measure: str, random: PooledKnown) -> Known:
    """Return the measure over sites whose own numbers have the mean `random`."""
    if measure in OF_MEANS:
        return PooledRatio(random, 0.0 if measure == LIFT else 1.0)
    return NumberNeededToTreat(random) if measure == NEEDED else random


def _one_more(measure: str, random: PooledKnown, level: float) -> Ends:
    """Return the ends of an interval for the measure at one more site; of numbers needed to treat, the difference."""
    known = _of_random(measure, random)
    return known.one_more(level) if isinstance(known, PooledRatio) else random.one_more(level)


def _logarithms(means: Sequence[IndependentArmMeans | JointArmMeans], measure: str) -> list[_Logarithm]:
    """Return the logarithms of the sites' ratios, or odds ratios; that of 1 + lift is that of the ratio."""
    return [_Logarithm(Measured(one, ODDS if measure == ODDS else RATIO)) for one in means]


def _differing(means: Sequence[IndependentArmMeans | JointArmMeans], measure: str) -> Heterogeneity:
    """Return how far sites differ beyond their errors."""
    return heterogeneity(*_compared(means, measure), _SCALES.get(measure, DIFFERENCE))


def _differing_intervals(estimates: Floats, variances: Floats, level: float) -> dict[str, Ends]:
    """Return intervals for the standard deviation between sites and for I^2."""
    low, high = tau_squared_interval(estimates, variances, level)
    parts = (i_squared_of(low, variances), i_squared_of(high, variances))
    return {"tau": (sqrt(low), sqrt(high)), "i_squared": parts}


def pool_measures(
    sites: Named, sizes: Floats, method: str, level: float, bounds: WeightLimits | None
) -> PooledMeasure:
    """Return the measure of several sites; `sites` are all results of a measure with the means of both arms."""
    means = [(name, _means(result)) for name, result in sites]
    first = sites[0][1]
    assert isinstance(first, MeasureResult)
    if method not in METHODS:
        raise refusal("CV-P508", methods=" or ".join(map(repr, METHODS)), method=method)
    random = None
    if method == "random_effects":
        random, weights = _random_effects(means, first.measure, sizes, bounds)
        pooled = PooledMeans(
            tuple(one for _, one in means), tuple(map(float, weights)), tuple(name for name, _ in sites)
        )
    else:
        pooled, weights = _pooled_means(means, sizes, method, bounds)
    kept = [place for place, weight in enumerate(weights) if weight > 0]
    said: dict[str, float | str] = {"rows": int(sizes.sum()), "sites": len(sites)}
    said |= {"mean_treated": pooled.values[0], "mean_control": pooled.values[1]}
    if bounds is not None:
        said["site_weight_limit"] = bounds.max_weight
    own = {f"weight_{name}": float(weight) for (name, _), weight in zip(sites, weights, strict=True)}
    known = known_as(first.measure, pooled) if random is None else _of_random(first.measure, random)
    return PooledMeasure._of_known(
        known,
        measure=first.measure,
        numbers=pooled,
        random=random,
        sites=tuple(
            MeasuredSite(name, float(weight), int(size), cast("MeasureResult", result))
            for (name, result), weight, size in zip(sites, weights, sizes, strict=True)
        ),
        heterogeneity=_differing([one for _, one in means], first.measure),
        weight_limits=bounds,
        **_provenance(sites, method),
        level=level,
        estimand=first.estimand,
        not_covered=pooled_caveats(
            sites, [name for place, (name, _) in enumerate(sites) if place not in kept]
        ),
        details=said | own,
        diagnostics={},
        **pooled_opening([sites[place] for place in kept]),
    )


def _random_effects(
    sites: Sequence[tuple[str, IndependentArmMeans | JointArmMeans]],
    measure: str,
    sizes: Floats,
    bounds: WeightLimits | None,
) -> tuple[PooledKnown, Floats]:
    """Return the mean of what sites are compared by, with equal weights over those that are not lost in noise.

    Public numbers alone order the sites. Released ones say only how many are taken: by the variance between sites, in
    the unit of public variances, which is right for the median site.
    """
    means = [one for _, one in sites]
    estimates, variances = _compared(means, measure)
    tau_squared, public = paule_mandel(estimates, variances), public_variances(means, sizes)
    unit = float(np.median(variances / public))
    weights = held(sites, public, sizes, "random_effects", bounds, tau_squared / unit)
    between = ErrorBetweenSites.of(estimates[weights > 0])
    known: Sequence[Known] = (
        _logarithms(means, measure) if measure in OF_MEANS else [difference_of(one) for one in means]
    )
    limits = None if measure in OF_MEANS else _limits([cast("Linear", one).limits for one in known])
    return PooledKnown(tuple(known), tuple(map(float, weights)), limits, tau_squared, between), weights


def _pooled_means(
    sites: Sequence[tuple[str, IndependentArmMeans | JointArmMeans]],
    sizes: Floats,
    method: str,
    bounds: WeightLimits | None,
) -> tuple[PooledMeans, Floats]:
    """Return the average of both arms' means, by weights that are public, and these."""
    means = [one for _, one in sites]
    weights = held(sites, public_variances(means, sizes), sizes, method, bounds)
    return PooledMeans(tuple(means), tuple(map(float, weights)), tuple(name for name, _ in sites)), weights


def held(
    sites: Answers,
    variances: Floats,
    sizes: Floats,
    method: str,
    bounds: WeightLimits | None,
    tau_squared: float = 0.0,
) -> Floats:
    """Return the weights of the sites, none above its limit."""
    if bounds is None:
        return pooling_weights(method, sizes, variances, tau_squared)
    least = np.maximum(variances, bounds.least(sites))
    return held_weights(pooling_weights(method, sizes, least, tau_squared), bounds.most(sites), least)


def _means(result: object) -> IndependentArmMeans | JointArmMeans:
    assert isinstance(result, MeasureResult)
    assert isinstance(result.means, IndependentArmMeans | JointArmMeans)
    return result.means


def public_variances(means: list[IndependentArmMeans | JointArmMeans], sizes: Floats) -> Floats:
    """Return what differences are expected to vary by, from public numbers alone.

    Of outcomes that lie half at either end of their range, in arms of one size; noise is as announced.
    """
    noise = np.array([_announced(one) for one in means])
    width = np.array([one.range[1] - one.range[0] for one in means])
    return np.asarray(noise + width**2 / sizes)


def _announced(means: IndependentArmMeans | JointArmMeans) -> float:
    """Return the variance of noise whose scale is public."""
    if isinstance(means, JointArmMeans):
        # The noise of the difference follows the released share treated; that of the mean follows the budget alone,
        # and in arms of one size both are about as large.
        return noise_variance(means.mean_noise)
    return sum(noise_variance(known.noise) for known in means.known)


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
        return tuple(replace(one, known=NumberNeededToTreat(_linear(one))) for one in self.pooled.table)

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
        found = self.pooled._shown()
        kept = {name: found[name] for name in ("heterogeneity", "prediction") if name in found}
        return MeasureResult._shown(self) | kept

    def report_facts(self) -> dict[str, Any]:
        """Return what reports and pictures show: a row for every site and one for all.

        Returns
        -------
        dict
            Facts by name; numbers may be infinite.
        """

        facts, average = MeasureResult.report_facts(self), self.pooled.to_dict()
        shown = zip(average["effects"], self.table, strict=True)
        kept = ("weight", "summary")
        rows = [effect.facts() | {name: row[name] for name in kept if name in row} for row, effect in shown]
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


# Bounds on what another party's result is computed from; the codec reads all the rest.


# What the numbers of each mechanism are; bounds keep its quantiles computable and quick.
_MECHANISMS = {
    "staircase": ("sensitivity", "epsilon"),
    "laplace": ("sensitivity", "epsilon"),
    "gaussian": ("sensitivity", "mu"),
    "laplace_pair": ("sensitivity", "epsilon", "narrow"),
    "summed_laplace": ("sensitivity", "epsilon", "sites", "honest"),
    "summed_gaussian": ("sensitivity", "mu", "sites", "honest"),
    "box": ("sensitivity", "epsilon", "dimension"),
}
_SMOOTH: dict[str, tuple[str, ...]] = {"lomax": ("epsilon", "smoothness")}
_BOUNDS = {
    "sensitivity": (1e-60, 1e60),
    "narrow": (1e-60, 1e60),
    "epsilon": (1e-12, 1e6),
    "mu": (1e-12, 1e6),
    "smoothness": (1e-12, 1e6),
    "sites": (1, 100),
    "honest": (1, 100),
    "dimension": (1, 1000),
}
_NEEDED = ("treatment", "outcome", "level", "releases", "details")
# What answers of a kind are computed from, and fields among it that hold texts.
_COMPUTED: dict[object, tuple[str, ...]] = {
    "ArmsResult": ("means",),
    "GroupsResult": ("groups",),
    "OutcomesResult": ("released",),
    "SurvivalResult": ("tables",),
    "Moments": ("basis", "matrix", "noise_sd", "rows", "robust"),
}
_TEXTS = ("is", "name", "names", "outcome", "arm", "form", "convention", "causes", "formula")
_MOST_RELEASES, _MOST_DETAILS, _LONG_TEXT, _MOST_ROWS = 1000, 500, 20_000, 10**12
# Numbers of an error or of a mean that have bounds of their own.
_RANGES = {
    **dict.fromkeys(("variance_cap", "extra", "bias", "ball_variance", "share_sd"), (0.0, LARGEST)),
    **dict.fromkeys(("noise_sd", "size_sd", "total_sd", "row_variance", "limit"), (0.0, LARGEST)),
    "share": (1e-9, 1 - 1e-9),
    "rows": (1.0, float(_MOST_ROWS)),
    "sizes": (1e-60, float(_MOST_ROWS)),
}


def check_document(document: object) -> None:
    """Raise `UnreadableError` unless what the result in a document is computed from is bounded; None is returned."""
    check_values(document)
    if not isinstance(document, Mapping) or any(name not in document for name in _NEEDED):
        raise UnreadableError("a result: a field is missing")
    facts = Fields("a result", document)
    for name in ("method", "treatment", "outcome"):
        if name in document or name in _NEEDED:
            facts.text(name, 500)
    facts.number("level", 1e-6, 1 - 1e-9)
    if len(facts.values["releases"]) > _MOST_RELEASES or len(facts.table("details")) > _MOST_DETAILS:
        raise facts.wrong("releases")
    if "rows" in facts.table("details"):
        Fields("details", facts.table("details")).number("rows", 1, _MOST_ROWS)
    for name, value in computed_facts(document).items():
        _check_bounded(name, value)


def computed_facts(document: Mapping[str, Any]) -> dict[str, Any]:
    """Return what the result in a document is computed from."""
    kind = document.get("kind")
    own = _COMPUTED.get(kind, ()) if isinstance(kind, str) else ()
    return {name: document.get(name) for name in ("estimate", "uncertainty", "limits", "numbers", *own)}


def _check_bounded(name: str, value: object) -> None:
    """Check every number under a name, and every noise distribution."""
    if isinstance(value, Mapping) and "mechanism" in value:
        _check_mechanism(dict(value))
    elif isinstance(value, Mapping):
        for own, inner in value.items():
            _check_bounded(own, inner)
    elif isinstance(value, list | tuple):
        for inner in value:
            _check_bounded(name, inner)
    elif isinstance(value, str) and name not in _TEXTS:
        raise UnreadableError(f"{name} is invalid")
    elif isinstance(value, int | float) and not isinstance(value, bool):
        Fields("a result", {name: value}).number(name, *_RANGES.get(name, (-LARGEST, LARGEST)))


def _check_mechanism(table: dict[str, Any]) -> None:
    """Check a noise distribution: a known mechanism with its own numbers, each in its range."""
    if table["mechanism"] == "noisy_scale":
        mechanism = Fields.of("a noise distribution", table, ("mechanism", "of", "scale", "log_scale"))
        for field, least in (("scale", 1e-60), ("log_scale", 0.0)):
            rational(mechanism.text(field), least, 1e60)
        _check_numbers(parse_message(mechanism.text("of", _LONG_TEXT)), _SMOOTH)
    elif table["mechanism"] == "weighted_sum":
        terms = parse_message(
            Fields.of("a noise distribution", table, ("mechanism", "of")).text("of", _LONG_TEXT)
        )
        for term in terms if isinstance(terms, list) else [terms]:
            if not isinstance(term, list) or len(term) != 2 or not isinstance(term[0], str):
                raise UnreadableError("a noise distribution that no result has")
            rational(term[0], 1e-60, 1e60)
            _check_numbers(term[1], _MECHANISMS)
    else:
        _check_numbers(table, _MECHANISMS)


def _check_numbers(table: object, known: dict[str, tuple[str, ...]]) -> None:
    name = table.get("mechanism") if isinstance(table, dict) else None
    if not isinstance(name, str) or name not in known:
        raise UnreadableError("a noise distribution that no result has")
    mechanism = Fields.of("a noise distribution", table, ("mechanism", *known[name]))
    for number in known[name]:
        mechanism.rational(number, *_BOUNDS[number])


Source: TypeAlias = Result | Mapping[str, Any] | str | PathLike[str]
Sources: TypeAlias = Sequence[Source] | Mapping[str, Source]

# A file of a result has a few kilobytes, or some hundred with balance tables.
_LARGEST_FILE = 20_000_000
# Noise goes farther than what is allowed for it once in a thousand million results.
_NEVER = 1e-9
FAR_OUTSIDE = "an estimate far outside what its outcome and its noise allow"


def read_sites(sources: Sources, measures: bool = False) -> list[tuple[str, Result]]:
    """Return the name and the result of every site; names are given, or those of files, or counted.

    With `measures`, all of them may be ratios and the like instead of differences.
    """
    found = named(sources, partial(read_result, measures=measures))
    kinds = {isinstance(result, MeasureResult) for _, result in found}
    if len(kinds) > 1:
        name = next(name for name, result in found if not isinstance(result, MeasureResult))
        raise no_result(name, "a difference beside results of another measure")
    return found


def named(sources: Any, read_one: Callable[[Any, str], One]) -> list[tuple[str, One]]:
    """Return every site's name with what is read of it."""
    if isinstance(sources, Mapping):
        return [(str(name), read_one(source, str(name))) for name, source in sources.items()]
    if not isinstance(sources, Sequence) or isinstance(sources, str):
        raise no_result("results", shown(sources))
    names = [_name(source, place) for place, source in enumerate(sources, 1)]
    if len(set(names)) < len(names):
        names = [f"{name} ({place})" for place, name in enumerate(names, 1)]
    return [(name, read_one(source, name)) for name, source in zip(names, sources, strict=True)]


def _name(source: Source, place: int) -> str:
    if isinstance(source, str | PathLike):
        return Path(source).stem
    return f"site {place}"


def facts_of(source: Source | object, name: str) -> Mapping[str, Any]:
    """Return the facts of an answer, or those in a JSON file, or raise CV-P502."""
    if not isinstance(source, Mapping | str | PathLike):
        raise no_result(name, shown(source))
    facts = source if isinstance(source, Mapping) else _read_file(source)
    if "error" in facts:
        raise no_result(name, "a refusal: the site gave no result")
    return facts


@contextmanager
def refusing_others(name: str) -> Iterator[None]:
    """Raise CV-P502 where facts make no answer that can be pooled."""
    try:
        yield
    except UnreadableError as error:
        raise no_result(name, str(error)) from None
    except (KeyError, TypeError, ValueError, AttributeError, ArithmeticError, ParameterError) as error:
        if isinstance(error, ParameterError) and error.code == "CV-P502":
            raise
        raise no_result(name, "facts that do not make a result of one effect") from None


def read_result(source: Source, name: str, measures: bool = False) -> Result:
    """Return the result in an object, in the facts of `Result.to_dict`, or in a JSON file of them.

    Facts have the form that `to_dict` gives them, with numbers in their ranges, before anything is made of them.
    """
    if isinstance(source, MeasureResult):
        return _of_means(source, name, measures)
    if isinstance(source, RatioResult):
        raise no_result(name, "a difference of ratios, which is not pooled")
    if isinstance(source, Result):
        return _sound(source, name)
    facts = facts_of(source, name)
    with refusing_others(name):
        check_document(facts)
        if measures and facts.get("kind") == MeasureResult.__name__:
            return _of_means(MeasureResult.from_dict(dict(facts)), name, measures)
        return _sound(Result.from_dict(dict(facts)), name)


def _of_means(result: MeasureResult, name: str, measures: bool) -> MeasureResult:
    """Return a result of a measure if it is to be pooled and has the numbers of one site, in their range."""
    if not measures:
        raise no_result(name, f"measure={result.measure!r}: differences are pooled")
    if isinstance(result.numbers, Linear) and isinstance(result.numbers.uncertainty, Uncertainty):
        _sound(difference_result(result), name)
        return result
    if result.means is None or isinstance(result.means, PooledMeans):
        raise no_result(name, f"measure={result.measure!r} without the means of one site's arms")
    low, high = result.means.range
    for value, weights in zip(result.means.values, ((1.0, 0.0), (0.0, 1.0)), strict=True):
        sd, noise, bias = result.means.errors(_NEVER)(*weights, (1.0, 1.0))
        reach = half_width(sd, noise, _NEVER) + bias
        if not low - reach <= value <= high + reach:
            raise no_result(name, FAR_OUTSIDE)
    return result


def _read_file(path: str | PathLike[str]) -> Mapping[str, Any]:
    try:
        facts = parse_message(read_text(path, _LARGEST_FILE), longest=_LARGEST_FILE, infinite=True)
    except UnreadableError as error:
        raise refusal("CV-P501", path=str(path), got=str(error)) from None
    if not isinstance(facts, Mapping):
        raise refusal("CV-P501", path=str(path), got="JSON that is not an object")
    return facts


def _sound(result: Result, name: str) -> Result:
    """Return the result if its numbers can be averaged."""
    check_sound(Linear(result.estimate, result.uncertainty, result.limits), name)
    return result


def check_sound(one: Linear, name: str) -> None:
    """Raise CV-P502 unless a number of a site can be averaged."""
    known = one.uncertainty
    if not isinstance(known, Uncertainty):
        raise no_result(name, "an average of other sites")
    numbers = (one.estimate, known.variance, known.variance_cap, known.extra, known.bias)
    if not all(isinstance(number, int | float) and isfinite(number) for number in numbers):
        raise no_result(name, "a result with a number that is not finite")
    if isinstance(known, ClusterUncertainty):
        raise no_result(name, "a result by cluster, whose degrees of freedom pooling would lose")
    if min(known.variance_cap, known.extra, known.bias) < 0 or known.total_sd <= 0:
        raise no_result(name, "a result without uncertainty")
    if one.limits is not None:
        if not -inf < one.limits[0] < one.limits[1] < inf:
            raise no_result(name, "a result whose effect can be nothing")
        # An estimate has sampling error and noise, so it may lie outside its limits, but not anywhere.
        reach = known.bias + half_width(sqrt(known.variance_cap + known.extra_at(_NEVER)), None, _NEVER)
        reach += 0.0 if known.noise is None else half_width(0.0, known.noise, _NEVER)
        if not one.limits[0] - reach <= one.estimate <= one.limits[1] + reach:
            raise no_result(name, FAR_OUTSIDE)


def rows_of(result: Any) -> int | None:
    """Return the public number of rows behind a result, None where it does not say."""
    rows = result.rows if isinstance(result, Moments) else result.details.get("rows")
    return int(rows) if isinstance(rows, int | float) and isfinite(rows) and rows >= 1 else None


def no_result(name: str, got: str) -> CounterveilError:
    """Return CV-P502."""
    return refusal("CV-P502", name=name, got=got)


METHOD_TEXTS = {
    "mvagg": "least-variance subset of sites, by size",
    "ivw": "all sites, by inverse variance",
    "all": "all sites, by size",
    "largest": "the largest site alone",
    "random_effects": "random effects: equal weights, Student's t over sites",
}
# What the average is of; for random effects the sites are a sample of all there could be.
_AVERAGES = "the average of the sites' effects with the weights shown, whether or not the sites differ"
_SITES_LIKE_THESE = "sites like these, which may differ; wide for a few sites"
_MEAN = f"the mean effect of {_SITES_LIKE_THESE}"


def _held(limits: WeightLimits) -> str:
    """Return what was done because sites are not trusted with their own weight."""
    own = ", or its share of the rows that sites are known to have" if limits.own else ""
    return f"from sizes and noise, not from variances that sites report; at most {limits.max_weight:.0%} each{own}"


def differing_words(found: Heterogeneity, tau: Ends, noun: str, error: float) -> str:
    """Return how far sites differ; what is compared is called `noun`, and `error` says how exactly it is known."""
    return (
        f"Q = {found.q:.3g} on {found.df} degrees of freedom, p {probability(found.p_value)}; "
        f"I^2 = {found.i_squared:.0%}; standard deviation of the sites' {noun}s (tau) "
        f"{rounded(found.tau, error)} [{', '.join(rounded(end, error) for end in tau)}]"
    )


def _one_more_words(noun: str, ends: Ends, pooled: OneEffect | Effect) -> str:
    low, high = (rounded(end, pooled.std_error.total) for end in ends)
    return f"its {noun} lies in [{low}, {high}] ({pooled.level:.0%}, conservative)"


def pooled_notes(pooled: PooledResult, noun: str = "effect") -> list[tuple[str, str]]:
    """Return how sites differ, how they are weighed and what one more would have; their numbers are called `noun`."""
    tau = pooled.heterogeneity_interval()["tau"]
    differ = differing_words(pooled.heterogeneity, tau, noun, pooled.std_error.total)
    average = _MEAN if pooled.method == "random_effects" else _AVERAGES
    notes = [("Average", average), ("Heterogeneity", differ)]
    if pooled.weight_limits is not None:
        notes.append(("Weights", _held(pooled.weight_limits)))
    if pooled.uncertainty.between_sites is not None:
        notes.append(("One more site", _one_more_words(noun, pooled.prediction_interval(), pooled)))
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
        return _differing_intervals(estimates, variances, chosen)

    @property
    def table(self) -> tuple[Effect, ...]:
        """Effect of every site, at the level of the average, and the average."""
        own = [replace(site.result.effect, name=site.name, level=self.level) for site in self.sites]
        return (*own, replace(self.effect, name="pooled"))

    def _columns(self) -> list[dict[str, Any]]:
        own = {"estimand": self.estimand.value}
        return _columns_of_sites([(site.name, site.weight) for site in self.sites], own)

    def _rows(self) -> list[dict[str, Any]]:
        """Return a dictionary for each site (`type` is "study") and one for the average ("summary")."""
        sources = [*(site.result._source() for site in self.sites), self._source()]
        found = effect_rows(self.treatment, self._columns(), self.table, sources)
        prediction = None if self.uncertainty.between_sites is None else self.prediction_interval()
        return _with_differing(found, self.heterogeneity, prediction)

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


# Ways of pooling whose weights are made from variances. Where a site's variance may share noise with its estimate,
# weights come from sizes, the scales of the noises, and one sampling variance per person for all sites.
_BY_VARIANCE = ("mvagg", "ivw", "random_effects")


def pool_one(
    results: Sources, method: str, level: float, weight_limits: WeightLimits | None
) -> PooledResult | PooledMeasure | PooledNumberNeededToTreat:
    """Return the average of effects, one of each site."""
    sites = read_sites(results, measures=True)
    if not any(isinstance(result, MeasureResult) for _, result in sites):
        return _averaged(sites, method, level, weight_limits)
    check_agreement(sites)
    if all(isinstance(result, MeasureResult) and result.means is not None for _, result in sites):
        found = pool_measures(sites, sizes_of(sites), method, level, weight_limits)
        repeat = repeat_of_pool([name for name, _ in sites], method, level)
        return found if weight_limits is not None else replace(found, repeat=repeat)
    differences = [(name, difference_result(cast("MeasureResult", result))) for name, result in sites]
    return number_needed_to_treat_of(_pooled(differences, method, level, weight_limits))


def pool_effects(
    results: Sources, *, method: str, level: float, weight_limits: WeightLimits | None
) -> PooledResult:
    """Return the same for differences alone; other measures are refused."""
    level = check_level(level)
    check_method(method)
    return _averaged(read_sites(results), method, level, weight_limits)


def check_method(method: object) -> None:
    """Raise CV-P506 for a way of pooling that there is not."""
    if not isinstance(method, str) or method not in POOLING_METHODS:
        raise refusal("CV-P506", pooling_methods=" or ".join(map(repr, POOLING_METHODS)), method=method)


def _averaged(sites: Named, method: str, level: float, weight_limits: WeightLimits | None) -> PooledResult:
    check_agreement(sites)
    found = _pooled(sites, method, level, weight_limits)
    repeat = repeat_of_pool([name for name, _ in sites], method, level)
    return found if weight_limits is not None else replace(found, repeat=repeat)


@dataclass(frozen=True, slots=True)
class Averaged:
    """What one row of a table becomes: the sites' weights, the error of their average, and how far sites differ."""

    estimate: float
    weights: Floats
    uncertainty: PooledUncertainty
    heterogeneity: Heterogeneity
    limits: Ends | None


def averaged(
    rows: Sequence[tuple[str, Linear]],
    sizes: Floats,
    method: str,
    bounds: WeightLimits | None,
    independent: bool = False,
) -> Averaged:
    """Return the average of one number of several sites; `independent` says that no variance shares its noise."""
    estimates = np.array([one.estimate for _, one in rows])
    known = [cast("Uncertainty", one.uncertainty) for _, one in rows]
    found = heterogeneity(estimates, np.array([released_variance(each) for each in known]))
    differing = method == "random_effects"
    tau_squared = found.tau_squared if differing else 0.0
    # A weight does not follow a number that may share noise with the estimate, or that nobody can check.
    separate = bounds is None and independent
    steadied = steadied_variances(known, sizes, common=not separate)
    variances = steadied + np.array([other_variance(each) for each in known])
    if not separate:
        variances += noise_sds_of_variances(known)
    weights = held(rows, variances, sizes, method, bounds, tau_squared)
    uncertainty = PooledUncertainty(
        sites=tuple(known),
        weights=tuple(map(float, weights)),
        steadied=tuple(map(float, steadied)) if method in _BY_VARIANCE else None,
        between=tau_squared,
        between_sites=ErrorBetweenSites.of(estimates[weights > 0]) if differing else None,
    )
    limits = _limits([one.limits for _, one in rows])
    # An average of noisy numbers may lie where no effect can; cutting it brings it nearer to any that can.
    average = float(weights @ estimates)
    estimate = truncate((average, average), limits)[0]
    return Averaged(estimate, weights, uncertainty, found, limits)


def _pooled(sites: Named, method: str, level: float, bounds: WeightLimits | None) -> PooledResult:
    sizes = sizes_of(sites)
    rows = [(name, Linear(result.estimate, result.uncertainty, result.limits)) for name, result in sites]
    found = averaged(rows, sizes, method, bounds, all(result.independent_variance for _, result in sites))
    weighed = list(zip(sites, found.weights, strict=True))
    return PooledResult(
        estimate=found.estimate,
        uncertainty=found.uncertainty,
        sites=tuple(
            PooledSite(name, float(weight), int(size), result)
            for (name, result), weight, size in zip(sites, found.weights, sizes, strict=True)
        ),
        heterogeneity=found.heterogeneity,
        **_provenance(sites, method),
        estimand=sites[0][1].estimand,
        level=level,
        details=_details(sizes, {}),
        not_covered=pooled_caveats(sites, [name for (name, _), weight in weighed if weight == 0]),
        limits=found.limits,
        weight_limits=bounds,
        **pooled_opening([each for each, weight in weighed if weight > 0]),
    )


def _limits(every: Sequence[Ends | None]) -> Ends | None:
    """Return what an average of the sites' effects can be at all, None where a site does not say."""
    known = [ends for ends in every if ends is not None]
    if len(known) < len(every):
        return None
    return min(low for low, _ in known), max(high for _, high in known)


def sizes_of(sites: Answers) -> NDArray[np.float64]:
    """Return the public numbers of rows (J,)."""
    rows = [rows_of(result) for _, result in sites]
    for (name, result), known in zip(sites, rows, strict=True):
        if known is None:
            raise refusal("CV-P505", name=name, method=result.method)
    return np.array(rows, dtype=np.float64)


# Answers of several effects, pooled row by row; second moments, added up.
#
# A pooled answer has the table of effects that the answer of every site has. Effects of one site share people, so
# that intervals for all rows are Bonferroni's. Proof: inference/pooling.proof.md.


Answer = ArmsResult | GroupsResult | OutcomesResult | SurvivalResult
_TABLES = (ArmsResult, GroupsResult, OutcomesResult, SurvivalResult)
KINDS: dict[str, Any] = {kind.__name__: kind for kind in (*_TABLES, Moments)}
# Columns of moments that say which site a row is of.
_SITE = "site"


def kind_of_all(sources: Any) -> type | None:
    """Return the kind of several answers, None where they are of one effect each, or of nothing that is known."""
    listed = [*sources.values()] if isinstance(sources, Mapping) else sources
    first = next(iter(listed), None) if isinstance(listed, Sequence) and not isinstance(listed, str) else None
    if isinstance(first, tuple(KINDS.values())):
        return type(first)
    if not isinstance(first, Mapping | str) and not hasattr(first, "__fspath__"):
        return None
    kind = facts_of(first, "a site").get("kind")
    return KINDS.get(kind) if isinstance(kind, str) else None


def read_answer(source: Any, name: str) -> Any:
    """Return an answer of several effects, or moments, in an object, its facts or a file of them, or raise CV-P502."""
    if isinstance(source, tuple(KINDS.values())) and not isinstance(source, PooledMoments):
        found = source
    else:
        facts = facts_of(source, name)
        with refusing_others(name):
            check_document(facts)
            found = kind_of(facts, KINDS).from_dict(dict(facts))
    for one in numbers_of(found).values() if not isinstance(found, Moments) else ():
        if isinstance(one, Linear):
            check_sound(one, name)
    return found


def numbers_of(answer: Any) -> dict[str, Any]:
    """Return what was released for every row of an answer, by the row's name: what rows are pooled from."""
    if isinstance(answer, OutcomesResult):
        return {one.name: one.numbers for one in answer.released}
    return {str(one.name): one.known for one in answer.table}


@dataclass(frozen=True, slots=True)
class PooledKnown:
    """An average of numbers that have intervals of their own, such as differences of survival.

    Attributes
    ----------
    sites : tuple of estimates
        Numbers of the sites.
    weights : tuple of float
        Weights, which add up to one.
    limits : tuple of (float, float) or None
        What the average can be at all.
    between : float
        Variance of the sites' numbers, for random effects; else 0.
    between_sites : ErrorBetweenSites or None
        Error judged by how far sites lie apart, for random effects; else None.

    Notes
    -----
    The interval is normal, and longer on each side by the weighted mean of what the sites' intervals exceed
    their normal ones by: bias that no averaging removes, heavy tails and skewness are not taken for less than
    at the sites.
    """

    sites: tuple[Known, ...]
    weights: tuple[float, ...]
    limits: Ends | None = None
    between: float = 0.0
    between_sites: ErrorBetweenSites | None = None

    def _weighed(self) -> list[tuple[float, Known]]:
        return [(weight, one) for weight, one in zip(self.weights, self.sites, strict=True) if weight > 0]

    @property
    def estimate(self) -> float:
        """The average, truncated to what it can be."""
        found = sum(weight * one.estimate for weight, one in self._weighed())
        return truncate((found, found), self.limits)[0]

    @property
    def sampling_sd(self) -> float:
        """Standard deviation of the sampling error."""
        return hypot(*(weight * one.sampling_sd for weight, one in self._weighed()))

    @property
    def noise_sd(self) -> float:
        """Standard deviation of the privacy noise."""
        return hypot(*(weight * one.noise_sd for weight, one in self._weighed()))

    @property
    def total_sd(self) -> float:
        """Standard deviation of all errors together, differences between sites included."""
        own = sqrt(self.sampling_sd**2 + self.noise_sd**2 + self._spread)
        return own if self.between_sites is None else max(own, self.between_sites.std_error)

    @property
    def _spread(self) -> float:
        return self.between * float(np.square(self.weights).sum())

    def interval(self, level: float) -> Ends:
        """Return the two ends of an interval; nothing is known where a site's number is infinite.

        Parameters
        ----------
        level : float
            Confidence level, in (0, 1).

        Returns
        -------
        tuple of (float, float)
            Lower and upper end.
        """
        between = 0.0 if self.between_sites is None else self.between_sites.half_width(level)
        return self._ends(level, self._spread, between)

    def one_more(self, level: float) -> Ends:
        """Return the two ends of an interval for the number at one more site; for random effects alone.

        Parameters
        ----------
        level : float
            Confidence level, in (0, 1).

        Returns
        -------
        tuple of (float, float)
            Lower and upper end.
        """
        assert self.between_sites is not None
        return self._ends(level, self._spread + self.between, self.between_sites.prediction_half_width(level))

    def _ends(self, level: float, spread: float, between: float) -> Ends:
        """Return the ends for a variance of `spread` beside the errors, at least `between` from the estimate."""
        if not isfinite(self.estimate):
            return truncate((-inf, inf), self.limits)
        normal, down, up = -float(ndtri((1 - level) / 2)), 0.0, 0.0
        for weight, one in self._weighed():
            (low, high), own = one.interval(level), normal * hypot(one.sampling_sd, one.noise_sd)
            down += weight * max(one.estimate - low - own, 0.0)
            up += weight * max(high - one.estimate - own, 0.0)
        half = max(normal * sqrt(self.sampling_sd**2 + self.noise_sd**2 + spread), between)
        return truncate((self.estimate - half - down, self.estimate + half + up), self.limits)


@dataclass(frozen=True, slots=True)
class _Logarithm(Transformed):
    """The logarithm of a ratio that is known on its own scale; a ratio that is lost in noise says nothing."""

    ratio: Known

    @property
    def source(self) -> Known:
        """The ratio."""
        return self.ratio

    @property
    def _sound(self) -> bool:
        return 0 < self.ratio.estimate < inf

    @property
    def estimate(self) -> float:
        """The logarithm, 0 where there is none."""
        return self.carried(self.ratio.estimate) if self._sound else 0.0

    def carried(self, value: float) -> float:
        """Return the logarithm of a ratio, which may be infinite."""
        if value <= 0:
            return -inf
        return log(value) if value < inf else inf

    def scaled(self, sd: float) -> float:
        """Return a standard deviation of the ratio as one of the logarithm."""
        return sd / self.ratio.estimate if self._sound else inf


@dataclass(frozen=True, slots=True)
class PooledRatio(Transformed, OwnScale):
    """An average of ratios on the scale of logarithms, such as hazard ratios.

    Attributes
    ----------
    logarithm : PooledKnown
        Average of the logarithms.
    null : {1.0, 0.0}
        Value of no effect: 1 of a ratio, 0 of a lift.
    """

    logarithm: PooledKnown
    null: float = 1.0

    @property
    def source(self) -> PooledKnown:
        """The average of the logarithms."""
        return self.logarithm

    def carried(self, value: float) -> float:
        """Return the ratio, or the lift, of a logarithm.

        Parameters
        ----------
        value : float
            A logarithm; it may be infinite.

        Returns
        -------
        float
            Ratio, or one less for a lift.
        """
        return exp(min(value, _LARGEST_LOGARITHM)) - self._less if value < inf else inf

    def scaled(self, sd: float) -> float:
        """Return a standard deviation of the logarithm as one of the ratio.

        Parameters
        ----------
        sd : float
            Standard deviation of the logarithm.

        Returns
        -------
        float
            Standard deviation of the ratio.
        """
        return exp(self.logarithm.estimate) * sd

    @property
    def _less(self) -> float:
        return 1.0 - self.null

    @property
    def total_sd(self) -> float:
        """Standard deviation of all errors together, differences between sites included."""
        return self.scaled(self.logarithm.total_sd)

    def one_more(self, level: float) -> Ends:
        """Return the two ends of an interval for one more site; for random effects alone.

        Parameters
        ----------
        level : float
            Confidence level, in (0, 1).

        Returns
        -------
        tuple of (float, float)
            Lower and upper end.
        """
        low, high = self.logarithm.one_more(level)
        return self.carried(low), self.carried(high)

    def p_value(self, level: float, value: float | None = None) -> float:  # noqa: ARG002 - of every level the same
        """Return the two-sided p-value of a value.

        Parameters
        ----------
        level : float
            Not used: the p-value is of every level the same.
        value : float, optional
            Value that is tested; no effect by default.

        Returns
        -------
        float
            P-value, privacy noise included.
        """
        ratio = 1.0 if value is None else value + self._less
        return p_value(self.logarithm.interval, log(ratio) if ratio > 0 else -inf)


class PooledEffect(Effect):
    """One row of a pooled table.

    Its simultaneous intervals are Bonferroni's: they hold however rows depend.

    Attributes
    ----------
    name : str, int or float
        Name of the row.
    known : Linear, PooledKnown, PooledRatio or NumberNeededToTreat
        Estimate and uncertainty.
    level : float
        Default confidence level, in (0, 1).
    several : int
        How many effects are shown together.
    size : float or None
        Number of people behind the effect, where it is known.
    size_sd : float
        Standard deviation of the noise of `size`.
    """

    __slots__ = ()

    @property
    def std_error(self) -> StdError:
        """Standard error: total, with differences between sites, sampling part, privacy-noise part."""
        if isinstance(self.known, PooledKnown | PooledRatio):
            return StdError(self.known.total_sd, self.known.sampling_sd, self.known.noise_sd)
        return super().std_error

    @property
    def adjusted_p_value(self) -> float:
        """Two-sided p-value adjusted for looking at all rows (Bonferroni)."""
        return min(1.0, self.several * self.careful_p_value)

    def _level(self, level: float | None, simultaneous: bool) -> float:
        chosen = self.level if level is None else check_level(level)
        return 1 - (1 - chosen) / self.several if simultaneous else chosen


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
        own = zip(self.sites, self.weights.values(), strict=True)
        found = self.effect.facts() | {
            "weights": dict(self.weights),
            "site_effects": [one.facts() | {"weight": weight} for one, weight in own],
            "heterogeneity": self.heterogeneity.to_dict(),
        }
        ends = self.prediction_interval()
        return found if ends is None else found | {"prediction": interval_facts(self.effect.level, ends)}

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
        return _differing_intervals(*_row_compared([one.known for one in self.sites]), chosen)

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
        known = (
            self.effect.known.difference
            if isinstance(self.effect.known, NumberNeededToTreat)
            else self.effect.known
        )
        if isinstance(known, PooledKnown | PooledRatio):
            random = known if isinstance(known, PooledKnown) else known.logarithm
            return None if random.between_sites is None else known.one_more(chosen)
        if isinstance(known, Linear) and isinstance(known.uncertainty, PooledUncertainty):
            half = known.uncertainty.prediction_half_width(chosen)
            return None if half is None else symmetric_interval(known.estimate, half)
        return None


def _row_compared(known: Sequence[Known]) -> tuple[Floats, Floats]:
    """Return what is compared between sites and its variances: estimates, or logarithms of ratios."""
    measure = known[0].measure if isinstance(known[0], Measured) else None
    if measure is not None:
        return _compared([cast("Any", one).means for one in known], measure)
    if all(isinstance(one, Linear | NumberNeededToTreat) for one in known):
        linear = [
            cast("Linear", one.difference if isinstance(one, NumberNeededToTreat) else one) for one in known
        ]
        variances = [released_variance(cast("Uncertainty", one.uncertainty)) for one in linear]
        return np.array([one.estimate for one in linear]), np.array(variances)
    scaled = [_Logarithm(one) for one in known] if _is_ratio(known[0]) else known
    variances = [one.sampling_sd**2 + one.noise_sd**2 for one in scaled]
    estimates = np.nan_to_num([one.estimate for one in scaled], posinf=0.0, neginf=0.0)
    # An infinite variance has no weight; nor may one be zero.
    return estimates, np.nan_to_num(variances, posinf=_LOST) + 1e-300


def _is_ratio(known: Known) -> bool:
    return isinstance(known, OwnScale) and known.null == 1.0


@dataclass(frozen=True, slots=True)
class _Way:
    """How rows are pooled."""

    method: str
    level: float
    bounds: WeightLimits | None
    several: int = 1
    measure: str = DIFFERENCE

    def row(self, name: str, own: Sequence[tuple[str, Any]], sizes: Floats) -> PooledRow:
        """Return the pooled row of the numbers that sites released for it."""
        values = [numbers for _, numbers in own]
        if all(isinstance(one, Linear) for one in values):
            made = averaged(own, sizes, self.method, self.bounds)
            known = known_as(self.measure, Linear(made.estimate, made.uncertainty, made.limits))
            return self._made(name, known, own, made.weights, DIFFERENCE)
        if all(isinstance(one, IndependentArmMeans | JointArmMeans) for one in values):
            return self._of_means(name, own, sizes)
        if _is_ratio(values[0]):
            logs = [(site, _Logarithm(known)) for site, known in own]
            found, weights = self._by_intervals(logs, sizes)
            return self._made(name, PooledRatio(found), own, weights, _SCALES[RATIO])
        found, weights = self._by_intervals(own, sizes)
        return self._made(name, found, own, weights, DIFFERENCE)

    def _of_means(self, name: str, own: Sequence[tuple[str, Any]], sizes: Floats) -> PooledRow:
        scale = _SCALES.get(self.measure, DIFFERENCE)
        if self.method not in METHODS:
            raise refusal("CV-P508", methods=" or ".join(map(repr, METHODS)), method=self.method)
        if self.method == "random_effects":
            random, weights = _random_effects(own, self.measure, sizes, self.bounds)
            return self._made(name, _of_random(self.measure, random), own, weights, scale)
        pooled, weights = _pooled_means(own, sizes, self.method, self.bounds)
        return self._made(name, known_as(self.measure, pooled), own, weights, scale)

    def _by_intervals(self, own: Sequence[tuple[str, Any]], sizes: Floats) -> tuple[PooledKnown, Floats]:
        """Return the average of numbers with intervals of their own.

        No weight follows what a site says of its sampling error: all have one sampling variance per person.
        """
        known = [one for _, one in own]
        sampling = np.array([one.sampling_sd**2 for one in known])
        noise = np.array([one.noise_sd**2 for one in known])
        sure = np.isfinite(sampling)
        person = float(np.mean((sampling * sizes)[sure])) if sure.any() else 1.0
        variances = np.nan_to_num(np.where(sure, person / sizes, inf) + noise, posinf=_LOST)
        random = self.method == "random_effects"
        estimates, own_variances = _row_compared(known)
        tau_squared = paule_mandel(estimates, own_variances) if random else 0.0
        weights = held(own, variances, sizes, self.method, self.bounds, tau_squared)
        between = ErrorBetweenSites.of(estimates[weights > 0]) if random else None
        limits = _limits_of(known)
        given = tuple(map(float, weights))
        return PooledKnown(tuple(known), given, limits, tau_squared, between), weights

    def _made(self, name: str, known: Known, own: Answers, weights: Floats, scale: str) -> PooledRow:
        weighed = {site: float(weight) for (site, _), weight in zip(own, weights, strict=True)}
        shown = [(site, self._known_of(numbers)) for site, numbers in own]
        sites = tuple(Effect(site, each, self.level) for site, each in shown)
        differ = heterogeneity(*_row_compared([each for _, each in shown]), scale)
        return PooledRow(PooledEffect(name, known, self.level, self.several), weighed, sites, differ)

    def _known_of(self, numbers: Any) -> Known:
        """Return what a site knows of its own number, on the scale of the measure."""
        measured = isinstance(numbers, Linear | IndependentArmMeans | JointArmMeans)
        return known_as(self.measure, numbers) if measured else cast("Known", numbers)


def _limits_of(known: Sequence[Known]) -> Ends | None:
    """Return what an average can be at all, None where a site does not say."""
    found: list[Ends | None] = []
    for one in known:
        if isinstance(one, NoisyRatio):
            found.append((-one.limit, one.limit))
        elif isinstance(one, RatioDifference):
            found.append((-one.one.limit - one.other.limit, one.one.limit + one.other.limit))
        else:
            found.append(
                (-1.0, 1.0) if isinstance(one, Gap) else one.limits if isinstance(one, Area) else None
            )
    return _limits(found)


def _row_words(row: PooledRow) -> str:
    """Return the sites' own numbers with their weights, and how far they differ."""
    own = ", ".join(
        f"{figure_words(figure_of(one), str(one.name))} (weight {weight:.0%})"
        for one, weight in zip(row.sites, row.weights.values(), strict=True)
    )
    found, tau, error = row.heterogeneity, row.heterogeneity_interval()["tau"], row.effect.std_error.total
    unit = abs(row.effect.estimate) if _is_ratio(row.effect.known) and isfinite(row.effect.estimate) else 1.0
    words = f"{own}; sites differ: {differing_words(found, tau, found.scale, error / (unit or 1.0))}"
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
        own = [(one.name, of(one.result)) for one in self.answers]
        sizes = sizes_of([(one.name, one.result) for one in self.answers])
        way = _Way(self.method, self.level, self.weight_limits)
        row = way.row(str(own[0][1].name), [(name, one.known) for name, one in own], sizes)
        return PooledAverage(row.effect.name, row.effect.known, self.level, pooled=row)

    @property
    def _compared(self) -> Sequence[Effect]:
        return [one for one in self.table if isinstance(one.known, Linear)]

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
            for one in facts["answers"]:
                result = one["result"]
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
        found = pool_answers({one.name: one.result for one in answers}, method, level, weight_limits)
        return cast("PooledTable", found)


@refuses_unknown
def pool(
    results: Sources,
    *,
    method: PoolMethod = "mvagg",
    level: float = 0.95,
    weight_limits: WeightLimits | None = None,
) -> PooledResult | MeasureResult | PooledTable | PooledMoments:
    """Pool the private answers of several sites; nothing is spent.

    Ratios, odds ratios and lifts are those of the arms' means, averaged by size; numbers needed to treat that
    sites were asked for are those of the average difference, and ``as_measure("nnt")`` of pooled ratios gives
    them too. Answers of several effects are pooled row by row; second moments are added up, and regressions
    fitted once.

    Parameters
    ----------
    results : sequence or mapping of results, dicts or paths
        Results of `ate`, `arms`, `groups`, `outcomes`, `survival` or `moments`, what their `to_dict` gave, or
        paths of JSON files; a mapping names the sites. All answer the same question, and nobody is in two
        sites.
    method : {"mvagg", "ivw", "all", "largest", "random_effects"}, default "mvagg"
        Which average: of the subset of sites with the least variance, with weights by size; of all sites, by
        inverse variances; of all sites, by size; the largest site alone; or the mean of sites whose effects
        may differ, where the noisiest are left out.
    level : float, default 0.95
        Confidence level of the interval, between 0 and 1; the privacy noise is included.
    weight_limits : cv.settings.WeightLimits, optional
        For sites that do not trust each other: the most weight of each. Weights then follow sizes and the
        scales of the noise, not the variances that sites report.

    Returns
    -------
    PooledResult, MeasureResult, PooledTable or PooledMoments
        The average of one effect, of a measure, of several effects row by row, or the sum of second moments;
        with the weights of the sites and how far they differ.

    Raises
    ------
    CounterveilError
        CV-P5xx for results that answer different questions, are the same release twice, or cannot be read.

    See Also
    --------
    ate : One site's effect.

    Notes
    -----
    With weights w_j that add up to 1, the estimate is sum_j w_j e_j and its variance sum_j w_j^2 v_j, noise
    included: inverse variances are w_j = (1 / v_j) / sum_k 1 / v_k. "random_effects" adds the variance between
    sites (Paule and Mandel [1]_) and has Student's t over sites. Sites hold different people, so that the privacy
    loss of each person is that of their own site (parallel composition).

    References
    ----------
    .. [1] Paule, R. C. and Mandel, J. (1982). Consensus values and weighting factors.
       Journal of Research of the National Bureau of Standards 87, 377-385.

    Examples
    --------
    >>> import counterveil as cv
    >>> sites = {}
    >>> for seed, name in enumerate(["north", "south"]):
    ...     data = cv.datasets.simulated_trial(n=1000, effect=0.3, seed=seed)
    ...     noise = cv.SeededNoise(seed)
    ...     sites[name] = cv.ate(data.frame, data.study, protects="outcome", epsilon=2, noise=noise)
    >>> round(cv.pool(sites).estimate, 1)
    0.3
    """
    level = check_level(level)
    check_method(method)
    if not isinstance(weight_limits, WeightLimits | None):
        raise refusal("CV-P019b", expected="cv.settings.WeightLimits", kind=type(weight_limits).__name__)
    if kind_of_all(results) is not None:
        return pool_answers(results, method, level, weight_limits)
    return pool_one(results, method, level, weight_limits)


def pool_answers(
    sources: Any, method: str, level: float, bounds: WeightLimits | None
) -> PooledTable | PooledMoments:
    """Return the answers of several sites as one: tables row by row, moments added up."""
    sites = named(sources, read_answer)
    check_agreement(sites)
    if all(isinstance(result, Moments) for _, result in sites):
        return added_up(sites, method, level, bounds)
    return _pooled_table(sites, method, level, bounds)


def _pooled_table(
    sites: list[tuple[str, Any]], method: str, level: float, bounds: WeightLimits | None
) -> PooledTable:
    numbers = {site: numbers_of(result) for site, result in sites}
    names = list(dict.fromkeys(name for own in numbers.values() for name in own))
    found = {name: [site for site, own in numbers.items() if name in own] for name in names}
    kept = [name for name in names if len(found[name]) > 1]
    if not kept:
        raise no_result(sites[1][0], "no effect that another site has")
    first, by_name = sites[0][1], dict(sites)
    whole = dict(zip(by_name, sizes_of(sites), strict=True))
    way = _Way(method, level, bounds, len(kept), getattr(first, "measure", DIFFERENCE))
    rows = []
    for name in kept:
        sizes = np.array([_size(by_name[site], name, whole[site]) for site in found[name]])
        rows.append(way.row(name, [(site, numbers[site][name]) for site in found[name]], sizes))
    weighed = {site for row in rows for site, weight in row.weights.items() if weight > 0}
    scale = {} if way.measure == DIFFERENCE else {"measure": MEASURE_NAMES[way.measure]}
    return PooledTable(
        answers=tuple(PooledAnswer(*one) for one in sites),
        rows=tuple(rows),
        left_out=tuple(name for name in names if name not in kept),
        weight_limits=bounds,
        estimand=getattr(first, "estimand", Estimand.ATE),
        level=level,
        **_provenance(sites, method),
        not_covered=pooled_caveats(sites, [name for name, _ in sites if name not in weighed]),
        details=_details(whole.values(), scale),
        **pooled_opening([one for one in sites if one[0] in weighed]),
    )


def _provenance(sites: Answers, method: str) -> dict[str, Any]:
    first = sites[0][1]
    return {
        "guarantee": pooled_guarantee(sites),
        "spent": pooled_spending(sites),
        "treatment": first.treatment,
        "outcome": first.outcome,
        "releases": tuple(
            (name, f"{getattr(result, 'method', 'moments')}, {result.spent}") for name, result in sites
        ),
    } | ({} if isinstance(first, Moments) else {"method": method})


def _details(sizes: Iterable[float], more: Mapping[str, float | str]) -> dict[str, float | str]:
    numbers = [*sizes]
    return {"rows": int(sum(numbers)), "sites": len(numbers), **more}


def _size(answer: Any, name: str, rows: float) -> float:
    """Return how many people a row is about where that is public, else those of the site."""
    for one in answer.groups if isinstance(answer, GroupsResult) else ():
        if one.name == name and one.size is not None and one.size_sd == 0:
            return max(float(one.size), 1.0)
    return rows


@dataclass(frozen=True, slots=True)
class MomentsPart:
    """One site's moments and their weight in the sum.

    Attributes
    ----------
    name : str
        Name of the site.
    weight : float
        Weight in the sum.
    result : Moments
        Its released moments.
    """

    name: str
    weight: float
    result: Moments


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class PooledMoments(Moments):
    """Second moments of several sites, added up: what `counterveil.pool` returns for moments.

    Regressions over all sites are free. ``site`` in a formula is which site a row is of: ``"y ~ treat + age |
    site"`` compares people within sites.

    Attributes
    ----------
    answers : tuple of MomentsPart
        The sites' moments, with their weights.
    weight_limits : WeightLimits or None
        Limits on weights that were asked for.
    treatment, outcome : str
        Columns of the study.
    columns : tuple of str
        All columns, the constant left out, and indicators of the sites.
    groups : tuple of (str, tuple of str)
        Covariates, or treatments, that are several columns, with these.
    basis : tuple of tuple of float
        The constant and every column as a combination of working columns.
    matrix : tuple of tuple of float
        Means of products of working columns, the constant first.
    noise_sd : tuple of tuple of float
        Standard deviation of the noise of each.
    rows : int
        Number of rows of one site that would be as precise: all of them where no weight is held.
    level : float
        Default confidence level of intervals, in (0, 1).
    guarantee : Guarantee
        What is protected, how strongly, and where that is proved.
    spent : Budget
        The most that any one person's data have spent.
    releases : tuple of (str, str)
        Every number that noise was drawn for: its name, and its sensitivity or scale.
    not_covered : tuple of Caveat or Detail
        What intervals do not cover, the worst first.
    details : dict of str to float or str
        Further public or released numbers.
    robust : tuple of RobustMiddle
        Empty: errors are classical.
    """

    _DERIVED: ClassVar[tuple[str, ...]] = ("basis", "matrix", "noise_sd")

    answers: tuple[MomentsPart, ...]
    weight_limits: WeightLimits | None = None

    def _noisy(self) -> NoisyMoments:
        return _summed(self.answers)[1]

    def _farthest(self, formula: Formula, fit: LinearFit) -> float | None:  # noqa: ARG002 - sites have other units
        return None

    @classmethod
    def _made(
        cls, level: float, answers: tuple[MomentsPart, ...], weight_limits: WeightLimits | None, **_: Any
    ) -> PooledMoments:
        return added_up([(one.name, one.result) for one in answers], "all", level, weight_limits)


def added_up(
    sites: list[tuple[str, Any]], method: str, level: float, bounds: WeightLimits | None
) -> PooledMoments:
    """Return the sum of sites' moments, by numbers of rows; no weight is above its limit."""
    if method not in ("all", "mvagg"):
        raise refusal("CV-P508", methods="'all'", method=method)
    sizes = np.array([float(one.rows) for _, one in sites])
    weights = held(sites, 1 / sizes, sizes, "all", bounds)
    parts = tuple(
        MomentsPart(name, float(weight), one) for (name, one), weight in zip(sites, weights, strict=True)
    )
    try:
        basis, moments = _summed(parts)
    except np.linalg.LinAlgError:
        raise no_result(sites[0][0], "moments in columns that depend on each other") from None
    first = sites[0][1]
    indicators = tuple(f"{_SITE}={name}" for name, _ in sites[1:])
    noise = [moments.crossed(unit, unit).diagonal() for unit in np.eye(len(basis))]
    return PooledMoments(
        answers=parts,
        weight_limits=bounds,
        columns=(*first.columns, *indicators),
        groups=(*first.groups, *(((_SITE, indicators),) if _SITE not in first.columns else ())),
        basis=_tuples(basis),
        matrix=_tuples(moments.matrix),
        noise_sd=_tuples(np.sqrt(np.maximum(np.array(noise), 0.0))),
        rows=moments.rows,
        level=level,
        **_provenance(sites, method),
        not_covered=pooled_caveats(sites, []),
        details=_details(sizes, {f"weight_{one.name}": one.weight for one in parts}),
    )


def _summed(parts: Sequence[MomentsPart]) -> tuple[Floats, SummedMoments]:
    """Return the basis of the columns, sites' indicators last, and the moments of all sites in working columns.

    Working columns are those of the first site, whose first is the constant, and the indicators.
    """
    bases = [np.array(one.result.basis) for one in parts]
    size, more = len(bases[0]), len(parts) - 1
    turned = []
    for place, (part, own) in enumerate(zip(parts, bases, strict=True)):
        turn = np.zeros((size + more, size))
        turn[:size] = np.linalg.solve(bases[0], own)
        if place:
            turn[size + place - 1] = own[0]  # the constant
        turned.append((part.weight, turn, part.result._noisy()))
    matrix = np.sum([weight * turn @ one.matrix @ turn.T for weight, turn, one in turned], axis=0)
    whole = 1 / sum(weight**2 / one.rows for weight, _, one in turned)
    basis = np.eye(size + more)
    basis[:size, :size] = bases[0]
    matrix = (matrix + matrix.T) / 2
    return basis, SummedMoments(matrix, np.zeros_like(matrix), max(int(whole + 1e-6), 1), tuple(turned))


def _tuples(matrix: Floats) -> Matrix:
    return tuple(tuple(float(value) for value in row) for row in matrix)
