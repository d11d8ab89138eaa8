"""Balance and overlap of private arms as text, page and picture, from the facts of `OverlapSummary.to_dict`."""

from __future__ import annotations

from counterveil.report.balance import THRESHOLD
from counterveil.report.document import Block, Cells, Item, Named, Picture, Section, View
from counterveil.report.numbers import Facts, percent
from counterveil.report.pictures import Chart, dot, figure, forest_plot, line
from counterveil.report.view import first_lines, guarantee_line, provenance_items

_ROWS = 12  # covariates of a short table
_RARE = 0.1  # shares treated beyond which few of one arm are like the other's
_AXIS = "treated minus control, in standard deviations"
_LEGEND = "Treated minus control, in standard deviations, with intervals that cover the privacy noise."
_INTERVAL = "for these people, covering the privacy noise; there is no sampling error in them"


def overlap_view(facts: Facts, full: bool = False) -> View:
    """Return tables of differences and of the score, and what they mean."""
    rows = _sorted(facts)
    shown = rows if full else rows[:_ROWS]
    left = len(rows) - len(shown)
    tables = [_differences(shown, facts["level"]), _score(facts)]
    items: list[Item] = [
        ("Balance", _balance(rows)),
        ("Overlap", _overlap(facts)),
        ("Interval", _INTERVAL),
        ("Guarantee", guarantee_line(facts)),
    ]
    if full:
        items += provenance_items(facts)
    lead = f"{facts['rows']:,} people, {facts['share']:.1%} treated (released); before any adjustment"
    more = [f"... and {left} more in summary.effects"] if left > 0 else []
    title = f"Balance and overlap of the arms of {facts['treatment']}"
    drawn, note = _drawn(facts) if full else [], f"Intervals are {_INTERVAL}. {guarantee_line(facts)}."
    return View(first_lines(facts), title, lead, tables, items, more, drawn, note)


def _sorted(facts: Facts) -> list[tuple[Facts, list[float]]]:
    pairs = zip(facts["differences"], facts["intervals"], strict=True)
    return sorted(pairs, key=lambda pair: -abs(pair[0]["difference"]))


def _differences(rows: list[tuple[Facts, list[float]]], level: float) -> Cells:
    headings = ["covariate", "treated", "control", "std. difference", f"{percent(level)} interval"]
    return Cells(
        headings,
        [
            [
                str(one["covariate"]),
                *(f"{one[name]:.4g}" for name in ("treated_mean", "control_mean")),
                f"{one['difference']:+.2f}",
                f"[{low:+.2f}, {high:+.2f}]",
            ]
            for one, (low, high) in rows
        ],
        "Covariates by arm, as released",
    )


def _score(facts: Facts) -> Cells:
    rows = []
    for place, (cell, (low, high)) in enumerate(
        zip(facts["cells"], facts["share_intervals"], strict=True), 1
    ):
        treated, control = cell["treated"], cell["control"]
        share = treated / (treated + control) if treated > 0 and control > 0 else float(treated > control)
        counts = [f"{max(round(count), 0):,}" for count in (treated, control)]
        rows.append([f"part {place}", *counts, f"{share:.2f}", f"[{low:.2f}, {high:.2f}]"])
    headings = ["score", "treated", "control", "share treated", f"{percent(facts['level'])} interval"]
    return Cells(headings, rows, "Parts of the released score")


def _balance(rows: list[tuple[Facts, list[float]]]) -> str:
    certain = sum(low > THRESHOLD or high < -THRESHOLD for _, (low, high) in rows)
    possible = sum(max(-low, high) > THRESHOLD for _, (low, high) in rows)
    return (
        f"of {len(rows)} covariates and labels, {certain} differ by more than {THRESHOLD} standard deviations for "
        f"certain, {possible} possibly"
    )


def _overlap(facts: Facts) -> str:
    ends = facts["share_intervals"]
    certain = sum(high < _RARE or low > 1 - _RARE for low, high in ends)
    possible = sum(low < _RARE or high > 1 - _RARE for low, high in ends)
    return (
        f"of {len(ends)} parts of a score along the difference of the arms, {certain} have fewer than one in ten of "
        f"an arm for certain, {possible} possibly"
    )


def drawn_facts(facts: Facts) -> Facts:
    """Return the differences as effects of a forest, the largest first."""
    effects = [
        {
            "name": one["covariate"],
            "estimate": one["difference"],
            "std_error": {"total": one["sd"]},
            "interval": {"low": low, "high": high},
        }
        for one, (low, high) in _sorted(facts)[:40]
    ]
    return {"level": facts["level"], "effects": effects, "axis": _AXIS}


def _drawn(facts: Facts) -> list[Section]:
    drawn = Picture(forest_plot(drawn_facts(facts)["effects"], "no difference", _LEGEND))
    return [
        Section("Standardised differences", [drawn]),
        Section("Share treated along the score", [Picture(share_plot(facts))]),
    ]


def summary_blocks(facts: Facts) -> list[Block]:
    """Return the summary as a part of another document: what it says, both tables and the picture of the score."""
    view = overlap_view(facts, full=True)
    rows, score = view.tables
    return [view.lead, rows, Picture(share_plot(facts)), score, Named(view.items)]


def share_plot(facts: Facts) -> str:
    """Return the share treated in every part of the score, with its interval."""
    ends = facts["share_intervals"]
    inside, marks = "", []
    for place, (cell, (low, high)) in enumerate(zip(facts["cells"], ends, strict=True)):
        treated, control = cell["treated"], cell["control"]
        x = 100 * (place + 0.5) / len(ends)
        share = min(max(treated / max(treated + control, 1.0), 0.0), 1.0)
        inside += line((x, 100 - 100 * low), (x, 100 - 100 * high), "ink", 5)
        inside += dot((x, 100 - 100 * share), "ink-fill", 6)
        # Every second number, so that they fit on a telephone.
        if place % 2 == 0:
            marks.append((x, f"{max(round(treated + control), 0):,}"))
    heights = [(100 - 100 * share, f"{share:g}") for share in (0.0, _RARE, 0.5, 1 - _RARE, 1.0)]
    chart = Chart(
        inside,
        f"share treated along the score: {_overlap(facts)}",
        marks,
        heights,
        "people in each part",
        height=200,
    )
    caption = "Share treated in each part of a released score, with its interval; people are released counts."
    return figure(chart.html(), caption, "share treated along the score")
