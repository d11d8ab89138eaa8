"""Pictures of released results: an effect along a covariate, a forest of groups, a targeting curve.

Everything drawn was released before: plots spend nothing. They need matplotlib, the extra `plots`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from counterveil.report.numbers import percent
from counterveil.report.plot_frame import GREY, INK, PALE, PALER, canvas, finish, legend, zero_line
from counterveil.report.table import name_of


def effect_curve(
    model: Any,
    feature: str,
    *,
    at: Mapping[str, Any] | None = None,
    points: int = 121,
    level: float | None = None,
    ax: Any = None,
) -> Any:
    """Return the axes with a model's effect along one numeric covariate, its intervals and its band.

    Args:
        model: what `counterveil.cate` returned.
        feature: the covariate along the horizontal axis.
        at: values of the other covariates; numbers left out are at the middle of their range, labels at the first.
        points: how many points the curve is drawn through.
        level: of intervals and band; None takes the model's.
        ax: matplotlib axes to draw on; None makes a figure.
    """
    columns, held = _along(model.study, feature, at or {}, points)
    x, effect = columns[feature], model.effect(columns)
    (low, high), (least, most) = model.interval(columns, level), model.band(columns, level)
    ax = canvas(ax)
    said = percent(model.level if level is None else level)
    ax.fill_between(x, least, most, color=PALER, lw=0, label=f"{said} band: holds for the whole curve")
    ax.fill_between(x, low, high, color=PALE, lw=0, label=f"{said} interval: holds at each point alone")
    ax.plot(x, effect, color=INK, lw=2, label="estimated effect")
    zero_line(ax, "y")
    ax.set_xlim(x[0], x[-1])
    ax.set_xlabel(feature)
    ax.set_ylabel(f"effect on {model.study.outcome}, in its units")
    legend(ax)
    note = f"Others held at {held}. " if held else ""
    finish(ax, f"Effect of {model.study.treatment} along {feature}", f"{note}{_noise(model)}", model)
    return ax


def forest(result: Any, *, ax: Any = None) -> Any:
    """Return the axes with every group's, arm's or site's effect, its interval and the one that holds for all."""
    facts = result.to_dict()
    effects = list(reversed(facts["effects"]))
    ax = canvas(ax, height=1.9 + 0.42 * len(effects))
    level = percent(effects[0]["interval"]["level"])
    for place, effect in enumerate(effects):
        wide = effect.get("simultaneous_interval", effect["interval"])
        ax.plot([wide["low"], wide["high"]], [place, place], "|-", color=PALE, lw=2.5, ms=9, mew=2)
        own = effect["interval"]
        ax.plot([own["low"], own["high"]], [place, place], color=INK, lw=4, solid_capstyle="butt")
        ax.plot(effect["estimate"], place, "o", color="white", ms=5, mec=INK, mew=1.5, zorder=5)
    zero_line(ax, "x")
    ax.set_yticks(range(len(effects)), [_with_size(effect) for effect in effects])
    ax.set_ylim(-0.6, len(effects) - 0.4)
    gain = "policy" in facts or "shares" in facts
    what = f"gain in {facts['outcome']} per person" if gain else f"effect on {facts['outcome']}, in its units"
    ax.set_xlabel(what)
    note = (
        f"Dark: {level} interval of one effect. Pale: intervals that hold for all at once. {_noise(result)}"
    )
    finish(ax, _title_of(facts), note, result)
    return ax


def policy_curve(curve: Any, *, ax: Any = None) -> Any:
    """Return the axes with what treating the highest ranked gains, share by share, with intervals and band."""
    facts = curve.to_dict()
    shares = np.concatenate([[0.0], facts["shares"]])
    gains = np.concatenate([[0.0], [one["estimate"] for one in facts["effects"]]])

    def ends(kind: str, end: str) -> Any:
        return np.concatenate([[0.0], [one[kind][end] for one in facts["effects"]]])

    ax = canvas(ax)
    level = percent(facts["level"])
    wide, own = "simultaneous_interval", "interval"
    label = f"{level} band: holds for the whole curve"
    ax.fill_between(shares, ends(wide, "low"), ends(wide, "high"), color=PALER, lw=0, label=label)
    label = f"{level} interval: holds at each share alone"
    ax.fill_between(shares, ends(own, "low"), ends(own, "high"), color=PALE, lw=0, label=label)
    ax.plot(shares, gains, "o-", color=INK, lw=2, ms=4, label="treating the highest ranked")
    ax.plot([0, 1], [0, gains[-1]], "--", color=GREY, lw=1.2, label="treating the same share at random")
    zero_line(ax, "y")
    ax.set_xlim(0, 1)
    ax.xaxis.set_major_formatter(lambda value, _: f"{value:.0%}")
    ax.set_xlabel("share of people treated (as released)")
    cost = f" after a cost of {facts['cost']:g}" if facts["cost"] else ""
    ax.set_ylabel(f"gain in {facts['outcome']} per person{cost}")
    legend(ax)
    finish(ax, f"Targeting {facts['treatment']}: gain over treating nobody", _noise(curve), curve)
    return ax


def _along(study: Any, feature: str, at: Mapping[str, Any], points: int) -> tuple[dict[str, Any], str]:
    """Return columns along one covariate with the others held, and in words where they are."""
    columns: dict[str, Any] = {}
    held = []
    for name, domain in study.covariates.items():
        if name == feature:
            low, high = domain.floats()
            columns[name] = np.linspace(low, high, points)
            continue
        labels = getattr(domain, "labels", None)
        value = at.get(name, sum(domain.floats()) / 2 if labels is None else labels[0])
        column = np.empty(points, dtype=object if labels is not None else np.float64)
        column[:] = value
        columns[name] = column
        held.append(f"{name} = {value:g}" if isinstance(value, int | float) else f"{name} = {value}")
    return columns, ", ".join(held)


def _noise(result: Any) -> str:
    return f"Intervals include the privacy noise; spent: {result.spent}."


def _with_size(effect: dict[str, Any]) -> str:
    size = effect.get("size")
    if not size or " - " in name_of(effect):
        return name_of(effect)
    about = "about " if effect.get("size_sd") else ""
    return f"{name_of(effect)}\n({about}{max(round(size), 0):,} people)"


def _title_of(facts: dict[str, Any]) -> str:
    if "by" in facts:
        return f"Effect of {facts['treatment']} on {facts['outcome']} by {', '.join(facts['by'])}"
    if "policy" in facts:
        return f"Value per person: {facts['policy']}"
    return f"Effect of {facts['treatment']} on {facts['outcome']}"
