"""Numbers needed to treat over several sites, from the average of their differences."""

from __future__ import annotations

from counterveil.inference import Uncertainty
from counterveil.privacy import Unit
from counterveil.results.effect import Linear
from counterveil.results.measures import NEEDED, TERMS, MeasureResult
from counterveil.results.result import OneEffect, Result


def plain_difference(result: MeasureResult) -> Result:
    """Return the released difference that a measure is made of, as a result of its own."""
    known = result.difference.known
    assert isinstance(known, Linear)
    assert isinstance(known.uncertainty, Uncertainty)
    return Result(
        estimate=known.estimate,
        uncertainty=known.uncertainty,
        limits=known.limits,
        # Private outcomes have a variance with noise of its own; contrasts of records share theirs with it.
        variance_apart=result.guarantee.unit is Unit.OUTCOME,
        **{name: getattr(result, name) for name in TERMS},
    )


def needed_of(pooled: OneEffect, method: str, weights: dict[str, float]) -> MeasureResult:
    """Return the number needed to treat of an average of differences, with the weights of the sites."""
    terms = {name: getattr(pooled, name) for name in TERMS}
    terms["method"] = f"differences, pooled: {method}"
    terms["details"] = pooled.details | {f"weight_{name}": weight for name, weight in weights.items()}
    return MeasureResult.of(NEEDED, None, pooled.effect, **terms)
