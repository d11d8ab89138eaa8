"""What is known about one released effect of a group: a linear estimate, a noisy ratio, or two of them."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from math import hypot, inf
from typing import Any, Protocol

from scipy.special import ndtri

from counterveil.estimators.estimated import around, within
from counterveil.estimators.laws import uncertainty_from_dict, uncertainty_to_dict
from counterveil.inference import Uncertainty
from counterveil.inference.ratio import NoisyRatio, RatioDifference, p_value


class Known(Protocol):
    """An estimate with its interval; every number in it is public or released."""

    @property
    def estimate(self) -> float:
        """The released effect."""
        ...

    @property
    def sampling_sd(self) -> float:
        """Standard deviation of the sampling error."""
        ...

    @property
    def noise_sd(self) -> float:
        """Standard deviation of the privacy noise."""
        ...

    def interval(self, level: float) -> tuple[float, float]:
        """Return the two ends of an interval of this level."""
        ...


@dataclass(frozen=True, slots=True)
class LinearKnown:
    """A number with its own uncertainty, which lies in [-limit, limit] for certain."""

    estimate: float
    uncertainty: Uncertainty
    limit: float = inf

    @property
    def sampling_sd(self) -> float:
        """Standard deviation of the sampling error."""
        return self.uncertainty.sampling_sd

    @property
    def noise_sd(self) -> float:
        """Standard deviation of the privacy noise."""
        return self.uncertainty.noise_sd

    def interval(self, level: float) -> tuple[float, float]:
        """Return the two ends of an interval of this level."""
        return within(around(self.estimate, self.uncertainty.half_width(level)), (-self.limit, self.limit))


def p_value_of(known: Known, level: float) -> float:
    """Return the two-sided p-value of no effect, noise included; below 1 - level where the interval leaves out 0."""
    if isinstance(known, LinearKnown):
        return known.uncertainty.p_value(known.estimate, level)
    return p_value(known.interval)


def total_sd(known: Known) -> float:
    """Return the standard deviation of sampling error and noise together."""
    return hypot(known.sampling_sd, known.noise_sd)


def naive_interval(known: Known, level: float) -> tuple[float, float]:
    """Return the interval that ignores the noise: too short, for comparison only."""
    return around(known.estimate, -float(ndtri((1 - level) / 2)) * known.sampling_sd)


def known_to_dict(known: Known) -> dict[str, Any]:
    """Return what is known as JSON-ready facts; `known_from_dict` reads them back."""
    if isinstance(known, LinearKnown):
        facts = {"kind": "linear", "estimate": known.estimate, "limit": _written(known.limit)}
        return facts | uncertainty_to_dict(known.uncertainty)
    if isinstance(known, RatioDifference):
        return {"kind": "difference", "one": _ratio(known.one), "other": _ratio(known.other)}
    assert isinstance(known, NoisyRatio)
    return {"kind": "ratio"} | _ratio(known)


def known_from_dict(facts: dict[str, Any]) -> Known:
    """Return what `known_to_dict` wrote."""
    rest = {name: value for name, value in facts.items() if name != "kind"}
    if facts["kind"] == "linear":
        return LinearKnown(rest["estimate"], uncertainty_from_dict(rest), _read(rest["limit"]))
    if facts["kind"] == "difference":
        return RatioDifference(_from(rest["one"]), _from(rest["other"]))
    return _from(rest)


def _ratio(known: NoisyRatio) -> dict[str, Any]:
    return asdict(known) | {"limit": _written(known.limit)}


def _from(facts: dict[str, Any]) -> NoisyRatio:
    return NoisyRatio(**(facts | {"limit": _read(facts["limit"])}))


def _written(limit: float) -> float | None:
    # JSON knows no infinity.
    return None if limit == inf else limit


def _read(limit: float | None) -> float:
    return inf if limit is None else limit
