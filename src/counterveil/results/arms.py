"""The answer about several arms: a mean for each, an effect for each but the reference, one promise."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from counterveil.data.labels import Label
from counterveil.inference import NoiseLaw, SumOfLaws, Uncertainty, adjusted_p
from counterveil.privacy import Budget, Estimand, Guarantee
from counterveil.results.estimated import (
    Ends,
    Estimated,
    StdError,
    around,
    ends_from,
    estimate_facts,
    level_of_one,
    one_of_several_facts,
    one_of_several_row,
    uncertainty_from_dict,
    uncertainty_to_dict,
    within,
)
from counterveil.results.result import (
    Answered,
    Shown,
    answer_facts,
    answer_from_dict,
    opening_facts,
    promise_facts,
    promise_row,
)
from counterveil.results.saved import reads_facts


@dataclass(frozen=True, slots=True)
class ArmEstimate(Estimated):
    """A released number about one arm: the mean outcome everybody would have in it."""

    arm: Label
    rows: int
    estimate: float
    uncertainty: Uncertainty
    level: float
    limits: Ends | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return the arm, its number and its interval as JSON-ready facts."""
        named = {"arm": self.arm, "rows": self.rows}
        facts = estimate_facts(self.estimate, self.std_error, self.level, self.interval())
        return named | facts | self._known()

    def stored(self) -> dict[str, Any]:
        """Return the arm and its number as released, without its interval."""
        return {"arm": self.arm, "rows": self.rows, "estimate": self.estimate} | self._known()

    def _known(self) -> dict[str, Any]:
        limits = None if self.limits is None else list(self.limits)
        return {"uncertainty": uncertainty_to_dict(self.uncertainty), "limits": limits}


@dataclass(frozen=True, slots=True)
class ArmEffect:
    """The effect of one arm against the reference, one of `contrasts` such effects.

    Its noise is the sum of two independent ones, that of the arm's mean and that of the reference's.
    """

    mean: ArmEstimate
    reference: ArmEstimate
    contrasts: int

    @property
    def arm(self) -> Label:
        """The arm's label."""
        return self.mean.arm

    @property
    def level(self) -> float:
        """Confidence level of the intervals."""
        return self.mean.level

    @property
    def estimate(self) -> float:
        """The released effect: mean of the arm minus mean of the reference."""
        return self.mean.estimate - self.reference.estimate

    @property
    def uncertainty(self) -> Uncertainty:
        """What is known about the effect's error."""
        one, other = self.mean.uncertainty, self.reference.uncertainty
        return Uncertainty(
            noise=_sum(one.noise, other.noise),
            variance=one.variance + other.variance,
            variance_cap=one.variance_cap + other.variance_cap,
            variance_noise=_sum(one.variance_noise, other.variance_noise),
        )

    @property
    def limits(self) -> Ends | None:
        """What a difference of two means can be at all, None where that of a mean is not known."""
        one, other = self.mean.limits, self.reference.limits
        return None if one is None or other is None else (one[0] - other[1], one[1] - other[0])

    @property
    def std_error(self) -> StdError:
        """Standard error: total, sampling part, privacy-noise part."""
        return StdError.of(self.uncertainty)

    def interval(self, level: float | None = None, simultaneous: bool = False) -> tuple[float, float]:
        """Return an interval for this effect; with `simultaneous`, all effects' intervals hold together."""
        chosen = level_of_one(self, self.contrasts, level, simultaneous)
        return within(around(self.estimate, self.uncertainty.half_width(chosen)), self.limits)

    @property
    def p_value(self) -> float:
        """Two-sided p-value of no effect, noise included."""
        return self.uncertainty.p_value(self.estimate, self.level)

    @property
    def adjusted_p_value(self) -> float:
        """The p-value for looking at all effects; below 1 - level when the simultaneous interval leaves out 0."""
        each = level_of_one(self, self.contrasts, None, simultaneous=True)
        return adjusted_p(self.uncertainty.p_value(self.estimate, each), self.contrasts)

    def to_dict(self) -> dict[str, Any]:
        """Return the effect and both its intervals as JSON-ready facts."""
        bare = around(self.estimate, self.uncertainty.naive_half_width(self.level))
        return {"arm": self.arm, "reference": self.reference.arm} | one_of_several_facts(self, bare)


@dataclass(frozen=True, slots=True)
class ArmsResult(Answered, Shown):
    """Released means of several arms, the reference first; nothing it does spends budget."""

    means: tuple[ArmEstimate, ...]
    guarantee: Guarantee
    spent: Budget
    method: str
    treatment: str
    outcome: str
    level: float
    releases: tuple[tuple[str, str], ...]
    not_covered: tuple[str, ...]
    details: dict[str, float | str] = field(default_factory=dict)
    diagnostics: dict[str, Any] = field(default_factory=dict)

    @property
    def reference(self) -> Label:
        """The arm that the others are compared with."""
        return self.means[0].arm

    @property
    def effects(self) -> tuple[ArmEffect, ...]:
        """The effect of every other arm against the reference, in the order of the study."""
        reference, *others = self.means
        return tuple(ArmEffect(mean, reference, len(others)) for mean in others)

    def interval(
        self, level: float | None = None, simultaneous: bool = False
    ) -> dict[Label, tuple[float, float]]:
        """Return every effect's interval by arm; with `simultaneous` they hold together (Šidák)."""
        return {effect.arm: effect.interval(level, simultaneous) for effect in self.effects}

    def tidy(self) -> list[dict[str, float | str]]:
        """Return one row an effect with the names that `broom` uses, ready for a data frame."""
        return [self._row(effect) for effect in self.effects]

    def _row(self, effect: ArmEffect) -> dict[str, float | str]:
        contrast = f"{effect.arm} - {self.reference}"
        return (
            {"term": self.treatment, "contrast": contrast, "estimand": Estimand.ATE.value}
            | one_of_several_row(effect)
            | promise_row(self.guarantee, self.spent)
        )

    def to_dict(self) -> dict[str, Any]:
        """Return everything as JSON-ready facts; `ArmsResult.from_dict` reads them back."""
        facts = {
            "method": self.method,
            "estimand": Estimand.ATE.value,
            "treatment": self.treatment,
            "outcome": self.outcome,
            "reference": self.reference,
            "level": self.level,
            "effects": [effect.to_dict() for effect in self.effects],
            "means": [mean.to_dict() for mean in self.means],
        }
        diagnostics = {"diagnostics": self.diagnostics}
        return opening_facts(self.guarantee) | facts | promise_facts(self) | diagnostics

    def stored(self) -> dict[str, Any]:
        """Return what the ledger keeps: numbers as released and public parameters, from which all else follows."""
        own = {"means": [mean.stored() for mean in self.means], "diagnostics": self.diagnostics}
        return answer_facts(self) | own

    @classmethod
    @reads_facts
    def from_dict(cls, facts: dict[str, Any]) -> ArmsResult:
        """Return the result written by `to_dict` or `stored`."""
        level = facts["level"]
        return cls(
            means=tuple(
                ArmEstimate(
                    one["arm"],
                    one["rows"],
                    one["estimate"],
                    uncertainty_from_dict(one["uncertainty"]),
                    level,
                    ends_from(one["limits"]),
                )
                for one in facts["means"]
            ),
            diagnostics=dict(facts["diagnostics"]),
            **answer_from_dict(facts),
        )


def _sum(one: NoiseLaw | None, other: NoiseLaw | None) -> NoiseLaw | None:
    return None if one is None or other is None else SumOfLaws(one, other)
