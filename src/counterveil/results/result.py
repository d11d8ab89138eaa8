"""The answer about one effect."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from counterveil.inference import PooledUncertainty, Uncertainty
from counterveil.privacy import Estimand
from counterveil.results.effect import Effect, Ends, Linear, StdError, around, check_level, ends_from
from counterveil.results.released import Released, provenance_from_dict
from counterveil.results.saved import reads_facts
from counterveil.results.uncertainty import uncertainty_from_dict, uncertainty_to_dict


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class OneEffect(Released):
    """One released effect, of one table or pooled from several.

    `limits` are what an effect can be at all, plus or minus the width of the outcome's declared range: intervals
    for the effect are cut to them, while `estimate`, `std_error` and `uncertainty` are as released.
    """

    estimate: float
    uncertainty: Uncertainty | PooledUncertainty
    estimand: Estimand
    limits: Ends | None = None

    @property
    def effect(self) -> Effect:
        """The effect with its error; an interval for something else is not cut to what the effect can be."""
        limits = None if self.interval_of is not None else self.limits
        return Effect(self.estimand.value, Linear(self.estimate, self.uncertainty, limits), self.level)

    @property
    def table(self) -> tuple[Effect, ...]:
        """The effect, alone."""
        return (self.effect,)

    @property
    def std_error(self) -> StdError:
        """Standard error: total, sampling part, privacy-noise part."""
        return self.effect.std_error

    @property
    def p_value(self) -> float:
        """Two-sided p-value of no effect, noise included; below 1 - level when the interval leaves out 0."""
        return self.effect.p_value

    def interval(self, level: float | None = None) -> Ends:
        """Return the two ends of an interval that covers sampling error and privacy noise together.

        One for the effect is cut to what the outcome's declared range allows; one for something else is not.
        """
        return self.effect.interval(level)

    def uncut_interval(self, level: float | None = None) -> Ends:
        """Return the interval before it is cut: as far on either side of the estimate."""
        chosen = self.level if level is None else check_level(level)
        return around(self.estimate, self.uncertainty.half_width(chosen))

    def _columns(self) -> list[dict[str, Any]]:
        return [{"estimand": self.estimand.value}]

    def _shown(self) -> dict[str, Any]:
        return {name: value for name, value in self.effect.facts().items() if name != "name"}

    def report_facts(self) -> dict[str, Any]:
        """Return what reports and pictures show: the facts of `to_dict`, with a row for the effect."""
        return self.to_dict() | {"effects": [self.effect.facts()]}


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Result(OneEffect):
    """A released effect; nothing in it is private any more and nothing it does spends budget.

    `variance_apart` says that the variance was released with noise of its own, sharing none with the estimate, or
    that it is public: only then may it make the weight of a site.
    """

    uncertainty: Uncertainty
    variance_apart: bool = False

    def _numbers(self) -> dict[str, Any]:
        known = self.uncertainty
        return {
            "estimand": self.estimand.value,
            "estimate": self.estimate,
            "uncertainty": uncertainty_to_dict(known)
            | {"variance_apart": self.variance_apart, "extra": known.extra, "bias": known.bias}
            | {"limits": None if self.limits is None else list(self.limits)},
        }

    @classmethod
    @reads_facts
    def from_dict(cls, facts: dict[str, Any]) -> Result:
        """Return the result written by `to_dict` or `stored`."""
        known = facts["uncertainty"]
        return cls(
            estimate=facts["estimate"],
            uncertainty=replace(uncertainty_from_dict(known), extra=known["extra"], bias=known["bias"]),
            estimand=Estimand(facts["estimand"]),
            variance_apart=known["variance_apart"],
            limits=ends_from(known["limits"]),
            **provenance_from_dict(facts),
        )
