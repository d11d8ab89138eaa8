"""Pooled effects of several sites: `pool(...)`."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import sqrt
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from counterveil.errors import refusal
from counterveil.inference import (
    POOLING_METHODS,
    ErrorBetweenSites,
    Heterogeneity,
    PooledUncertainty,
    held_weights,
    heterogeneity,
    other_variance,
    pooling_weights,
    released_variance,
    steadied_variances,
    unsure_variances,
)
from counterveil.questions.pooled.agreement import (
    Named,
    check_agreement,
    pooled_caveats,
    pooled_guarantee,
    pooled_opening,
    pooled_spending,
)
from counterveil.questions.pooled.measures import needed_of, pool_measures
from counterveil.questions.pooled.reading import Sources, read_sites, rows_of
from counterveil.questions.repeating import repeat_of_pool
from counterveil.report.view import probability, rounded
from counterveil.results.effect import Effect, Ends, around, check_level, interval_facts, within
from counterveil.results.measure_words import NEEDED
from counterveil.results.measures import MeasureResult, difference_result, refuse_of_difference
from counterveil.results.result import OneEffect, Result
from counterveil.results.stored import reads_facts
from counterveil.settings import WeightLimits

# A pooled result in words and as the rows of a report.


METHOD_TEXTS = {
    "mvagg": "least-variance subset of sites, by size",
    "ivw": "all sites, by inverse variance",
    "all": "all sites, by size",
    "largest": "the largest site alone",
    "random_effects": "random effects: equal weights, Student's t over sites",
}
# What the average is of; for random effects the sites are a sample of all there could be.
_AVERAGES = "the average of the sites' effects with the weights shown, whether or not the sites differ"
_MEAN = "the mean effect of sites like these, which may differ; wide for a few sites"


def _held(facts: dict[str, Any]) -> str:
    """Return what was done because sites are not trusted with their own weight."""
    limits = facts["weight_limits"]
    own = ", or its share of the rows that sites are known to have" if limits["own"] else ""
    return f"from sizes and noise, not from variances that sites report; at most {limits['most_weight']:.0%} each{own}"


def pooled_notes(facts: dict[str, Any], noun: str = "effect") -> list[tuple[str, str]]:
    """Return how sites differ, how they are weighed and what one more would have; their numbers are called `noun`."""
    found, error = facts["heterogeneity"], facts["std_error"]["total"]
    differ = (
        f"Q = {found['q']:.3g} on {found['df']} degrees of freedom, p = {probability(found['p_value'])}; "
        f"I^2 = {found['i_squared']:.0%}; standard deviation of the sites' {noun}s (tau) "
        f"{rounded(sqrt(found['tau_squared']), error)}"
    )
    average = _MEAN if facts["pooled"] == "random_effects" else _AVERAGES
    notes = [("Average", average), ("Heterogeneity", differ)]
    if "weight_limits" in facts:
        notes.append(("Weights", _held(facts)))
    if "prediction" in facts:
        ahead = facts["prediction"]
        notes.append(
            (
                "One more site",
                f"its {noun} lies in [{rounded(ahead['low'], error)}, {rounded(ahead['high'], error)}] "
                f"({ahead['level']:.0%}, conservative)",
            )
        )
    return notes


# The answer from several sites: a weighted average, its uncertainty, and how far the sites differ.


@dataclass(frozen=True, slots=True)
class PooledSite:
    """One site's part: its released result, its weight in the average and its public number of rows."""

    name: str
    weight: float
    rows: int
    result: Result


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class PooledResult(OneEffect):
    """A weighted average of released effects; nothing in it is private and nothing it does spends budget.

    `estimate` is cut to `limits`, what the effect can be at all. `weight_limits` are those that were asked for.
    `spent` is the most that any one person's data have spent. `interval_of` is as in `Result`.
    """

    uncertainty: PooledUncertainty
    sites: tuple[PooledSite, ...]
    heterogeneity: Heterogeneity
    weight_limits: WeightLimits | None = None

    def as_measure(self, measure: str) -> OneEffect:
        """Return the average itself, or for "nnt" the number needed to treat; free. Others are CV-P687."""
        refuse_of_difference(self, measure)
        return needed_of(self) if measure == NEEDED else self

    def prediction_interval(self, level: float | None = None) -> tuple[float, float]:
        """Return the two ends of an interval for the effect at one more site like these; random effects only."""
        half = self.uncertainty.reach(self.level if level is None else check_level(level))
        if half is None:
            raise refusal("CV-P507", method=self.method)
        return around(self.estimate, half)

    @property
    def table(self) -> tuple[Effect, ...]:
        """The effect of every site, at the level of the average, and the average."""
        return (*(_site_effect(site, self.level) for site in self.sites), replace(self.effect, name="pooled"))

    def _columns(self) -> list[dict[str, Any]]:
        estimand = {"estimand": self.estimand.value}
        rows = [{"site": site.name, "type": "study", "weight": site.weight} | estimand for site in self.sites]
        return [*rows, {"site": "pooled", "type": "summary", "weight": 1.0} | estimand]

    def _rows(self) -> list[dict[str, Any]]:
        """Return a dictionary for each site (`type` is "study") and one for the average ("summary")."""
        sources = [*(site.result._source() for site in self.sites), self._source()]
        rows = zip(self._columns(), self.table, sources, strict=True)
        return [{"term": self.treatment} | own | effect.row() | source for own, effect, source in rows]

    def _numbers(self) -> dict[str, Any]:
        limits = None if self.weight_limits is None else self.weight_limits.to_dict()
        return {
            "pooled": self.method,
            "estimand": self.estimand.value,
            **({} if limits is None else {"weight_limits": limits}),
            "sites": [_site_facts(site, self.level) for site in self.sites],
        }

    def _shown(self) -> dict[str, Any]:
        facts = OneEffect._shown(self) | {
            "method": METHOD_TEXTS[self.method],
            "heterogeneity": self.heterogeneity.to_dict(),
        }
        if self.uncertainty.between_sites is not None:
            facts["prediction"] = interval_facts(self.level, self.prediction_interval())
        return facts

    @classmethod
    @reads_facts
    def from_dict(cls, facts: dict[str, Any]) -> PooledResult:
        """Return the result written by `to_dict`, pooled again from the sites' results in it."""
        sites = {site["name"]: site["result"] for site in facts["sites"]}
        bounds = WeightLimits.from_dict(facts["weight_limits"]) if "weight_limits" in facts else None
        return pool_effects(sites, method=facts["pooled"], level=facts["level"], weight_limits=bounds)

    def report_facts(self) -> dict[str, Any]:
        """Return what reports and pictures show: the facts of `to_dict`, with a row for every site and one for all."""
        facts, weights = self.to_dict(), [site.weight for site in self.sites]
        *sites, pooled = (effect.facts() for effect in self.table)
        rows = [site | {"weight": weight} for site, weight in zip(sites, weights, strict=True)]
        return facts | {
            "effects": [*rows, pooled | {"weight": 1.0, "summary": True}],
            "notes": pooled_notes(facts),
        }


def _site_effect(site: PooledSite, level: float) -> Effect:
    return replace(site.result.effect, name=site.name, level=level)


def _site_facts(site: PooledSite, level: float) -> dict[str, Any]:
    return {
        "name": site.name,
        "weight": site.weight,
        "rows": site.rows,
        "interval": interval_facts(level, site.result.interval(level)),
        "result": site.result.to_dict(),
    }


# Ways of pooling whose weights are made from variances. Where a site's variance may share noise with its estimate,
# weights come from sizes, the scales of the noises, and one sampling variance per person for all sites.
_BY_VARIANCE = ("mvagg", "ivw", "random_effects")


def pool(
    results: Sources,
    *,
    method: str = "mvagg",
    level: float = 0.95,
    weight_limits: WeightLimits | None = None,
) -> PooledResult | MeasureResult:
    """Return the average of the private effects of several sites; spends nothing.

    Ratios, odds ratios and lifts are those of the arms' means, averaged by size; numbers needed to treat that sites
    were asked for are those of the average difference, and `as_measure("nnt")` of pooled ratios gives them too.

    Args:
        results: results of `ate`, what their `to_dict` gave, or paths of JSON files; a mapping names the
            sites. All answer the same question, and nobody is in two sites.
        method: "mvagg" (the subset of sites with the least variance, weights by size), "ivw" (all sites,
            inverse variances), "all" (all sites, weights by size), "largest" (that site alone) or
            "random_effects" (the mean of sites whose effects may differ; those drowned in noise are left out).
        level: confidence level of the interval.
        weight_limits: for sites that do not trust each other: the most weight of each. Weights then follow sizes
            and the scales of the noise, not the variances that sites report.
    """
    level = check_level(level)
    _check_method(method)
    sites = read_sites(results, measures=True)
    if not any(isinstance(result, MeasureResult) for _, result in sites):
        return _averaged(sites, method, level, weight_limits)
    check_agreement(sites)
    if all(isinstance(result, MeasureResult) and result.means is not None for _, result in sites):
        return pool_measures(sites, _sizes(sites), method, level, weight_limits)
    differences = [(name, difference_result(cast("MeasureResult", result))) for name, result in sites]
    return needed_of(_pooled(differences, method, level, weight_limits))


def pool_effects(
    results: Sources, *, method: str, level: float, weight_limits: WeightLimits | None
) -> PooledResult:
    """Return the same for differences alone; other measures are refused."""
    level = check_level(level)
    _check_method(method)
    return _averaged(read_sites(results), method, level, weight_limits)


def _check_method(method: object) -> None:
    if not isinstance(method, str) or method not in POOLING_METHODS:
        raise refusal("CV-P506", pooling_methods=" or ".join(map(repr, POOLING_METHODS)), method=method)


def _averaged(sites: Named, method: str, level: float, weight_limits: WeightLimits | None) -> PooledResult:
    check_agreement(sites)
    found = _pooled(sites, method, level, weight_limits)
    if weight_limits is not None:
        return found
    return replace(found, repeat=repeat_of_pool([name for name, _ in sites], method, level))


def _pooled(sites: Named, method: str, level: float, bounds: WeightLimits | None) -> PooledResult:
    estimates = np.array([result.estimate for _, result in sites])
    known = [result.uncertainty for _, result in sites]
    found = heterogeneity(estimates, np.array([released_variance(each) for each in known]))
    differing, sizes = method == "random_effects", _sizes(sites)
    tau_squared = found.tau_squared if differing else 0.0
    # A weight does not follow a number that may share noise with the estimate, or that nobody can check.
    separate = bounds is None and all(result.variance_apart for _, result in sites)
    steadied = steadied_variances(known, sizes, common=not separate)
    variances = steadied + np.array([other_variance(each) for each in known])
    if not separate:
        variances += unsure_variances(known)
    if bounds is not None:
        variances = np.maximum(variances, bounds.least(sites))
    weights = pooling_weights(method, sizes, variances, tau_squared)
    if bounds is not None:
        weights = held_weights(weights, bounds.most(sites), variances)
    uncertainty = PooledUncertainty(
        sites=tuple(known),
        weights=tuple(map(float, weights)),
        steadied=tuple(map(float, steadied)) if method in _BY_VARIANCE else None,
        between=tau_squared,
        between_sites=ErrorBetweenSites.of(estimates[weights > 0]) if differing else None,
    )
    weighed = list(zip(sites, weights, strict=True))
    first = sites[0][1]
    return PooledResult(
        # An average of noisy numbers may lie where no effect can; cutting it brings it nearer to any that can.
        estimate=within_limits(float(weights @ estimates), _limits(sites)),
        uncertainty=uncertainty,
        sites=tuple(
            PooledSite(name, float(weight), int(size), result)
            for (name, result), weight, size in zip(sites, weights, sizes, strict=True)
        ),
        heterogeneity=found,
        guarantee=pooled_guarantee(sites),
        spent=pooled_spending(sites),
        estimand=first.estimand,
        method=method,
        treatment=first.treatment,
        outcome=first.outcome,
        level=level,
        releases=tuple((name, f"{result.method}, {result.spent}") for name, result in sites),
        details={"rows": int(sizes.sum()), "sites": len(sites)},
        not_covered=pooled_caveats(sites, [name for (name, _), weight in weighed if weight == 0]),
        limits=_limits(sites),
        weight_limits=bounds,
        **pooled_opening([each for each, weight in weighed if weight > 0]),
    )


def within_limits(estimate: float, limits: Ends | None) -> float:
    """Return an estimate cut to what the effect can be at all."""
    return within((estimate, estimate), limits)[0]


def _limits(sites: Named) -> Ends | None:
    """Return what an average of the sites' effects can be at all, None where a site does not say."""
    known = [result.limits for _, result in sites if result.limits is not None]
    if len(known) < len(sites):
        return None
    return min(low for low, _ in known), max(high for _, high in known)


def _sizes(sites: Named) -> NDArray[np.float64]:
    """Return the public numbers of rows (J,)."""
    rows = [rows_of(result) for _, result in sites]
    for (name, result), known in zip(sites, rows, strict=True):
        if known is None:
            raise refusal("CV-P505", name=name, method=result.method)
    return np.array(rows, dtype=np.float64)
