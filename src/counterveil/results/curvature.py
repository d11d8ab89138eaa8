"""The second interval of an effect, which allows for curvature that noise hides; computed from released numbers."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from counterveil.inference import Uncertainty
from counterveil.privacy.caveats import Curvature, LinearScores
from counterveil.results.effect import interval_facts

if TYPE_CHECKING:
    from counterveil.results.result import Result

# Keys of `details`: the bias that the interval allows for curvature that noise hides, and that the second allows for.
HIDDEN_BIAS, UNDETECTED_BIAS = "hidden_bend_bias", "undetected_bend_bias"
# A second interval that is longer than the first by less than this factor says nothing more.
_LONGER = 1.25


def wider(known: Uncertainty, details: dict[str, float | str]) -> Uncertainty | None:
    """Return what the second interval is built on, None where no curvature is in question."""
    allowed, larger = (details.get(name) for name in (HIDDEN_BIAS, UNDETECTED_BIAS))
    if not isinstance(allowed, float) or not isinstance(larger, float):
        return None
    # The first allowance is in the variance already: the larger one stands in its place.
    return replace(known, extra=known.extra + max(larger - allowed, 0.0) * (larger + allowed))


def curvature_columns(result: Result) -> dict[str, float]:
    """Return the second interval as columns of a data frame; none where it is not shown."""
    ends = _shown(result)
    return {} if ends is None else {"conf_low_curvature": ends[0], "conf_high_curvature": ends[1]}


def curvature_facts(result: Result) -> dict[str, Any]:
    """Return the second interval as JSON-ready facts; none where it is not shown."""
    ends = _shown(result)
    return {} if ends is None else {"curvature_interval": interval_facts(result.level, ends)}


def _shown(result: Result) -> tuple[float, float] | None:
    """Return the second interval where it is a quarter longer than the first, or curvature is said to be in doubt."""
    known = wider(result.uncertainty, result.details)
    if known is None:
        return None
    longer = known.half_width(result.level) > _LONGER * result.uncertainty.half_width(result.level)
    doubted = isinstance(result.assumes, LinearScores) and result.assumes.curvature is Curvature.UNDETECTED
    return result.curvature_interval() if longer or doubted else None
