"""A result as a page: what was asked, what came out, one picture and what is protected; everything else folds out."""

from __future__ import annotations

from html import escape
from typing import Any

from counterveil.privacy import Budget
from counterveil.report.balance import html_balance, html_overlap
from counterveil.report.caveats import caveat_words
from counterveil.report.confounding import html_sensitivity, sensitivity_view, tipping_plot
from counterveil.report.document import Cells, View
from counterveil.report.figures import details_sentence
from counterveil.report.numbers import percent
from counterveil.report.page import (
    code,
    document,
    folded,
    named_lines,
    page,
    paragraphs,
    table,
    warnings,
)
from counterveil.report.pictures import (
    Curve,
    axis_note,
    comparable,
    curve_chart,
    event_plot,
    figure,
    forest_plot,
    gain_plot,
)
from counterveil.report.survival import curve_plot
from counterveil.report.table_one import html_table_one
from counterveil.report.view import (
    effect_cells,
    interval_sentence,
    lead_sentence,
    mean_cells,
    title,
    unit_word,
)
from counterveil.report.words import answer_words, kind_of, protection_words, question_words, write_up


def html_page(facts: dict[str, Any]) -> str:
    """Return the report of a result as a page."""
    first = [facts[key] for key in ("warning", "caution") if facts.get(key)]
    drawn = picture(facts) or "<p>There is no picture: an interval is unbounded.</p>"
    return document(
        title(facts),
        f"{warnings(first)}<h1>{escape(title(facts))}</h1>"
        f'<p class="lead">{escape(question_words(facts))}</p>'
        f'<h2>Answer</h2><div class="answer">{paragraphs(answer_words(facts))}</div>{drawn}'
        f"<h2>What is protected</h2>{paragraphs(protection_words(facts))}"
        f"<h2>Details</h2>{details(facts)}",
    )


def details(facts: dict[str, Any]) -> str:
    """Return everything else about a result, in parts that fold out, each of them complete."""
    return "".join(
        folded(heading, body)
        for heading, body in (
            ("All numbers", _numbers(facts)),
            ("Who was compared", html_table_one(facts)),
            ("Balance of the covariates", html_balance(facts)),
            ("Overlap of the arms", html_overlap(facts)),
            ("Unmeasured confounding", html_sensitivity(facts)),
            ("What the intervals do not cover", _listed(caveat_words(facts))),
            ("What is guaranteed", _guarantee(facts)),
            ("What was released, and what it cost", _price(facts)),
            ("For a paper", f"<p>{escape(write_up(facts))}</p>"),
            ("How to repeat it", _repeated(facts)),
        )
    )


def sensitivity_page(facts: dict[str, Any]) -> str:
    """Return a sensitivity analysis as a page; `facts` are those of `Sensitivity.to_dict`."""
    view = sensitivity_view(facts, full=True)
    return page(view, f"{tipping_plot(facts)}{named_lines(view.items)}")


# The picture of a result.


def picture(facts: dict[str, Any]) -> str:
    """Return what shows a result best; empty where an interval is not finite.

    That of one effect has beside it the shorter interval that would ignore the noise.
    """
    kind = kind_of(facts)
    if kind == "periods":
        return event_plot(facts)
    if kind == "curve":
        return gain_plot(facts)
    if kind == "survival":
        return curve_plot(facts)
    if facts.get("effect_curves"):
        return _curves(facts)
    effects = comparable(facts)
    if len(effects) != 1:
        zero = "no gain" if kind == "policy" else "no effect"
        return forest_plot(effects, zero, axis=axis_note(facts)) if effects else ""
    (effect,) = effects
    label = (
        "not an interval for the effect" if facts.get("interval_of") else "with privacy noise: report this"
    )
    shown = [effect | {"name": label}]
    # A function has no shorter interval: its covariance is that of all errors together.
    if "interval_without_noise" in effect:
        shorter = {"name": "sampling error alone: too short", "interval": effect["interval_without_noise"]}
        shown.append(effect | shorter | {"weight": 0})
    return forest_plot(shown)


def _curves(facts: dict[str, Any]) -> str:
    """Return the effect along each covariate that holds numbers, the others being held."""
    charts = []
    for one in facts["effect_curves"]:
        curve = Curve(one["x"], one["effect"], tuple(one["interval"]), tuple(one["band"]))
        name = str(one["feature"])
        charts.append(curve_chart(curve, f"effect along {name}", name, f"effect on {facts['outcome']}"))
    left = facts.get("curves_left", 0)
    caption = (
        "Line: estimated effect along one covariate, the others at the middle of their range or their first label. "
        f"Strong band: the {percent(facts['level'])} interval at one point. Faint band: holds for the whole curve."
        + (f" {left} more covariates are not drawn." if left else "")
    )
    return figure("".join(charts), caption, "effects along the covariates") if all(charts) else ""


# The parts that fold out.


def _numbers(facts: dict[str, Any]) -> str:
    means = mean_cells(facts)
    rows = [
        ("Estimated", lead_sentence(facts)),
        ("Method", facts["method"]),
        ("Interval", interval_sentence(facts)),
        *facts.get("notes", []),
        ("Details", details_sentence(facts["details"], unit_word(facts))),
    ]
    arms = table(means, "Means of the arms") if means else ""
    return f"{table(effect_cells(facts), 'Effects')}{arms}{named_lines(rows)}"


def _listed(texts: list[str]) -> str:
    return f"<ul>{''.join(f'<li>{escape(text)}</li>' for text in texts)}</ul>" if texts else ""


def _guarantee(facts: dict[str, Any]) -> str:
    guarantee = facts["guarantee"]
    rows = [
        ("Guarantee", guarantee["sentence"]),
        ("Proofs", ", ".join(guarantee["pages"])),
        *(("Remark", remark) for remark in guarantee["remarks"]),
    ]
    return f"{named_lines(rows)}<h3>Taken as public</h3>{_listed(guarantee['public'])}"


def _price(facts: dict[str, Any]) -> str:
    spent = Budget.from_dict(facts["spent"])
    return f"<p>Spent: {escape(str(spent))}</p>{_listed([f'{name}: {text}' for name, text in facts['releases']])}"


def _repeated(facts: dict[str, Any]) -> str:
    """Return the study and the calls that ask the same; empty where they are not known."""
    known = facts.get("repeat")
    if not known:
        return ""
    parts = [f"<p>{escape(known['remark'])}</p>"]
    for heading, key in (
        ("The study, study.toml", "study"),
        ("Python", "python"),
        ("Command line", "command"),
    ):
        if known.get(key):
            parts.append(f"<h3>{heading}</h3>{code(known[key], heading)}")
    return "".join(parts)


# A piece for a notebook: colours are those of the notebook, light or dark; only the warning has its own.
_CELL = "padding:.25em .7em;text-align:right"
_WARNED = "background:#8a1c1c;color:#fff;padding:.4em .8em;font-weight:700;margin:0 0 .5em"


def fragment(view: View) -> str:
    """Return a view as a piece of HTML for a notebook: the same lines as its text, without any style sheet."""
    first = "".join(f'<p style="{_WARNED}">{escape(text)}</p>' for text in view.first)
    more = "".join(f"<p>{escape(text)}</p>" for text in view.more)
    return (
        f'<div>{first}<p style="margin:0"><strong>{escape(view.title)}</strong><br>{escape(view.lead)}</p>'
        f"{''.join(map(_plain, view.tables))}{more}"
        + "".join(
            f'<p style="margin:.15em 0"><strong>{escape(name)}:</strong> {escape(text)}</p>'
            for name, text in view.items
            if text
        )
        + "</div>"
    )


def _plain(cells: Cells) -> str:
    heads = "".join(f'<th style="{_CELL}">{escape(head)}</th>' for head in cells.headings)
    rows = ["".join(f'<td style="{_CELL}">{escape(cell)}</td>' for cell in row) for row in cells.rows]
    body = "".join(f"<tr>{row}</tr>" for row in rows)
    return f'<div class="table"><table><tr>{heads}</tr>{body}</table></div>'
