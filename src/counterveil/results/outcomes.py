"""The answer about several outcomes: an effect on each, against one or several arms, the primary outcome first."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from counterveil.data.labels import Label
from counterveil.inference import Uncertainty
from counterveil.inference.measures import ApartMeans
from counterveil.privacy import Estimand
from counterveil.results.effect import Effect, Ends, Linear
from counterveil.results.mean_facts import (
    AnyMeans,
    linear_from_dict,
    linear_to_dict,
    means_from_dict,
    means_to_dict,
)
from counterveil.results.measure_words import (
    DIFFERENCE,
    NEEDED,
    WORDS,
    called,
    replaced_in_words,
    whose_words,
)
from counterveil.results.measures import (
    OF_MEANS,
    Measured,
    Needed,
    check_measure,
    difference_of,
    no_means,
    refuse_range,
)
from counterveil.results.result import Comparison, provenance_from_dict
from counterveil.results.stored import reads_facts

Numbers = Linear | AnyMeans


@dataclass(frozen=True, slots=True)
class OutcomeEffect:
    """What was released about one outcome and one arm: a difference, or the means of both arms."""

    outcome: str
    arm: Label | None
    numbers: Numbers

    @property
    def name(self) -> str:
        """What the effect is called in a table."""
        return self.outcome if self.arm is None else f"{self.outcome}: {self.arm}"


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class OutcomesResult(Comparison):
    """Released effects on several outcomes, the primary one first; nothing it does spends budget.

    `released` are the numbers behind the effects, `measure` the scale that they are shown on.
    """

    released: tuple[OutcomeEffect, ...]
    measure: str
    estimand: Estimand

    @property
    def table(self) -> tuple[Effect, ...]:
        """The effect on every outcome, of every arm, in the order of the study."""
        return tuple(self._effect(one) for one in self.released)

    def _effect(self, one: OutcomeEffect) -> Effect:
        plain = self._difference(one)
        if self.measure == DIFFERENCE:
            return plain
        if self.measure == NEEDED:
            assert isinstance(plain.known, Linear)
            return replace(plain, known=Needed(plain.known))
        assert not isinstance(one.numbers, Linear)
        return replace(plain, known=Measured(one.numbers, self.measure))

    def _difference(self, one: OutcomeEffect) -> Effect:
        numbers, several = one.numbers, len(self.released)
        known = (
            numbers
            if isinstance(numbers, Linear)
            else difference_of(numbers, self.estimand, self.level).known
        )
        return Effect(one.name, known, self.level, several)

    def effect(self, outcome: str, arm: Label | None = None) -> Effect:
        """Return the effect on an outcome, of an arm where there are several; a KeyError names those there are."""
        found = [
            effect
            for one, effect in zip(self.released, self.table, strict=True)
            if one.outcome == outcome and (arm is None or one.arm == arm)
        ]
        if len(found) != 1:
            asked = f"{outcome!r}" if arm is None else f"{outcome!r}, {arm!r}"
            raise KeyError(f"{asked}; the effects are {[one.name for one in self.released]}")
        return found[0]

    @property
    def primary(self) -> Effect:
        """The effect on the primary outcome, of the first arm."""
        return self.table[0]

    def interval(self, level: float | None = None, simultaneous: bool = False) -> dict[str, Ends]:
        """Return every effect's interval by its name; with `simultaneous` they hold together (Šidák)."""
        return {str(one.name): one.interval(level, simultaneous) for one in self.table}

    @property
    def holm_p_values(self) -> dict[str, float]:
        """P-values for looking at all effects, adjusted by Holm's (1979) method."""
        return holm({str(one.name): one.careful_p_value for one in self.table})

    def as_measure(self, measure: str) -> OutcomesResult:
        """Return the same released numbers on the scale of another measure; free."""
        check_measure(measure)
        if measure in OF_MEANS and any(isinstance(one.numbers, Linear) for one in self.released):
            raise no_means(self.method, f"measure={measure!r}, of which the difference alone was released")
        for one in self.released:
            refuse_range(measure, _range(one.numbers))
        return replace(self, measure=measure)

    @property
    def _compared(self) -> Sequence[Effect]:
        return tuple(self._difference(one) for one in self.released)

    @property
    def _arm_means(self) -> Sequence[Effect]:
        if any(not isinstance(one.numbers, ApartMeans) for one in self.released):
            return ()
        return [
            Effect(one.name, Linear(value, known, one.numbers.range), self.level)
            for one in self.released
            if isinstance(one.numbers, ApartMeans)
            for value, known in zip(one.numbers.values, one.numbers.known, strict=True)
        ]

    def _columns(self) -> list[dict[str, Any]]:
        adjusted = self.holm_p_values
        return [
            {"outcome": one.outcome}
            | ({} if one.arm is None else {"arm": one.arm})
            | {
                "primary": one.outcome == self.released[0].outcome,
                "estimand": self.estimand.value,
                "measure": self.measure,
                "holm_p_value": adjusted[one.name],
            }
            for one in self.released
        ]

    def _numbers(self) -> dict[str, Any]:
        return {
            "several_outcomes": [_stored(one) for one in self.released],
            "measure": self.measure,
            "estimand": self.estimand.value,
        }

    def _shown(self) -> dict[str, Any]:
        adjusted = self.holm_p_values
        said = self.estimand.sentence
        if self.measure != DIFFERENCE:
            said = WORDS[self.measure].format(whose=whose_words(self.estimand))
        names = list(dict.fromkeys(one.outcome for one in self.released))
        return {
            "title": f"Effect of {self.treatment} on {len(names)} outcomes",
            "sentence": f"{said}; primary outcome: {names[0]}",
            "effects": [
                effect.facts() | {"holm_p_value": adjusted[str(effect.name)]} for effect in self.table
            ],
        }

    def report_facts(self) -> dict[str, Any]:
        """Return what reports and pictures show: the facts of `to_dict`, and how estimates are to be read."""
        facts = Comparison.report_facts(self)
        if self.measure == DIFFERENCE:
            return facts
        ranges = {_range(one.numbers) for one in self.released}
        rows = [(one.name, one.numbers) for one in self.released if not isinstance(one.numbers, Linear)]
        notes = [("Estimate", text) for text in replaced_in_words(self.measure, rows)]
        own = called(self.measure, ranges.pop() if len(ranges) == 1 else None)
        return facts | {"called": own} | ({"notes": notes} if notes else {})

    @classmethod
    @reads_facts
    def from_dict(cls, facts: dict[str, Any]) -> OutcomesResult:
        """Return the result written by `to_dict` or `stored`."""
        released = tuple(_read(one) for one in facts["several_outcomes"])
        measure = check_measure(facts["measure"])
        if not released or (measure in OF_MEANS and any(isinstance(one.numbers, Linear) for one in released)):
            raise ValueError("the means of both arms are missing")
        return cls(
            released=released,
            measure=measure,
            estimand=Estimand(facts["estimand"]),
            **provenance_from_dict(facts),
        )


def _range(numbers: Numbers) -> Ends:
    """Return the range of outcomes; that of a difference says how wide it is."""
    if not isinstance(numbers, Linear):
        return numbers.range
    return (0.0, 1.0) if numbers.limits is None else (0.0, numbers.limits[1])


def holm(p_values: dict[str, float]) -> dict[str, float]:
    """Return p-values adjusted for looking at all of them, by Holm's method."""
    found, last, left = {}, 0.0, len(p_values)
    for place, (name, p) in enumerate(sorted(p_values.items(), key=lambda one: one[1])):
        last = max(last, min(1.0, (left - place) * p))
        found[name] = last
    return {name: found[name] for name in p_values}


def _stored(one: OutcomeEffect) -> dict[str, Any]:
    numbers = one.numbers
    if isinstance(numbers, Linear):
        assert isinstance(numbers.uncertainty, Uncertainty)
        return {"outcome": one.outcome, "arm": one.arm, "difference": linear_to_dict(numbers)}
    return {"outcome": one.outcome, "arm": one.arm, "means": means_to_dict(numbers)}


def _read(facts: dict[str, Any]) -> OutcomeEffect:
    numbers: Numbers
    if "difference" in facts:
        numbers = linear_from_dict(facts["difference"])
    else:
        numbers = means_from_dict(facts["means"])
    return OutcomeEffect(facts["outcome"], facts["arm"], numbers)
