"""The answer about several outcomes: an effect on each, against one or several arms, the primary outcome first."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from counterveil.data.labels import Label
from counterveil.inference.measures import ApartMeans
from counterveil.numerics.arrays import Ends
from counterveil.privacy import Estimand
from counterveil.results.effect import Effect, Linear, solved
from counterveil.results.measure_words import (
    DIFFERENCE,
    WORDS,
    called,
    replaced_in_words,
    whose_words,
)
from counterveil.results.measures import (
    OF_MEANS,
    Numbers,
    check_measure,
    difference_of,
    known_as,
    no_means,
    refuse_range,
)
from counterveil.results.result import Comparison


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
        return replace(self._difference(one), known=known_as(self.measure, one.numbers))

    def _difference(self, one: OutcomeEffect) -> Effect:
        return Effect(one.name, difference_of(one.numbers), self.level, len(self.released))

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
        return {str(one.name): one.interval(level, simultaneous) for one in solved(self.table)}

    @property
    def holm_p_values(self) -> dict[str, float]:
        """P-values for looking at all effects, adjusted by Holm's (1979) method."""
        return holm({str(one.name): one.careful_p_value for one in solved(self.table)})

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

    def _check(self) -> None:
        Comparison._check(self)
        differences = [isinstance(one.numbers, Linear) for one in self.released]
        if not self.released or (check_measure(self.measure) in OF_MEANS and any(differences)):
            raise ValueError("the means of both arms are missing")


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
