"""Sensitivity to omitted confounders in words, as tables and as a picture, from the facts of `Sensitivity.to_dict`."""

from __future__ import annotations

from html import escape
from math import ceil
from typing import Any

from counterveil.report.view import Cells, Facts, Item, View, percent, rounded

_BENCHMARKS = 9  # rows of a short table: three covariates at three strengths
_NOTE = (
    "Computed from released numbers alone; nothing was spent. Intervals include the privacy noise. No figure here "
    "says whether there is such a confounder."
)


def sensitivity_view(facts: Facts, full: bool = False) -> View:
    """Return what is shown of a sensitivity analysis: warnings, a row for every effect, benchmarks, and the meaning."""
    benchmarks = benchmark_cells(facts, None if full else _BENCHMARKS)
    tables = [effect_cells(facts), *([benchmarks] if benchmarks else [])]
    title = f"Unmeasured confounding: effect of {facts['treatment']} on {facts['outcome']}"
    items = [*sensitivity_items(facts), ("Note", _NOTE)]
    return View(
        list(facts["warnings"]), title, "how strong an omitted confounder would have to be", tables, items
    )


def effect_cells(facts: Facts) -> Cells:
    """Return the table of effects: the bias that takes the interval to zero, E-values and robustness values."""
    headings = ["", "estimate", f"{percent(facts['level'])} interval", "tipping"]
    headings += ["E-value", "limit's", "RV", "limit's"]
    return Cells(headings, [_row(one) for one in facts["effects"]])


def _row(one: Facts) -> list[str]:
    digits = max(one["high"] - one["low"], 1e-300) / 4
    return [
        one["name"],
        rounded(one["estimate"], digits),
        f"[{rounded(one['low'], digits)}, {rounded(one['high'], digits)}]",
        rounded(one["tipping_bias"], digits),
        _number(one["e_value"]),
        _number(one["e_value_limit"]),
        _share(one["robustness"]),
        _share(one["robustness_limit"]),
    ]


def benchmark_cells(facts: Facts, most: int | None = None) -> Cells | None:
    """Return the table of confounders as strong as covariates; None where there are none."""
    rows = facts["benchmarks"][:most]
    if not rows:
        return None
    headings = ["confounder like", "explains of treatment", "needs of outcome"]
    return Cells(
        headings, [[named(one), _share(one["treatment_r2"]), _needed(one["outcome_r2"])] for one in rows]
    )


def named(one: Facts) -> str:
    """Return a benchmark in words: the covariate, and how many times as strong."""
    return str(one["covariate"]) if one["times"] == 1 else f"{one['times']:g} x {one['covariate']}"


def sensitivity_items(facts: Facts) -> list[Item]:
    """Return what the figures mean, in sentences; of several effects in general."""
    effects = facts["effects"]
    if len(effects) == 1:
        return _single(facts, effects[0])
    return [
        (
            "Tipping",
            "tipping bias: the least that takes an effect's interval to zero; 0 where it covers zero",
        ),
        (
            "E-value",
            "a confounder with smaller risk ratios, both with treatment and with outcome, cannot explain the effect "
            f"away; {_how(facts, {})}",
        ),
        (
            "RV",
            "robustness value: no confounder that explains less of both treatment and outcome reaches zero",
        ),
        *_asked(facts),
    ]


def _single(facts: Facts, one: Facts) -> list[Item]:
    digits = max(one["high"] - one["low"], 1e-300) / 4
    if one["tipping_bias"] == 0:
        tipping = "the interval covers zero before any confounding is supposed"
    else:
        part = one["tipping_bias"] / abs(one["estimate"])
        bias = rounded(one["tipping_bias"], digits)
        tipping = f"a bias of {bias}, {100 * part:.0f} % of the estimate, takes the interval to zero"
    items = [
        ("Tipping", tipping),
        (
            "E-value",
            f"{_number(one['e_value'])}, of the interval's limit {_number(one['e_value_limit'])}: a confounder with "
            "smaller risk ratios, both with treatment and with outcome, cannot explain it away; "
            f"{_how(facts, one)}",
        ),
    ]
    if one["robustness"] is not None:
        items.append(
            (
                "RV",
                f"robustness value {_share(one['robustness'])}, of the interval {_share(one['robustness_limit'])}: no "
                "confounder that explains less of both, what covariates leave of treatment and of outcome, takes it "
                "to zero",
            )
        )
    return items + _asked(facts)


def _how(facts: Facts, one: Facts) -> str:
    if facts["how"] == "standardised difference":
        known = "" if one.get("sd") is None else f" with an outcome SD of {one['sd']:.3g}"
        return f"approximate, from the standardised difference{known}"
    return f"from the {facts['how']}"


def _asked(facts: Facts) -> list[Item]:
    asked = facts["asked"]
    if asked is None:
        return []
    known = [one for one in facts["effects"] if one["bias"] is not None]
    said = "; ".join(
        f"{one['name']}: bias at most {rounded(one['bias'], one['high'] - one['low'])}, interval "
        f"[{rounded(one['adjusted_low'], one['high'] - one['low'])}, "
        f"{rounded(one['adjusted_high'], one['high'] - one['low'])}]"
        for one in known
    )
    shares = f"explaining {_share(asked['treatment_r2'])} of treatment and {_share(asked['outcome_r2'])} of outcome"
    return [("Asked", f"a confounder {shares}: {said or 'not known, as the number of rows is not'}")]


# The section of a report, with a picture of which confounders take the interval to zero.


def html_sensitivity(facts: Facts) -> str:
    """Return the section of a result's page; empty where there is none."""
    found = facts.get("confounding")
    if not found:
        return ""
    cells = benchmark_cells(found, _BENCHMARKS)
    rows = "".join(
        f"<dt>{escape(name)}</dt><dd>{escape(text)}</dd>" for name, text in sensitivity_items(found)
    )
    table = "" if cells is None else _table(cells)
    several = _table(effect_cells(found)) if len(found["effects"]) > 1 else ""
    return f"<h2>Unmeasured confounding</h2>{several}<dl>{rows}</dl>{tipping_plot(found)}{table}<p>{escape(_NOTE)}</p>"


def _table(cells: Cells) -> str:
    heads = "".join(f"<th>{escape(head)}</th>" for head in cells.headings)
    body = "".join(
        "<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in cells.rows
    )
    return f'<div class="table"><table><tr>{heads}</tr>{body}</table></div>'


_LEFT, _RIGHT, _TOP, _BOTTOM = 70.0, 690.0, 16.0, 236.0
_POINTS = 60


def tipping_plot(facts: Facts) -> str:
    """Return inline SVG: the confounders, by their shares of treatment and outcome, that take the interval to zero.

    Empty for several effects, and where the interval covers zero or no bound is known.
    """
    (first, *others) = facts["effects"]
    if others or not first["scale"] or not first["tipping_bias"]:
        return ""
    squared = (first["tipping_bias"] / first["scale"]) ** 2
    most = axis_reach(facts)

    def x(share: float) -> float:
        return _LEFT + (_RIGHT - _LEFT) * share / most

    def y(share: float) -> float:
        return _BOTTOM - (_BOTTOM - _TOP) * min(share, most) / most

    first_share = squared / (squared + most)
    shares = [first_share + (most - first_share) * k / _POINTS for k in range(_POINTS + 1)]
    curve = [(x(one), y(squared * (1 - one) / one)) for one in shares]
    line = " ".join(f"{a:.1f},{b:.1f}" for a, b in curve)
    area = f"{line} {x(most):.1f},{_TOP:.1f} {curve[0][0]:.1f},{_TOP:.1f}"
    marks = "".join(_mark(x(one["treatment_r2"]), named(one)) for one in marked(facts, most))
    ticks = "".join(_ticks(x, y, most * k / 4) for k in range(5))
    return (
        f'<svg viewBox="0 0 720 300" role="img" aria-label="confounders that take the interval to zero">'
        f'<polygon points="{area}" fill="#f3dcdc"/><polyline points="{line}" fill="none" stroke="#8a1c1c" '
        f'stroke-width="2"/>{marks}{ticks}'
        f'<text x="{_RIGHT}" y="{_TOP + 16}" font-size="12" text-anchor="end" fill="#8a1c1c">takes the interval to '
        f'zero</text><text x="20" y="288" font-size="12" fill="#51606f">across: share of the treatment that a '
        "confounder explains; up: of the outcome; dashed: as strong as a covariate</text></svg>"
    )


def axis_reach(facts: Facts) -> float:
    """Return how far both axes go: beyond the robustness value and the strongest covariate, at most to 1."""
    strengths = [one["treatment_r2"] for one in facts["benchmarks"] if one["times"] == 1]
    value = float(facts["effects"][0]["robustness"])
    most = max(1.6 * value, 1.15 * max(strengths, default=0.0), 0.02)
    step = 0.02 if most <= 0.1 else 0.1
    return min(1.0, step * ceil(most / step))


def marked(facts: Facts, most: float) -> list[Facts]:
    """Return the benchmarks of the strongest covariates at their own strength, those apart from each other."""
    found: list[Facts] = []
    for one in facts["benchmarks"]:
        near = any(abs(one["treatment_r2"] - other["treatment_r2"]) < most / 12 for other in found)
        if one["times"] == 1 and not near and len(found) < 4:
            found.append(one)
    return found


def _mark(x: float, name: str) -> str:
    short = name if len(name) <= 18 else name[:17] + "…"
    return (
        f'<line x1="{x:.1f}" x2="{x:.1f}" y1="{_TOP}" y2="{_BOTTOM}" stroke="#155a8a" stroke-dasharray="4 4"/>'
        f'<text x="{x + 4:.1f}" y="{_BOTTOM - 6}" font-size="12" fill="#155a8a">{escape(short)}</text>'
    )


def _ticks(x: Any, y: Any, share: float) -> str:
    grey = 'font-size="12" fill="#51606f"'
    return (
        f'<text x="{x(share):.1f}" y="{_BOTTOM + 20}" text-anchor="middle" {grey}>{_share(share)}</text>'
        f'<text x="{_LEFT - 8}" y="{y(share) + 4:.1f}" text-anchor="end" {grey}>{_share(share)}</text>'
    )


def _number(value: float | None) -> str:
    return "infinite" if value is None else f"{value:.2f}"


def _share(value: float | None) -> str:
    if value is None:
        return "not known"
    return f"{100 * value:.1f} %" if 0 < value < 0.0995 else f"{100 * value:.0f} %"


def _needed(value: float | None) -> str:
    if value is None:
        return "not known"
    return "cannot" if value > 1 else _share(value)
