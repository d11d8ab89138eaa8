"""The league as one HTML page: pictures, who is first, every number, verdicts, time and memory."""

from __future__ import annotations

import base64
from collections.abc import Iterable, Sequence
from html import escape
from io import BytesIO
from typing import Any

import numpy as np
import pandas as pd
from experiments.causal.real import FOR_RANGE, MARGIN
from matplotlib.ticker import FuncFormatter, LogLocator

from benchmarks.accuracy.designs import DATA
from benchmarks.accuracy.entries import APPROXIMATE, AUTO, EPSILONS, GUARANTEES, PURE, SLOW, TARGET, ZERO
from benchmarks.accuracy.outcomes import outcomes
from benchmarks.accuracy.resources import MEASURED_ON
from benchmarks.accuracy.standing import CLEAR, FARTHEST, FEWEST, Cell, Cells, compared, ranked
from benchmarks.accuracy.summary import COUNTED, shares
from benchmarks.accuracy.testing import LEVEL, PEOPLE, SHARE
from counterveil.report.pictures import pyplot
from counterveil_lab.reproduce.plots import Axes, panels
from counterveil_lab.reproduce.rivals.apart import MODEL_MB, STEPS
from counterveil_lab.reproduce.rivals.catalogue import RIVALS
from counterveil_lab.reproduce.rivals.ours import KAPPA

_STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; color: #1c2733; max-width: 78rem; margin: 2rem auto; padding: 0 1rem; }
h1, h2, h3 { line-height: 1.2; } img { max-width: 100%; } .wide { overflow-x: auto; }
table { border-collapse: collapse; font-size: 13px; margin: .6rem 0 1.4rem; }
th, td { padding: .2rem .55rem; border-bottom: 1px solid #dde4ea; text-align: right; white-space: nowrap; }
th { background: #f3f6f8; white-space: normal; vertical-align: bottom; min-width: 4rem; }
td:first-child, th:first-child { white-space: nowrap !important; }
td:first-child, th:first-child, .text td, .text th { text-align: left; white-space: normal; }
td.first { font-weight: 700; text-decoration: underline; } td.apart { color: #51606f; font-style: italic; }
"""
# Names in pictures: those of the papers' pictures, so that a method has one colour throughout.
_DRAWN = {
    "ours, auto (outcome)": "ours, outcome",
    "ours, auto (record)": "ours, record",
    "PrivATE, label": "PrivATE (label)",
    "PrivATE, sample": "PrivATE (sample)",
    TARGET: "without privacy",
}
_ACROSS = 4
# Below what a logarithmic axis shows.
_LEAST = 1e-4


def page(
    found: Cells, verdicts: dict[str, str], costs: dict[str, dict[str, Any]], tests: list[dict[str, Any]]
) -> str:
    """Return the page; at a delta its tables have the better of a method's two answers."""
    shown = compared(found)
    parts = [
        "<h1>Private average effects: the league</h1>",
        _introduction(found),
        _shares(found),
        *(part for guarantee in GUARANTEES for part in _guarantee(shown, guarantee)),
        "<h2>Cells that auto does not win</h2>",
        _reasons(found, "why"),
        "<h2>Cells in which another method of ours is closer than auto</h2>",
        "<p>Auto chooses by public numbers alone, before anything is drawn. Weighting with everything spent on the "
        "value is left out here: it buys no variance, and its intervals are long.</p>",
        _reasons(found, "closer"),
        "<h2>Claims, and what audits say</h2>",
        _claims(verdicts),
        "<h2>Time and memory</h2>",
        _costs(costs),
        *_tests(tests),
    ]
    head = f'<head><meta charset="utf-8"><title>The league</title><style>{_STYLE}</style></head>'
    return (
        f'<!doctype html><html lang="en">{head}'
        + "<body><main>"
        + "\n".join(parts)
        + "</main></body></html>\n"
    )


def _introduction(found: Cells) -> str:
    draws = [cell.draws for methods in found.values() for name, cell in methods.items() if name == ZERO]
    data = "".join(f"<li>{escape(name)}: {escape(one.about)}</li>" for name, one in DATA.items())
    few = ", ".join(f"{escape(name)} {count}" for name, count in SLOW.items())
    on = (
        ", ".join(sorted({key[0] for key, methods in found.items() if set(SLOW) & set(methods)})) or "no data"
    )
    return (
        "<p>Every method gets the same records, the same public bounds and the same budget; people stay as they are "
        "and outcomes are drawn anew around known means, so that the true effect is known. The ranges of IHDP and ACIC "
        f"are those of {FOR_RANGE} other draws, widened by {100 * MARGIN:g}%; the others are declared. Errors are "
        "root mean squares around the truth, in percent of the outcome's range, over "
        f"{min(draws)} to {max(draws)} draws; one answer counts as at most {FARTHEST:g} ranges off. Methods whose "
        "claim is refuted are shown in italics and are not ranked. Methods stated for one row added or removed get the "
        "whole epsilon, which is a weaker guarantee than ours. Zero is the answer of nobody who looked at the data: a "
        'method above it says nothing. "Confounding bounded" is auto for an analyst who '
        f"declares kappa = {KAPPA:g}: it always answers, and its intervals cover only if the bound is true.</p>"
        f"<p>One answer of a graphical model or of boosted learners takes seconds to minutes. They run on {escape(on)} "
        f"alone and get fewer draws ({few}; below {FEWEST} a method is shown but not ranked). AIM and MST fit their "
        f"model in {STEPS} steps instead of 1,000 and more, and it may have {MODEL_MB} MB: with more of both they may "
        "be more accurate. PrivSyn is a reduced implementation after its paper.</p>"
        f"<ul>{data}</ul>"
    )


def _table(heads: Sequence[str], rows: Iterable[Sequence[tuple[str, str]]], kind: str = "") -> str:
    top = "".join(f'<th scope="col">{escape(head)}</th>' for head in heads)
    body = "".join(
        "<tr>" + "".join(f'<td class="{name}">{escape(text)}</td>' for text, name in row) + "</tr>"
        for row in rows
    )
    return f'<div class="wide"><table class="{kind}"><thead><tr>{top}</tr></thead><tbody>{body}</tbody></table></div>'


def _plain(*cells: object) -> list[tuple[str, str]]:
    return [(str(cell), "") for cell in cells]


def _shares(found: Cells) -> str:
    heads = ("guarantee", "cells", *COUNTED.values())
    rows = [
        _plain(
            one.guarantee, one.cells, *(f"{won} ({won / max(1, one.cells):.0%})" for won in one.won.values())
        )
        for one in shares(outcomes(found))
    ]
    about = (
        "<p>First is a method of ours, or auto, that is closer to the truth than all methods of others in a cell, over "
        f"common draws; clearly if by {CLEAR:g} standard errors of the difference in squared error. Which method of "
        "ours is first is known only afterwards. At a delta the better of a method's two answers counts, because a "
        "pure guarantee holds at any delta; it is marked by a p below. An answer of auto that is the same at both "
        "guarantees counts twice.</p>"
    )
    return "<h2>Who is first</h2>" + about + _table(heads, rows)


def _guarantee(found: Cells, guarantee: str) -> list[str]:
    own = {key: cell for key, cell in found.items() if key[1] == guarantee}
    if not own:
        return []
    names = [name for name in DATA if any(key[0] == name for key in own)]
    pictures = [_picture(own, names[first : first + _ACROSS]) for first in range(0, len(names), _ACROSS)]
    return [
        f"<h2>{escape(guarantee[0].upper() + guarantee[1:])}</h2>",
        *(f'<img alt="Errors by epsilon: {escape(guarantee)}" src="{picture}">' for picture in pictures),
        "<h3>Root mean square error, percent of the range</h3>",
        _errors(own, names),
        "<h3>Distance to the estimate without privacy, median, percent of it</h3>",
        _figures(own, names, lambda cell: f"{100 * cell.relative:.3g}", _able(own)),
        "<h3>Coverage of 95% intervals / their median width, percent of the range</h3>",
        _figures(own, names, _interval, [one for one in _able(own) if _has_interval(own, one)]),
        "<h3>CPU seconds of one answer, median</h3>",
        _figures(own, names, lambda cell: f"{cell.seconds:.2g}", _able(own)),
    ]


def _able(own: Cells) -> list[str]:
    """Return the methods of a guarantee in the order of the catalogue."""
    return [name for name in RIVALS if any(name in cell for cell in own.values())]


def _has_interval(own: Cells, name: str) -> bool:
    return any(name in cell and not np.isnan(cell[name].coverage) for cell in own.values())


def _interval(cell: Cell) -> str:
    return "" if np.isnan(cell.coverage) else f"{cell.coverage:.2f} / {100 * cell.width:.3g}"


def _errors(own: Cells, names: list[str]) -> str:
    methods, guarantee = _able(own), _only(own)
    rows = []
    for name in names:
        for epsilon in EPSILONS:
            cell = own.get((name, guarantee, f"{epsilon:g}"), {})
            order = ranked(cell)
            row = _plain(f"{name}, {epsilon:g}")
            for method in methods:
                one = cell.get(method)
                mark = "apart" if RIVALS[method].claim == "refuted" else ""
                mark = "first" if order and method == order[0] else mark
                row.append((_error(one, guarantee), mark))
            rows.append(row)
    return _table(["data, epsilon", *methods], rows)


def _only(own: Cells) -> str:
    return next(iter(own))[1]


def _error(cell: Cell | None, guarantee: str) -> str:
    """Return the error, with a p where a pure answer stands at a delta."""
    if cell is None:
        return ""
    stands = " p" if cell.drawn_at == PURE and guarantee == APPROXIMATE else ""
    return f"{100 * cell.rmse:.3g}{stands}" if cell.draws else cell.refusal


def _figures(own: Cells, names: list[str], figure: Any, methods: list[str]) -> str:
    rows = []
    for name in names:
        for epsilon in EPSILONS:
            cell = own.get((name, _only(own), f"{epsilon:g}"), {})
            values = [figure(cell[one]) if one in cell and cell[one].draws else "" for one in methods]
            rows.append(_plain(f"{name}, {epsilon:g}", *values))
    return _table(["data, epsilon", *methods], rows)


def _picture(own: Cells, names: list[str]) -> str:
    """Return errors by epsilon as a picture inside the page; refuted methods are left to the tables."""
    guarantee = _only(own)
    lines = [AUTO[guarantee], *(one for one in _able(own) if not RIVALS[one].ours and one != AUTO[guarantee])]
    kept = [
        one
        for one in lines
        if RIVALS[one].claim != "refuted" and (RIVALS[one].protects != "nothing" or one in (TARGET, ZERO))
    ]
    rows = [
        {
            "data": name,
            "epsilon": epsilon,
            "error": 100 * min(max(own[key][method].rmse, _LEAST), FARTHEST),
            "method": _DRAWN.get(method, method),
        }
        for method in kept
        for name in names
        for epsilon in EPSILONS
        if method in own.get(key := (name, guarantee, f"{epsilon:g}"), {}) and own[key][method].draws
    ]
    labels = Axes("epsilon", "error, % of range", log_x=True, log_y=True)
    drawing = panels(pd.DataFrame(rows), labels, x="epsilon", y="error", line="method", columns="data")
    for ax in drawing.axes:
        ax.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        ax.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        ax.minorticks_off()
        ax.set_xticks(EPSILONS, [f"{epsilon:g}" for epsilon in EPSILONS])
    file = BytesIO()
    drawing.savefig(file, format="png", dpi=110, metadata={"Software": None})
    pyplot().close(drawing)
    return "data:image/png;base64," + base64.b64encode(file.getvalue()).decode()


def _reasons(found: Cells, field: str) -> str:
    rows = [_plain(*one.key, getattr(one, field)) for one in outcomes(found) if getattr(one, field)]
    return _table(("data", "guarantee", "epsilon", "why"), rows, "text")


def _claims(said: dict[str, str]) -> str:
    rows = [
        _plain(name, one.protects, one.claim, said.get(name, ""), one.why) for name, one in RIVALS.items()
    ]
    return _table(("method", "protects", "claim", "audit", "why"), rows, "text")


def _costs(costs: dict[str, dict[str, Any]]) -> str:
    if not costs:
        return "<p>Not measured: pass --measure.</p>"
    rows = [
        _plain(name, one.get("seconds", ""), one.get("peak", ""), one.get("refused", ""))
        for name, one in costs.items()
    ]
    about = (
        f"<p>One answer at epsilon 1 on {MEASURED_ON} ({DATA[MEASURED_ON].about}), each in a fresh process. "
        "Packages in an environment of their own run in a second process: both are added, and the first alone holds "
        f"{min(one['peak'] for one in costs.values() if 'peak' in one)} MB or more.</p>"
    )
    return about + _table(
        ("method", "CPU seconds", "peak memory, MB, of all processes", "refused"), rows, "text"
    )


def _tests(tests: list[dict[str, Any]]) -> list[str]:
    """Return the table of rejections by test, epsilon and effect."""
    if not tests:
        return []
    rows = [
        _plain(*(one[name] for name in ("test", "epsilon", "effect", "rejects", "draws"))) for one in tests
    ]
    about = f"<p>{PEOPLE} people, half treated, {SHARE:.0%} yes among the others; level {LEVEL:.0%}.</p>"
    return [
        "<h2>Tests of no effect</h2>",
        about,
        _table(("test", "epsilon", "effect", "rejects", "draws"), rows),
    ]
