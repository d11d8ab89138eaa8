"""Pictures of a page, as inline SVG whose coordinates are parts of a hundred: lines and letters keep their size on
any screen, and names are text of the page, so that long ones wrap and are never cut.

Colours are those of the page (`pictures.css`): there is nothing here that a light or a dark theme would not suit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from html import escape
from math import ceil, floor, isfinite, log, log10
from textwrap import fill
from typing import Any

from counterveil.errors import refusal
from counterveil.report.text import Facts, from_to, percent, rounded, with_interval

INK, PALE, PALER, GREY, WARNING = "#155a8a", "#9fc1d8", "#d6e5ef", "#51606f", "#8a1c1c"
COLOURS = (INK, "#9a5b00", "#1d6b3c", "#7a3e8f")  # of lines beside each other, as on pages
_WIDTH, _HEIGHT = 7.2, 4.6
_LETTERS = 105


def canvas(ax: Any, height: float = _HEIGHT) -> Any:
    """Return axes to draw on: the given ones, or those of a new figure."""
    if ax is None:
        _, ax = pyplot().subplots(figsize=(_WIDTH, height), layout="constrained")
    for side in ("top", "right"):
        ax.spines[side].set_visible(False)
    for side in ("left", "bottom"):
        ax.spines[side].set_color(GREY)
    ax.tick_params(colors=GREY, labelcolor="#1c2733", labelsize=9)
    ax.grid(visible=True, color="#edf1f4", lw=0.8)
    ax.set_axisbelow(True)
    return ax


def pyplot() -> Any:
    """Return matplotlib's pyplot, or say how to install it."""
    try:
        from matplotlib import pyplot as found
    except ImportError:
        raise refusal("CV-E040") from None
    return found


def zero_line(ax: Any, axis: str, value: float = 0.0) -> None:
    """Draw the line of no effect, across the vertical ("y") or the horizontal axis."""
    draw = ax.axhline if axis == "y" else ax.axvline
    draw(value, color=GREY, lw=1, ls=(0, (4, 4)), zorder=1)


def legend(ax: Any) -> None:
    """Write the legend where it hides least, on white."""
    ax.legend(loc="best", fontsize=8, facecolor="white", edgecolor="none", framealpha=0.9)


def finish(ax: Any, title: str, note: str, result: Any) -> None:
    """Write title and note and, where the guarantee is less than proved, the warning across the picture."""
    framed(ax, title, note, result.guarantee.warning)


def framed(ax: Any, title: str, note: str, warning: str | None) -> None:
    """Write title and note, and a warning across the picture if there is one."""
    ax.set_title(fill(title, 70), loc="left", fontsize=12, fontweight="bold", color="#1c2733", pad=22)
    if warning:
        ax.text(0, 1.02, warning, transform=ax.transAxes, fontsize=8.5, fontweight="bold", color=WARNING)
        stamp = {"fontsize": 30, "color": WARNING, "alpha": 0.11, "ha": "center", "va": "center"}
        word = warning.split(",")[0].split(":")[0]
        ax.text(0.5, 0.5, word, transform=ax.transAxes, rotation=18, zorder=10, **stamp)
    ax.annotate(
        fill(note, _LETTERS),
        xy=(0, 0),
        xycoords="axes fraction",
        xytext=(0, -44),
        textcoords="offset points",
        fontsize=7.5,
        color=GREY,
        va="top",
        annotation_clip=False,
    )


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

    Differences in several outcomes, and coefficients, have different units: each is divided by its own standard error,
    and its name says what it is in its own.
    """
    effects: list[dict[str, Any]] = facts.get("coefficients") or facts["effects"]
    if not _mixed(facts):
        return effects
    found = []
    for effect in effects:
        error = effect["std_error"]["total"]
        name = f"{effect['name']}: {with_interval(rounded(effect['estimate'], error), effect['interval'], error)}"
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
        return "each effect or coefficient, in its standard errors"
    if "axis" in facts:
        return str(facts["axis"])
    if "policy" in facts or facts.get("kind") == "TargetingCurve":
        return f"gain in {facts['outcome']} per person"
    return MEASURES.get(facts.get("measure", ""), f"effect on {facts['outcome']}, in its units")


def axis_note(facts: dict[str, Any]) -> str:
    """Return what the numbers of an axis are where effects have different units, else nothing."""
    return "Numbers: effects in their standard errors." if _mixed(facts) else ""


def _mixed(facts: dict[str, Any]) -> bool:
    several = facts.get("kind") == "OutcomesResult" and facts["measure"] == "difference"
    return several or "coefficients" in facts or "assigned" in facts


def _divided(value: float | None, error: float) -> float | None:
    return None if value is None or not isfinite(value) else value / error


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
            marks = ratio_ticks(self.low, self.high)
            ax.set_xticks(marks, [f"{mark:g}" for mark in marks])
            ax.minorticks_off()
        if self.open:
            ax.set_xlim(self.low, self.high)
        if self.null is not None:
            zero_line(ax, "x", self.null)


Point = tuple[float, float]

_LEFT, _RIGHT = 3.0, 97.0  # where a strip begins and ends, in parts of a hundred
_MOST_RATIOS = 5  # marks of an axis of ratios
_NEAR = 8.0  # parts of a hundred from an end within which a label begins or ends there


def ticks(low: float, high: float, most: int = 5) -> list[float]:
    """Return at most so many round numbers from low to high."""
    if not high > low or not isfinite(high - low):
        return [low]
    size = 10.0 ** floor(log10((high - low) / most))
    for step in (size, 2 * size, 5 * size, 10 * size, 20 * size):
        first, last = ceil(low / step - 1e-9), floor(high / step + 1e-9)
        if last - first + 1 <= most:
            return [k * step for k in range(first, last + 1)]
    return [low]


def number(value: float, step: float) -> str:
    """Return a number of an axis with the decimals of its step."""
    return f"{value + 0.0:,.{max(0, -floor(log10(abs(step)) + 1e-9))}f}" if step else f"{value:g}"


def labels(values: Sequence[float]) -> list[str]:
    """Return the numbers of an axis in words, all with the same decimals."""
    step = values[1] - values[0] if len(values) > 1 else values[0]
    return [number(value, step) for value in values]


def word(x: float, y: float, text: str, kind: str = "") -> str:
    """Return a label in the middle of its place, or ending where it would be cut off."""
    anchor = "start" if x < _NEAR else "end" if x > 100 - _NEAR else "middle"
    own = f' class="{kind}"' if kind else ""
    return f'<text x="{x:.2f}%" y="{y:.0f}" text-anchor="{anchor}"{own}>{escape(text)}</text>'


def line(one: Point, other: Point, kind: str, width: float = 1) -> str:
    """Return a straight line between two points."""
    return (
        f'<line x1="{one[0]:.2f}%" y1="{one[1]:.2f}%" x2="{other[0]:.2f}%" y2="{other[1]:.2f}%" '
        f'class="{kind}" stroke-width="{width:g}" stroke-linecap="round"/>'
    )


def dot(at: Point, kind: str, size: float = 5) -> str:
    """Return a dot, round at every width of the picture."""
    return f'<circle cx="{at[0]:.2f}%" cy="{at[1]:.2f}%" r="{size:g}" class="{kind}"/>'


def diamond(at: Point, kind: str, size: float = 8) -> str:
    """Return a diamond, of the same form at every width of the picture."""
    corners = f"{-size:g},0 0,{-size:g} {size:g},0 0,{size:g}"
    return f'<svg x="{at[0]:.2f}%" y="{at[1]:.2f}%"><polygon points="{corners}" class="{kind}"/></svg>'


def shape(points: Iterable[Point], kind: str, closed: bool = False) -> str:
    """Return a curve or, if closed, an area; it is stretched with the picture."""
    tag = "polygon" if closed else "polyline"
    said = " ".join(f"{x:.2f},{y:.2f}" for x, y in points)
    return (
        '<svg viewBox="0 0 100 100" preserveAspectRatio="none" width="100%" height="100%">'
        f'<{tag} points="{said}" class="{kind}"/></svg>'
    )


def figure(body: str, caption: str, label: str) -> str:
    """Return a picture with its caption; `label` is what a screen reader calls it."""
    return (
        f'<figure class="picture" role="group" aria-label="{escape(label)}">{body}'
        f"<figcaption>{escape(caption)}</figcaption></figure>"
    )


def named_row(name: str, strip: str, height: int, said: str) -> str:
    """Return a line of a picture: a name, and beside it a strip; `said` is read out in its place."""
    return (
        f'<div class="named"><div class="name">{escape(name)}</div>'
        f'<svg height="{height}" role="img" aria-label="{escape(said)}">{strip}</svg></div>'
    )


def scale_row(marks: str, height: int = 20) -> str:
    """Return a line with marks alone, for the eye."""
    return f'<div class="named" aria-hidden="true"><div class="name"></div><svg height="{height}">{marks}</svg></div>'


@dataclass(frozen=True, slots=True)
class Chart:
    """A field with two axes; `inside` is drawn in parts of a hundred, (0, 0) being the upper left corner."""

    inside: str
    label: str
    x_marks: Sequence[tuple[float, str]]
    y_marks: Sequence[tuple[float, str]]
    across: str = ""
    up: str = ""
    height: int = 240

    def html(self) -> str:
        """Return the chart as a part of a figure."""
        grid = "".join(line((0, y), (100, y), "grid") for y, _ in self.y_marks)
        grid += "".join(line((x, 0), (x, 100), "grid") for x, _ in self.x_marks)
        numbers = "".join(
            f'<text x="92%" y="{self.height * y / 100 + 4:.1f}" text-anchor="end">{escape(text)}</text>'
            for y, text in self.y_marks
        )
        under = "".join(word(x, 16, text) for x, text in self.x_marks)
        up = f'<div class="up">{escape(self.up)}</div>' if self.up else ""
        across = f'<div class="across">{escape(self.across)}</div>' if self.across else ""
        return (
            f'<div class="chart">{up}<svg height="{self.height}" aria-hidden="true">{numbers}</svg>'
            f'<svg height="{self.height}" role="img" aria-label="{escape(self.label)}">{grid}{self.inside}</svg>'
            f'<span></span><svg height="22" aria-hidden="true">{under}</svg>{across}</div>'
        )


def axis(low: float, high: float) -> Callable[[float], float]:
    """Return a function that places numbers between low and high at 0 to 100."""
    width = (high - low) or 1.0
    return lambda value: 100 * (value - low) / width


def forest_plot(effects: list[Facts], zero: str = "no effect", caption: str = "", axis: str = "") -> str:
    """Return a picture of effects, empty where it has no scale; `zero` is what stands at the value of no effect.

    Intervals without an end reach the edge. `axis` says what its numbers are where that is not plain.
    """
    known = [end for effect in effects for end in widest(effect).values() if isinstance(end, float)]
    if not all(map(isfinite, known)):
        return ""
    scale = Scale.of(effects)
    if scale.low == scale.high:
        return ""

    def x(value: float | None) -> float:
        return _LEFT + (_RIGHT - _LEFT) * scale.place(scale.held(value))

    rows = "".join(_row(effect, x, scale) for effect in effects)
    values = ratio_ticks(scale.low, scale.high) if scale.ratios else ticks(scale.low, scale.high, 4)
    names = [f"{value:g}" for value in values] if scale.ratios else labels(values)
    marks = "".join(word(x(value), 14, text) for value, text in zip(values, names, strict=True))
    top = "" if scale.null is None else scale_row(word(x(scale.null), 14, zero))
    return figure(
        f"{top}{rows}{scale_row(marks)}",
        " ".join(filter(None, (caption or _legend(effects), axis, scale.note))).strip(),
        "effects and their intervals",
    )


def ratio_ticks(low: float, high: float) -> list[float]:
    """Return a few round ratios between low and high, for an axis of logarithms."""
    places = range(floor(log10(low)) - 1, ceil(log10(high)) + 2)
    for steps in ((1, 2, 5), (1, 3), (1,)):
        found = [step * 10.0**place for place in places for step in steps]
        inside = [value for value in found if low <= value <= high]
        if 1 < len(inside) <= _MOST_RATIOS:
            return inside
    return ticks(low, high, 4)


def widest(effect: Facts) -> dict[str, Any]:
    """Return the interval that holds for all effects at once, or its own where there is one effect."""
    found: dict[str, Any] = effect[
        "simultaneous_interval" if "simultaneous_interval" in effect else "interval"
    ]
    return found


def _legend(effects: list[Facts]) -> str:
    if "simultaneous_interval" in effects[0]:
        return "Strong: the interval of one effect. Faint: intervals that hold for all of them at once."
    if any(effect.get("summary") for effect in effects):
        return "Intervals include the privacy noise. Faint: weight of zero. Diamond: all together."
    return "Dot: the estimate. Strong line: the interval that includes the privacy noise."


def _row(effect: Facts, x: Callable[[float | None], float], scale: Scale) -> str:
    at = (x(effect["estimate"]), 50.0)
    ink = "pale" if effect.get("weight") == 0 else "ink"
    strip = line((_LEFT, 50), (_RIGHT, 50), "grid")
    if scale.null is not None:
        strip += line((x(scale.null), 0), (x(scale.null), 100), "zero")
    for interval, kind, width in ((widest(effect), "pale", 3), (effect["interval"], ink, 5)):
        for low, high in scale.pieces(interval):
            strip += line((x(low), 50), (x(high), 50), kind, width)
    strip += (diamond if effect.get("summary") else dot)(at, f"{ink}-fill")
    return named_row(str(effect["name"]), strip, 30, said_of(effect))


def said_of(effect: Facts) -> str:
    """Return an effect with its interval in words, as a screen reader says it."""
    error = effect["std_error"]["total"]
    level = effect["interval"].get("level")
    about = f"{percent(level)} interval" if level else "interval"
    ends = from_to(effect["interval"], error)
    return f"{effect['name']}: {rounded(effect['estimate'], error)}, {about} {ends}"


def event_plot(facts: Facts) -> str:
    """Return the effects of an event study along time, empty where an interval is not finite."""
    effects, reference = facts["effects"], facts["reference_row"]
    ends = [0.0] + [widest(effect)[end] for effect in effects for end in ("low", "high")]
    if not all(map(isfinite, ends)) or min(ends) == max(ends):
        return ""
    names = [str(effect["name"]) for effect in effects]
    names.insert(reference["place"], reference["name"])
    x, up, values = axis(-0.5, len(names) - 0.5), axis(max(ends), min(ends)), ticks(min(ends), max(ends))
    start = x(facts["earlier"] - 0.5)
    inside = line((0, up(0)), (100, up(0)), "zero") + line((start, 0), (start, 100), "axis", 1.5)
    places = [place for place in range(len(names)) if place != reference["place"]]
    for place, effect in zip(places, effects, strict=True):
        own, wide, at = effect["interval"], widest(effect), x(place)
        inside += line((at, up(wide["low"])), (at, up(wide["high"])), "pale", 3)
        inside += line((at, up(own["low"])), (at, up(own["high"])), "ink", 5)
        inside += dot((at, up(effect["estimate"])), "ink-fill")
    inside += diamond((x(reference["place"]), up(0)), "hollow", 6)
    every = ceil(len(names) / 8)
    chart = Chart(
        inside,
        "effects by period: " + "; ".join(map(said_of, effects)),
        [(x(place), name) for place, name in enumerate(names) if place % every == 0],
        [(up(value), text) for value, text in zip(values, labels(values), strict=True)],
        across="period",
        up=f"effect on {facts['outcome']}",
    )
    caption = (
        "Strong: the interval of one period. Faint: intervals that hold for all at once. Diamond: the reference "
        "period. Upright line: treatment starts."
    )
    return figure(chart.html(), caption, "effects by period")


@dataclass(frozen=True, slots=True)
class Curve:
    """Points of a curve with two bands around it."""

    x: list[float]
    middle: list[float]
    inner: tuple[list[float], list[float]]
    outer: tuple[list[float], list[float]]


def curve_chart(curve: Curve, label: str, across: str, up: str, shares: bool = False) -> str:
    """Return a chart of a curve, its intervals and its band.

    `shares` says that the axis is one of percentages; what the same share at random would gain is drawn too.
    """
    low, high = min(0.0, *curve.outer[0]), max(0.0, *curve.outer[1])
    if not isfinite(high - low) or low == high:
        return ""
    x, y = axis(curve.x[0], curve.x[-1]), axis(high, low)
    along, values = ticks(curve.x[0], curve.x[-1], 4), ticks(low, high)

    def area(ends: tuple[list[float], list[float]], kind: str) -> str:
        there = [(x(a), y(b)) for a, b in zip(curve.x, ends[0], strict=True)]
        back = [(x(a), y(b)) for a, b in zip(curve.x, ends[1], strict=True)]
        return shape([*there, *reversed(back)], kind, closed=True)

    points = [(x(a), y(b)) for a, b in zip(curve.x, curve.middle, strict=True)]
    inside = area(curve.outer, "paler-fill") + area(curve.inner, "pale-fill")
    inside += line((0, y(0)), (100, y(0)), "zero") + shape(points, "line ink")
    if shares:
        inside += shape([points[0], points[-1]], "thin dashed")
    names = [f"{value:.0%}" for value in along] if shares else labels(along)
    marks = [(y(value), text) for value, text in zip(values, labels(values), strict=True)]
    return Chart(
        inside, label, list(zip(map(x, along), names, strict=True)), marks, across, up, height=220
    ).html()


def gain_plot(facts: Facts) -> str:
    """Return the gains of treating the highest ranked, share by share, empty where an interval is not finite."""

    def ends(kind: str, end: str) -> list[float]:
        return [0.0, *(float(one[kind][end]) for one in facts["effects"])]

    inner = ends("interval", "low"), ends("interval", "high")
    wide = "simultaneous_interval" if "simultaneous_interval" in facts["effects"][0] else "interval"
    gains = [0.0, *(float(one["estimate"]) for one in facts["effects"])]
    curve = Curve([0.0, *map(float, facts["shares"])], gains, inner, (ends(wide, "low"), ends(wide, "high")))
    chart = curve_chart(
        curve,
        "gain by share treated: " + "; ".join(map(said_of, facts["effects"])),
        "share of people treated, those ranked highest first (released)",
        f"gain in {facts['outcome']} per person",
        shares=True,
    )
    caption = (
        "Line: estimated gain over treating nobody. Strong band: the interval at one share. Faint band: holds for the "
        "whole curve. Dashed: treating the same share at random."
    )
    return figure(chart, caption, "gain by share treated") if chart else ""


_COLOURS = ("Blue", "Ochre", "Green", "Violet")
_ROOM = 4.0  # parts of a hundred on both sides, so that dots and names are whole


def plan_plot(known: list[dict[str, Any]], without_privacy: float, beside: str) -> str:
    """Return a picture of planned half-widths, empty where fewer than two are known; the table has the numbers.

    `beside` says what the dashed line is.
    """
    spread = sorted({one["epsilon"] for one in known})
    if len(spread) < 2:
        return ""
    most = max(one["half_width"] for one in known) * 1.08
    place, y = axis(log10(spread[0]), log10(spread[-1])), axis(most, 0.0)

    def x(epsilon: float) -> float:
        return _ROOM + (100 - 2 * _ROOM) * place(log10(epsilon)) / 100

    inside = (
        "" if without_privacy >= most else line((0, y(without_privacy)), (100, y(without_privacy)), "zero")
    )
    lines = list(dict.fromkeys(one["line"] for one in known))
    for number, name in enumerate(lines):
        colour = f"c{number % len(_COLOURS)}"
        points = [(x(one["epsilon"]), y(one["half_width"])) for one in known if one["line"] == name]
        inside += shape(points, f"line {colour}") + "".join(dot(point, f"{colour}-fill") for point in points)
    values = ticks(0.0, most)
    chart = Chart(
        inside,
        "half-width of the interval against epsilon; the table has the numbers",
        [(x(one), f"{one:g}") for one in spread],
        [(y(value), text) for value, text in zip(values, labels(values), strict=True)],
        across="epsilon (logarithmic)",
        up="half-width of the interval",
    )
    named = "; ".join(f"{_COLOURS[number % len(_COLOURS)]}: {name}" for number, name in enumerate(lines))
    dashed = f" Dashed: {beside}." if without_privacy < most else ""
    return figure(
        chart.html(),
        f"{named}.{dashed}",
        "planned half-widths by epsilon",
    )
