"""The report of a result: what was asked, what came out, one picture and what is protected; the rest below.

In: the facts of an answer, all released or public. Out: a `View` with sections for diagnostics, shown in the
units in which the answer holds them.
"""

from __future__ import annotations

from counterveil.privacy import Budget
from counterveil.report.balance import balance_blocks, overlap_blocks, table_one_blocks
from counterveil.report.caveats import caveat_words
from counterveil.report.confounding import confounding_blocks
from counterveil.report.measures import curve_plot
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
from counterveil.report.text import (
    Block,
    Code,
    Facts,
    Item,
    Listed,
    Named,
    Picture,
    Section,
    Sentences,
    View,
    percent,
)
from counterveil.report.view import (
    details_sentence,
    effect_cells,
    first_lines,
    interval_sentence,
    lead_sentence,
    mean_cells,
    title,
    unit_word,
)
from counterveil.report.words import answer_words, kind_of, protection_words, question_words, write_up


def report_view(facts: Facts) -> View:
    """Return everything about a result, in parts that are each complete."""
    drawn = picture(facts) or "<p>There is no picture: an interval is unbounded.</p>"
    sections = [
        Section("Answer", [Sentences(answer_words(facts)), Picture(drawn)]),
        Section("What is protected", [*protection_words(facts)]),
        _folded("All numbers", _numbers(facts)),
        _folded("Who was compared", table_one_blocks(facts)),
        *diagnostic_sections(facts),
        _folded("What the intervals do not cover", [Listed(caveat_words(facts))]),
        _folded("What is guaranteed", _guarantee(facts)),
        _folded("What was released, and what it cost", _price(facts)),
        _folded("For a paper", [write_up(facts)]),
        _folded("How to repeat it", _repeated(facts)),
    ]
    return View(first_lines(facts), title(facts), question_words(facts), [], [], sections=sections)


def diagnostic_sections(facts: Facts) -> list[Section]:
    """Return what is known of balance, overlap and confounding; empty sections where nothing is."""
    return [
        _folded("Balance of the covariates", balance_blocks(facts)),
        _folded("Overlap of the arms", overlap_blocks(facts)),
        _folded("Unmeasured confounding", confounding_blocks(facts)),
    ]


def _folded(heading: str, blocks: list[Block]) -> Section:
    return Section(heading, blocks, folded=True)


def _numbers(facts: Facts) -> list[Block]:
    means = mean_cells(facts)
    rows: list[Item] = [
        ("Estimated", lead_sentence(facts)),
        ("Method", facts["method"]),
        ("Interval", interval_sentence(facts)),
        *facts.get("notes", []),
        ("Details", details_sentence(facts["details"], unit_word(facts))),
    ]
    return [effect_cells(facts), *([means] if means else []), Named(rows)]


def _guarantee(facts: Facts) -> list[Block]:
    guarantee = facts["guarantee"]
    rows: list[Item] = [
        ("Guarantee", guarantee["sentence"]),
        ("Proofs", ", ".join(guarantee["pages"])),
        *(("Remark", remark) for remark in guarantee["remarks"]),
    ]
    return [Named(rows), Listed(guarantee["public"], "Taken as public")]


def _price(facts: Facts) -> list[Block]:
    releases = [f"{name}: {text}" for name, text in facts["releases"]]
    return [f"Spent: {Budget.from_dict(facts['spent'])}", Listed(releases)]


def _repeated(facts: Facts) -> list[Block]:
    """Return the study and the calls that ask the same; nothing where they are not known."""
    known = facts.get("repeat")
    if not known:
        return []
    parts = (
        ("The study, study.toml", "study", "toml"),
        ("Python", "python", "python"),
        ("Command line", "command", "sh"),
    )
    return [
        known["remark"],
        *(Code(known[key], heading, language) for heading, key, language in parts if known.get(key)),
    ]


def picture(facts: Facts) -> str:
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
        "not an interval for the effect"
        if facts.get("interval_target")
        else "with privacy noise: report this"
    )
    shown = [effect | {"name": label}]
    # A function has no shorter interval: its covariance is that of all errors together.
    if "interval_without_noise" in effect:
        shorter = {"name": "sampling error alone: too short", "interval": effect["interval_without_noise"]}
        shown.append(effect | shorter | {"weight": 0})
    return forest_plot(shown)


def _curves(facts: Facts) -> str:
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
