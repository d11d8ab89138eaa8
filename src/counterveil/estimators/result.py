"""The answer to a question: an effect, its uncertainty, its promise and its price."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

from counterveil.estimators.estimated import (
    Ends,
    Estimated,
    around,
    ends_from,
    estimate_facts,
    estimate_row,
    within,
)
from counterveil.estimators.laws import uncertainty_from_dict, uncertainty_to_dict
from counterveil.estimators.promise import (
    Promised,
    Shown,
    opening_facts,
    promise_facts,
    promise_from_dict,
    promise_row,
)
from counterveil.estimators.read_back import reads_facts
from counterveil.inference import Uncertainty
from counterveil.privacy import Budget, Estimand, Guarantee


class OneEffect(Estimated, Shown):
    """One released effect, of one table or pooled from several."""

    __slots__ = ()

    guarantee: Guarantee
    spent: Budget
    estimand: Estimand
    treatment: str
    outcome: str
    interval_of: str | None

    def interval(self, level: float | None = None) -> Ends:
        """Return the two ends of an interval that covers sampling error and privacy noise together.

        One for the effect is cut to what the outcome's declared range allows; one for something else is not.
        """
        ends = self.uncut_interval(level)
        return ends if self.interval_of is not None else within(ends, self.limits)

    @property
    def p_value(self) -> float:
        """Two-sided p-value of no effect, noise included; below 1 - level when the interval leaves out 0."""
        return self.uncertainty.p_value(self.estimate, self.level)


def one_effect_row(one: OneEffect) -> dict[str, float | str]:
    """Return the effect, its interval and its promise with the names that `broom` uses."""
    low, high = one.interval()
    return (
        {"term": one.treatment, "estimand": one.estimand.value}
        | estimate_row(one.estimate, one.std_error, one.p_value)
        | {"conf.low": low, "conf.high": high, "conf.level": one.level}
        | {"conf.of": one.interval_of or "the effect"}
        | promise_row(one.guarantee, one.spent)
    )


def one_effect_facts(one: OneEffect) -> dict[str, Any]:
    """Return what was asked, the effect and its intervals as JSON-ready facts."""
    low, high = around(one.estimate, one.uncertainty.naive_half_width(one.level))
    return (
        {"estimand": one.estimand.value, "treatment": one.treatment, "outcome": one.outcome}
        | estimate_facts(one.estimate, one.std_error, one.level, one.interval())
        | {"interval_without_noise": {"low": low, "high": high}, "p_value": one.p_value}
    )


@dataclass(frozen=True, slots=True)
class Result(OneEffect, Promised):
    """A released effect; nothing in it is private any more and nothing it does spends budget.

    `details` are single figures, `diagnostics` tables (balance, overlap): where covariates and
    treatments are public they are free, at record level they are not shown. `interval_of` is None where
    the interval is one for the effect; otherwise it says what the interval is for instead, and every
    rendering starts by saying that there is none for the effect. `condition` is None for intervals that
    stand by themselves; otherwise it says under which declared bound an unadjusted one covers, and every
    rendering starts with it. `variance_apart` says that the variance was released with noise of its own,
    sharing none with the estimate, or that it is public: only then may it make the weight of a site.
    `limits` are what an effect can be at all, plus or minus the width of the outcome's declared range: intervals
    for the effect are cut to them, while `estimate`, `std_error` and `uncertainty` are as released.
    """

    estimate: float
    uncertainty: Uncertainty
    guarantee: Guarantee
    spent: Budget
    estimand: Estimand
    method: str
    treatment: str
    outcome: str
    level: float
    releases: tuple[tuple[str, str], ...]
    not_covered: tuple[str, ...]
    details: dict[str, float | str] = field(default_factory=dict)
    diagnostics: dict[str, Any] = field(default_factory=dict)
    interval_of: str | None = None
    condition: str | None = None
    variance_apart: bool = False
    limits: Ends | None = None

    @property
    def caution(self) -> str | None:
        """What every rendering says first: that no interval is for the effect, or what one depends on."""
        if self.interval_of is not None:
            return f"NO VALID INTERVAL FOR THE EFFECT: the interval is for {self.interval_of}"
        return None if self.condition is None else f"NOT ADJUSTED: {self.condition}"

    def tidy(self) -> list[dict[str, float | str]]:
        """Return one row with the names that `broom` uses, ready for a data frame."""
        return [one_effect_row(self)]

    def to_dict(self) -> dict[str, Any]:
        """Return everything as JSON-ready facts; `Result.from_dict` reads them back."""
        said = {"caution": self.caution, "interval_of": self.interval_of, "condition": self.condition}
        facts = opening_facts(self.guarantee, **said) | {"method": self.method} | one_effect_facts(self)
        return facts | self._kept()

    def stored(self) -> dict[str, Any]:
        """Return what the ledger keeps: numbers as released and public parameters, from which all else follows."""
        return {
            "method": self.method,
            "estimand": self.estimand.value,
            "treatment": self.treatment,
            "outcome": self.outcome,
            "estimate": self.estimate,
            "interval": {"level": self.level},
            "interval_of": self.interval_of,
            "condition": self.condition,
        } | self._kept()

    def _kept(self) -> dict[str, Any]:
        known = self.uncertainty
        return promise_facts(self) | {
            "diagnostics": self.diagnostics,
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
            method=facts["method"],
            treatment=facts["treatment"],
            outcome=facts["outcome"],
            level=facts["interval"]["level"],
            diagnostics=dict(facts["diagnostics"]),
            interval_of=facts.get("interval_of"),
            condition=facts.get("condition"),
            variance_apart=known["variance_apart"],
            limits=ends_from(known["limits"]),
            **promise_from_dict(facts),
        )
