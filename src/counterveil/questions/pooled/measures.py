"""Ratios, odds ratios and lifts over several sites, from the means of their arms, and numbers needed to treat."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from counterveil.errors import refusal
from counterveil.inference import held_weights, pooling_weights
from counterveil.inference.measures import ApartMeans, JointMeans
from counterveil.inference.pooled_means import PooledMeans
from counterveil.inference.pooling import noise_variance
from counterveil.numerics.arrays import Floats
from counterveil.questions.pooled.agreement import (
    Named,
    pooled_caveats,
    pooled_guarantee,
    pooled_opening,
    pooled_spending,
)
from counterveil.results.effect import Effect, Linear
from counterveil.results.measure_words import DIFFERENCE, NEEDED
from counterveil.results.measures import (
    MeasureResult,
    Needed,
    difference_of,
    measure_terms,
    refuse_of_difference,
)
from counterveil.results.result import OneEffect
from counterveil.results.stored import reads_facts
from counterveil.settings import WeightLimits

# Ways of pooling whose weights are public: sizes, and the scales of the noise.
METHODS = {
    "mvagg": "pooled by size: the subset of sites of least variance",
    "all": "pooled by size: all sites",
    "largest": "of the largest site alone",
}


def pool_measures(
    sites: Named, sizes: Floats, method: str, level: float, bounds: WeightLimits | None
) -> MeasureResult:
    """Return the measure of the arms' means, averaged over sites by size; `sites` are all results of a measure."""
    if method not in METHODS:
        raise refusal("CV-P508", methods=" or ".join(map(repr, METHODS)), method=method)
    means = [_means(result) for _, result in sites]
    weights = _weights(sites, _public_variances(means, sizes), sizes, method, bounds)
    kept = [place for place, weight in enumerate(weights) if weight > 0]
    pooled = PooledMeans(tuple(means), tuple(map(float, weights)), tuple(name for name, _ in sites))
    first = sites[0][1]
    assert isinstance(first, MeasureResult)
    said: dict[str, float | str] = {"rows": int(sizes.sum()), "sites": len(sites)}
    said |= {"mean_treated": pooled.values[0], "mean_control": pooled.values[1]}
    if bounds is not None:
        said["most_weight"] = bounds.most_weight
    own = {f"weight_{name}": float(weight) for (name, _), weight in zip(sites, weights, strict=True)}
    return MeasureResult.of(
        first.measure,
        pooled,
        difference_of(pooled, first.estimand, level),
        guarantee=pooled_guarantee(sites),
        site_sources=tuple(result._source() for _, result in sites),
        method=f"means of both arms, {METHODS[method]}",
        treatment=first.treatment,
        outcome=first.outcome,
        level=level,
        spent=pooled_spending(sites),
        estimand=first.estimand,
        releases=tuple((name, f"{result.method}, {result.spent}") for name, result in sites),
        not_covered=pooled_caveats(
            sites, [name for place, (name, _) in enumerate(sites) if place not in kept]
        ),
        details=said | own,
        diagnostics={},
        **pooled_opening([sites[place] for place in kept]),
    )


def _weights(
    sites: Named, variances: Floats, sizes: Floats, method: str, bounds: WeightLimits | None
) -> Floats:
    """Return the weights of the sites, none above its limit."""
    if bounds is None:
        return pooling_weights(method, sizes, variances)
    least = np.maximum(variances, bounds.least(sites))
    return held_weights(pooling_weights(method, sizes, least), bounds.most(sites), least)


def _means(result: object) -> ApartMeans | JointMeans:
    assert isinstance(result, MeasureResult)
    assert isinstance(result.means, ApartMeans | JointMeans)
    return result.means


def _public_variances(means: list[ApartMeans | JointMeans], sizes: Floats) -> Floats:
    """Return what differences are expected to vary by, from public numbers alone.

    Of outcomes that lie half at either end of their range, in arms of one size; noise is as announced.
    """
    noise = np.array([_announced(one) for one in means])
    width = np.array([one.range[1] - one.range[0] for one in means])
    return np.asarray(noise + width**2 / sizes)


def _announced(means: ApartMeans | JointMeans) -> float:
    """Return the variance of noise whose scale is public."""
    if isinstance(means, JointMeans):
        # The noise of the difference follows the released share treated; that of the mean follows the budget alone,
        # and in arms of one size both are about as large.
        return noise_variance(means.mean_noise)
    return sum(noise_variance(known.noise) for known in means.known)


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class PooledNeeded(MeasureResult):
    """The number needed to treat of an average of differences; `pooled` is that average with its sites."""

    pooled: OneEffect

    @property
    def table(self) -> tuple[Effect, ...]:
        """The number of every site, and that of the average."""
        return tuple(_needed(one) for one in self.pooled.table)

    def as_measure(self, measure: str) -> OneEffect:
        """Return the average of the differences, or the result itself; ratios need the means of both arms."""
        refuse_of_difference(self, measure)
        return self.pooled if measure == DIFFERENCE else self

    def _rows(self) -> list[dict[str, Any]]:
        """Return a dictionary for each site (`type` is "study") and one for the average ("summary")."""
        rows = zip(self.pooled._rows(), self.table, strict=True)
        return [row | effect.row() | {"measure": NEEDED} for row, effect in rows]

    def _numbers(self) -> dict[str, Any]:
        return self.pooled._numbers() | {"measure": NEEDED}

    def _sentence(self) -> str:
        return f"{self._sentence_in('sites')}; differences are averaged over sites with the weights shown"

    def _shown(self) -> dict[str, Any]:
        found = self.pooled._shown()
        kept = {name: found[name] for name in ("heterogeneity", "prediction") if name in found}
        return MeasureResult._shown(self) | kept

    def report_facts(self) -> dict[str, Any]:
        """Return what reports and pictures show: a row for every site and one for all, and how far sites differ."""
        from counterveil.questions.pooled.pool import pooled_notes  # which makes results of this kind

        facts, average = MeasureResult.report_facts(self), self.pooled.report_facts()
        shown = zip(average["effects"], self.table, strict=True)
        kept = ("weight", "summary")
        rows = [effect.facts() | {name: row[name] for name in kept if name in row} for row, effect in shown]
        return facts | {
            "sites": average["sites"],
            "effects": rows,
            # Sites are compared, and the next one is predicted, on the scale of the difference.
            "notes": [*facts["notes"], *pooled_notes(average, "difference")],
        }

    @classmethod
    @reads_facts
    def from_dict(cls, facts: dict[str, Any]) -> PooledNeeded:
        """Return the result written by `to_dict`, pooled again from the sites' differences in it."""
        from counterveil.questions.pooled.pool import PooledResult  # which makes results of this kind

        return needed_of(PooledResult.from_dict(facts))


def needed_of(pooled: OneEffect) -> PooledNeeded:
    """Return the number needed to treat of an average of differences, with the weights of the sites."""
    terms = measure_terms(pooled)
    terms["method"] = f"differences, pooled: {pooled._shown()['method']}"
    weights = {f"weight_{row['site']}": row["weight"] for row in pooled._columns() if row["type"] == "study"}
    terms["details"] = pooled.details | weights
    return PooledNeeded.of(NEEDED, None, pooled.effect, pooled=pooled, **terms)


def _needed(effect: Effect) -> Effect:
    assert isinstance(effect.known, Linear)
    return replace(effect, known=Needed(effect.known))
