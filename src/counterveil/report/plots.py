"""Pictures of released results: an effect along a covariate, a forest, a targeting curve, balance.

Everything drawn was released before: plots spend nothing. They need matplotlib, the extra `plots`.
"""

from __future__ import annotations

from collections.abc import Mapping
from html import escape
from textwrap import fill
from typing import Any

import numpy as np

from counterveil.errors import MissingExtraError, ParameterError
from counterveil.report.view import percent

# Balance of the covariates as text and as a love plot; shown only where covariates are public.


# Differences beyond this are worth a look; the usual rule of thumb.
THRESHOLD = 0.1
_MOST = 40  # rows of a table or a plot: those with the largest differences before
_HEADINGS = ("covariate", "before", "after", "ratio before", "ratio after")
_BEFORE, _AFTER = "#a9b8c6", "#155a8a"


def balance_table(facts: dict[str, Any]) -> str:
    """Return standardised differences and variance ratios before and after, largest first, as plain text.

    `facts` is `Result.to_dict()`. Without diagnostics the text says why there are none.
    """
    rows = balance_rows(facts)
    if not rows:
        return "No balance table: covariates are private in this result, or the method does not use them."
    lines = [
        f"Balance of the covariates ({facts['estimand']}): standardised differences, treated minus control",
        "",
        *_columns([_HEADINGS, *(_cells(row) for row in rows[:_MOST])]),
    ]
    if len(rows) > _MOST:
        lines.append(f"... and {len(rows) - _MOST} more columns with smaller differences before")
    lines += ["", _verdict(rows)]
    for arm in facts.get("diagnostics", {}).get("effective_size", []):
        lines.append(f"Effective size, {arm['arm']}: {arm['effective']:.0f} of {arm['rows']} rows")
    return "\n".join(lines)


def html_balance(facts: dict[str, Any]) -> str:
    """Return the section of a page with table and love plot; empty where there are no diagnostics."""
    rows = balance_rows(facts)
    if not rows:
        return ""
    heads = "".join(f"<th>{escape(head)}</th>" for head in _HEADINGS)
    body = "".join(
        "<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in _cells(row)) + "</tr>" for row in rows[:_MOST]
    )
    return (
        f"<h2>Balance of the covariates</h2><p>{escape(_verdict(rows))}</p>{love_plot(rows[:_MOST])}"
        f"<table><tr>{heads}</tr>{body}</table>"
    )


def love_plot(rows: list[dict[str, Any]]) -> str:
    """Return the absolute standardised differences before and after, one line a covariate, as inline SVG."""
    known = [abs(row[key]) for row in rows for key in _DIFFERENCES if row[key] is not None]
    reach = float(max([2 * THRESHOLD, *known]))
    height = 20 * len(rows) + 46

    def x(value: float) -> float:
        return 200 + 490 * value / reach

    def dot(row: dict[str, Any], key: str, y: int, colour: str) -> str:
        if row[key] is None:
            return ""
        return f'<circle cx="{x(abs(row[key])):.1f}" cy="{y}" r="5" fill="{colour}"/>'

    lines = []
    for place, row in enumerate(rows):
        y = 20 * place + 18
        lines.append(
            f'<text x="190" y="{y + 4}" font-size="12" text-anchor="end" fill="#1c2733">'
            f"{escape(_short(row['covariate']))}</text>"
            f'<line x1="200" x2="690" y1="{y}" y2="{y}" stroke="#e6ebf0"/>'
            + dot(row, "difference_before", y, _BEFORE)
            + dot(row, "difference_after", y, _AFTER)
        )
    foot = height - 24
    return (
        f'<svg viewBox="0 0 720 {height}" role="img" aria-label="love plot">'
        f'<line x1="{x(THRESHOLD):.1f}" x2="{x(THRESHOLD):.1f}" y1="6" y2="{foot}" stroke="#9aa7b4" '
        f'stroke-dasharray="4 4"/>{"".join(lines)}'
        f'<text x="200" y="{height - 6}" font-size="12" fill="#51606f">'
        f"absolute standardised difference, 0 to {reach:.2f}; grey before, blue after; dashed at {THRESHOLD}"
        "</text></svg>"
    )


_DIFFERENCES = ("difference_before", "difference_after")


def balance_rows(facts: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the rows by falling difference before; one that does not exist comes first."""
    rows: list[dict[str, Any]] = facts.get("diagnostics", {}).get("balance", [])

    def size(row: dict[str, Any]) -> float:
        value = row["difference_before"]
        return float("inf") if value is None else abs(value)

    return sorted(rows, key=size, reverse=True)


def _verdict(rows: list[dict[str, Any]]) -> str:
    before, after = (
        sum(row[key] is None or abs(row[key]) > THRESHOLD for row in rows) for key in _DIFFERENCES
    )
    return f"Columns that differ by more than {THRESHOLD}: {before} before, {after} after, of {len(rows)}"


def _cells(row: dict[str, Any]) -> tuple[str, ...]:
    differences = [_number(row[key], "+.3f") for key in _DIFFERENCES]
    ratios = [_number(row[key], ".2f") for key in ("variance_ratio_before", "variance_ratio_after")]
    return (row["covariate"], *differences, *ratios)


def _number(value: float | None, form: str) -> str:
    return "none" if value is None else format(value, form)


def _short(name: str) -> str:
    return name if len(name) <= 28 else name[:27] + "…"


def _columns(rows: list[tuple[str, ...]]) -> list[str]:
    widths = [max(len(row[place]) for row in rows) for place in range(len(rows[0]))]
    return [
        row[0].ljust(widths[0])
        + "".join(cell.rjust(width + 3) for cell, width in zip(row[1:], widths[1:], strict=True))
        for row in rows
    ]


__all__ = ["balance", "effect_curve", "forest", "policy_curve"]

# The frame of a picture: axes without clutter, a title, a note on what is shown, and a stamp where it is simulated.


INK, PALE, PALER, GREY, WARNING = "#155a8a", "#9fc1d8", "#d6e5ef", "#51606f", "#8a1c1c"
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
        raise MissingExtraError(
            "CV-E040",
            "plots need matplotlib, which is not installed",
            expected="the extra plots",
            got="no module named matplotlib",
            fix='pip install "counterveil[plots]"; result.to_html(path) has a picture without it',
        ) from None
    return found


def zero_line(ax: Any, axis: str) -> None:
    """Draw the line of no effect, across the vertical ("y") or the horizontal axis."""
    draw = ax.axhline if axis == "y" else ax.axvline
    draw(0.0, color=GREY, lw=1, ls=(0, (4, 4)), zorder=1)


def legend(ax: Any) -> None:
    """Write the legend where it hides least, on white."""
    ax.legend(loc="best", fontsize=8, facecolor="white", edgecolor="none", framealpha=0.9)


def finish(ax: Any, title: str, note: str, result: Any) -> None:
    """Write title and note and, where the guarantee is less than proved, the warning across the picture."""
    ax.set_title(fill(title, 70), loc="left", fontsize=12, fontweight="bold", color="#1c2733", pad=22)
    warning = result.guarantee.warning
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
    facts = result.report_facts()
    effects = list(reversed(facts["effects"]))
    several = "simultaneous_interval" in effects[0]
    ax = canvas(ax, height=1.9 + 0.42 * len(effects))
    level = percent(effects[0]["interval"]["level"])
    for place, effect in enumerate(effects):
        if several:
            wide = effect["simultaneous_interval"]
            ax.plot([wide["low"], wide["high"]], [place, place], "|-", color=PALE, lw=2.5, ms=9, mew=2)
        own, colour = effect["interval"], PALE if effect.get("weight") == 0 else INK
        ax.plot([own["low"], own["high"]], [place, place], color=colour, lw=4, solid_capstyle="butt")
        mark = "D" if effect.get("summary") else "o"
        ax.plot(effect["estimate"], place, mark, color="white", ms=5, mec=colour, mew=1.5, zorder=5)
    zero_line(ax, "x")
    ax.set_yticks(range(len(effects)), [_with_size(effect) for effect in effects])
    ax.set_ylim(-0.6, len(effects) - 0.4)
    gain = "policy" in facts or "shares" in facts
    what = f"gain in {facts['outcome']} per person" if gain else f"effect on {facts['outcome']}, in its units"
    ax.set_xlabel(what)
    dark = f"Dark: {level} interval of one effect. Pale: intervals that hold for all at once. "
    note = dark if several else f"{level} intervals. " + "Pale: weight of zero. " * ("sites" in facts)
    finish(ax, _title_of(facts), note + _noise(result), result)
    return ax


def balance(result: Any, *, ax: Any = None) -> Any:
    """Return the axes with a love plot: absolute standardised differences of the covariates, before and after."""
    rows = balance_rows(result.to_dict())
    if not rows:
        raise ParameterError(
            "CV-P022",
            "this result has no balance to draw",
            expected='a result of matching or weighting with protects="outcome", where covariates are public',
            got=f"{result.method}, protects={result.guarantee.unit.value!r}",
            fix="balance is free where covariates are public; where they are private it is not released",
        )
    rows = list(reversed(rows))
    ax = canvas(ax, height=1.9 + 0.22 * len(rows))
    for label, inside, edge in (("before", "white", GREY), ("after", INK, INK)):
        sizes = [(row[f"difference_{label}"], place) for place, row in enumerate(rows)]
        known = [(abs(size), place) for size, place in sizes if size is not None]
        ax.plot(*np.array(known).reshape(-1, 2).T, "o", color=inside, mec=edge, ms=5, label=label)
    ax.axvline(THRESHOLD, color=GREY, lw=1, ls=(0, (4, 4)), zorder=1)
    ax.set_yticks(range(len(rows)), [row["covariate"] for row in rows])
    ax.set_xlim(left=0)
    ax.set_xlabel("absolute standardised difference")
    legend(ax)
    finish(
        ax, "Balance of the covariates", f"Dashed at {THRESHOLD}. Covariates are public here: free.", result
    )
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
    domain = study.covariates.get(feature)
    if not hasattr(domain, "floats"):
        numeric = [name for name, one in study.covariates.items() if hasattr(one, "floats")]
        raise ParameterError(
            "CV-P023",
            f"no curve can be drawn along {feature!r}",
            expected=f"a covariate that holds numbers: {', '.join(map(repr, numeric)) or 'there is none'}",
            got=f"{feature!r}, "
            + ("which holds labels" if domain is not None else "which the model does not have"),
            fix="draw along one of these; for labels ask model.effect(...) at each of them, or use cv.groups",
        )
    for name in at:
        if name not in study.covariates:
            raise ParameterError(
                "CV-P023",
                f"{name!r} cannot be held: the model does not have it",
                expected=f"covariates of the model: {', '.join(map(repr, study.covariates))}",
                got=f"at={{{name!r}: ...}}",
                fix="correct its name or leave it out",
            )
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
    name = str(effect["name"])
    if not size or " - " in name:
        return name
    about = "about " if effect.get("size_sd") else ""
    return f"{name}\n({about}{max(round(size), 0):,} people)"


def _title_of(facts: dict[str, Any]) -> str:
    if "by" in facts:
        return f"Effect of {facts['treatment']} on {facts['outcome']} by {', '.join(facts['by'])}"
    if "policy" in facts:
        return f"Value per person: {facts['policy']}"
    return f"Effect of {facts['treatment']} on {facts['outcome']}"
