"""The answer of an event study: an effect for every period but the reference, and a test of the periods before."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

from counterveil.data.labels import Label
from counterveil.inference import NoiseDistribution, NoiseSum, Uncertainty
from counterveil.numerics.arrays import Ends
from counterveil.privacy import Estimand
from counterveil.report.numbers import probability
from counterveil.results.effect import Effect, Linear, check_table
from counterveil.results.released import ReleasedAnswer


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class EventStudyResult(ReleasedAnswer):
    """Released effects by period, relative to the reference period; nothing it does spends budget.

    `periods` are the effects as released, in the order of time and without the reference, which is at `place` among
    all periods; `earlier` of these were before treatment. Where measurements were released and not changes, all
    effects share the noise of the reference's, `reference_noise`.
    """

    _PLOT: ClassVar[str] = "event_study"
    periods: tuple[Effect, ...]
    reference: Label
    place: int
    earlier: int
    estimand: Estimand
    reference_noise: NoiseDistribution | None = None

    @property
    def table(self) -> tuple[Effect, ...]:
        """The effect of every period but the reference, in the order of time."""
        if self.reference_noise is None:
            return self.periods
        return tuple(replace(one, known=self._with_reference(one)) for one in self.periods)

    def _with_reference(self, one: Effect) -> Linear:
        known = one.known
        assert isinstance(known, Linear)
        assert isinstance(known.uncertainty, Uncertainty)
        own = known.uncertainty.noise
        assert own is not None
        assert self.reference_noise is not None
        both = replace(known.uncertainty, noise=NoiseSum(own, self.reference_noise))
        return replace(known, uncertainty=both)

    def effect(self, period: Label) -> Effect:
        """Return the effect of a period; a KeyError names the periods there are."""
        for one in self.table:
            if one.name == period:
                return one
        raise KeyError(f"{period!r}; the periods are {[one.name for one in self.periods]}")

    @property
    def before(self) -> tuple[Effect, ...]:
        """The effects of periods before treatment, where parallel trends would leave none."""
        return self.table[: self.earlier - 1]

    @property
    def after(self) -> tuple[Effect, ...]:
        """The effects of periods after treatment started."""
        return self.table[self.earlier - 1 :]

    @property
    def pre_trend_p_value(self) -> float | None:
        """P-value of no effect in all periods before treatment (Bonferroni); None where there is one period alone."""
        return min(1.0, len(self.before) * min(one.p_value for one in self.before)) if self.before else None

    def interval(self, level: float | None = None, simultaneous: bool = False) -> dict[Label, Ends]:
        """Return every effect's interval by period; with `simultaneous` they hold together (Šidák)."""
        return {one.name: one.interval(level, simultaneous) for one in self.table}

    def _columns(self) -> list[dict[str, Any]]:
        sides = ["before"] * (self.earlier - 1) + ["after"] * len(self.after)
        return [
            {"period": one.name, "reference": self.reference, "side": side, "estimand": self.estimand.value}
            for one, side in zip(self.periods, sides, strict=True)
        ]

    def _shown(self) -> dict[str, Any]:
        p, word = self.pre_trend_p_value, "reference, 0 by definition"
        if p is None:
            said = "none: there is one period before treatment"
        else:
            said = (
                f"p {probability(p)} for no difference in all {len(self.before)} periods before treatment but the "
                "reference (Bonferroni); a large p does not show that trends are parallel afterwards"
            )
        return {
            "title": f"Effect of {self.treatment} on {self.outcome} by period",
            "sentence": f"{self.estimand.sentence}, relative to {self.reference}",
            "effects": [
                one.facts() | {"before_treatment": place < self.earlier - 1}
                for place, one in enumerate(self.table)
            ],
            "reference_row": {"place": self.place, "name": str(self.reference), "word": word},
            "pre_trend_p_value": p,
            "notes": [("Pre-trends", said)],
        }

    def _check(self) -> None:
        ReleasedAnswer._check(self)
        if not 1 <= self.earlier <= len(self.periods) or not 0 <= self.place < self.earlier:
            raise ValueError("the reference is a period before treatment")
        check_table(self.periods, self.level)
        if not all(isinstance(one.known, Linear) for one in self.periods):
            raise ValueError("effects by period are linear")
