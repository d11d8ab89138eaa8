"""The answer about a ratio: sums over sums of both arms, and their difference."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

from counterveil.inference import Uncertainty
from counterveil.inference.measures import NoisyRatio, RatioDifference
from counterveil.numerics.arrays import Ends
from counterveil.report.numbers import rounded
from counterveil.results.codec import noise_from_dict
from counterveil.results.effect import Effect, check_level
from counterveil.results.measure_words import DIFFERENCE
from counterveil.results.measures import check_measure, no_measure
from counterveil.results.result import OneEffect, Result


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class RatioResult(Result):
    """A released difference of two arms' ratios; nothing it does spends budget.

    `ratios` are those of the treated and of the controls. Intervals are Fieller's for each, joined by Zou and Donner's
    rule; `uncertainty` is that of the delta method, with normal noise of the same variance.
    """

    _DERIVED: ClassVar[tuple[str, ...]] = ("estimate", "uncertainty")

    ratios: tuple[Effect, ...]

    @property
    def effect(self) -> Effect:
        """The difference with its error."""
        one, other = (each.known for each in self.ratios)
        assert isinstance(one, NoisyRatio)
        assert isinstance(other, NoisyRatio)
        return Effect("difference", RatioDifference(one, other), self.level)

    def as_measure(self, measure: str) -> OneEffect:
        """Return the result itself for "difference"; a difference of ratios has no other measure (CV-P686)."""
        if check_measure(measure) == DIFFERENCE:
            return self
        raise no_measure(measure, f"a ratio of sums, {self.outcome}")

    def untruncated_interval(self, level: float | None = None) -> Ends:
        """Return the interval, which is not cut to a range of outcomes: a ratio may lie outside it."""
        return self.effect.interval(self.level if level is None else check_level(level))

    @classmethod
    def of(cls, ratios: list[Effect], **terms: Any) -> RatioResult:
        """Return the result of both arms' ratios; `terms` are the provenance and the estimand."""
        one, other = (each.known for each in ratios)
        if not isinstance(one, NoisyRatio) or not isinstance(other, NoisyRatio):
            raise ValueError("both arms have ratios")
        difference = RatioDifference(one, other)
        variance, noise = difference.sampling_sd**2, difference.noise_sd
        normal = {"mechanism": "gaussian", "sensitivity": str(Fraction(noise)), "mu": "1"}
        known = Uncertainty(noise_from_dict(normal), variance, variance)
        return cls(ratios=tuple(ratios), estimate=difference.estimate, uncertainty=known, **terms)

    def _shown(self) -> dict[str, Any]:
        by_arm = ", ".join(
            f"{each.name} {rounded(each.estimate, each.std_error.total)}" for each in self.ratios
        )
        shown = {name: value for name, value in self.effect.facts().items() if name != "name"}
        return shown | {
            "sentence": f"{self.outcome}, treated minus control",
            "notes": [("Ratios", by_arm)],
        }

    @classmethod
    def _made(cls, ratios: tuple[Effect, ...], **terms: Any) -> RatioResult:
        if len(ratios) != 2:
            raise ValueError("there are two arms")
        return cls.of([*ratios], **terms)
