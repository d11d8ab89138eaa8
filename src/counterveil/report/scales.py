"""The axis of a forest plot: that of differences, or that of ratios, with intervals that have no end."""

from __future__ import annotations

from dataclasses import dataclass
from math import log
from typing import Any

from counterveil.report.canvas import zero_line
from counterveil.report.view import rounded, span

# What the axis of a measure is called.
MEASURES = {
    "ratio": "ratio of means, treated over control (log scale)",
    "odds_ratio": "odds ratio, treated over control (log scale)",
    "lift": "lift: ratio of means less 1",
    "nnt": "number needed to treat",
}
# A missing end is drawn this much beyond the others: of their distance, or times as far on a scale of ratios.
_BEYOND, _TIMES = 0.15, 1.5


def comparable(facts: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the effects of a result in units that can stand beside each other.

    Differences in several outcomes have different units: each is divided by its own standard error, and its name says
    what it is in its own.
    """
    effects: list[dict[str, Any]] = facts["effects"]
    if not _mixed(facts):
        return effects
    found = []
    for effect in effects:
        error = effect["std_error"]["total"]
        name = f"{effect['name']}: {rounded(effect['estimate'], error)} {span(effect['interval'], error)}"
        parts = {
            key: {
                end: _divided(value, error) if end != "level" else value for end, value in effect[key].items()
            }
            for key in ("interval", "simultaneous_interval", "interval_without_noise")
            if key in effect
        }
        found.append(effect | parts | {"name": name, "estimate": _divided(effect["estimate"], error)})
    return found


def axis_label(facts: dict[str, Any]) -> str:
    """Return what the axis of a forest of effects says."""
    if _mixed(facts):
        return "effect on each outcome, in its standard errors"
    if "policy" in facts or "shares" in facts:
        return f"gain in {facts['outcome']} per person"
    return MEASURES.get(facts.get("measure", ""), f"effect on {facts['outcome']}, in its units")


def axis_note(facts: dict[str, Any]) -> str:
    """Return what the numbers of an axis are where effects have different units, else nothing."""
    return "Numbers: effects in their standard errors." if _mixed(facts) else ""


def _mixed(facts: dict[str, Any]) -> bool:
    return "several_outcomes" in facts and facts["measure"] == "difference"


def _divided(value: float | None, error: float) -> float | None:
    return None if value is None else value / error


@dataclass(frozen=True, slots=True)
class Scale:
    """Limits of the axis, where no effect is (None where it is nowhere), and whether it is one of ratios."""

    low: float
    high: float
    null: float | None
    ratios: bool
    open: bool

    @classmethod
    def of(cls, effects: list[dict[str, Any]]) -> Scale:
        """Return the scale on which all finite ends of these effects are seen."""
        null = effects[0].get("null", 0.0)
        ratios = null == 1.0
        ends = [] if null is None else [null]
        is_open = False
        for effect in effects:
            found = effect.get("simultaneous_interval", effect["interval"])
            known = [found["low"], found["high"], effect["estimate"], *found.get("gap", [])]
            ends += [end for end in known if end is not None and not (ratios and end <= 0)]
            is_open |= found["low"] is None or found["high"] is None or (ratios and found["low"] <= 0)
        low, high = min(ends), max(ends)
        if not is_open:
            return cls(low, high, null, ratios, is_open)
        if ratios:
            return cls(low / _TIMES, high * _TIMES, null, ratios, is_open)
        reach = _BEYOND * (high - low or 1.0)
        return cls(low - reach, high + reach, null, ratios, is_open)

    def held(self, value: float | None) -> float:
        """Return a value inside the limits; one that is missing is the upper limit."""
        return self.high if value is None else min(max(value, self.low), self.high)

    def pieces(self, interval: dict[str, Any]) -> list[tuple[float, float]]:
        """Return the ends of the parts of an interval, inside the limits."""
        below = self.low if interval["low"] is None else self.held(interval["low"])
        above = self.held(interval["high"])
        if not interval.get("gap"):
            return [(below, above)]
        first, second = interval["gap"]
        sides = [] if first is None else [(below, first)]
        return sides + ([] if second is None else [(second, above)])

    def place(self, value: float) -> float:
        """Return where a value is between the limits, from 0 to 1."""
        if self.ratios:
            return log(self.held(value) / self.low) / log(self.high / self.low)
        return (self.held(value) - self.low) / (self.high - self.low)

    @property
    def note(self) -> str:
        """What has to be said of the ends."""
        return "Lines to the edge have no end. " if self.open else ""

    def draw(self, ax: Any) -> None:
        """Set the axis and draw the line of no effect."""
        if self.ratios:
            ax.set_xscale("log")
            ax.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
            ax.xaxis.set_minor_formatter(
                lambda value, _: f"{value:g}" if str(value).strip("0.")[:1] in "25" else ""
            )
        if self.open:
            ax.set_xlim(self.low, self.high)
        if self.null is not None:
            zero_line(ax, "x", self.null)
