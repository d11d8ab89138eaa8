"""Balance, overlap and Table 1 as text and as pictures; shown only where covariates are public."""

from __future__ import annotations

from typing import Any

from counterveil.report.pictures import (
    Chart,
    axis,
    dot,
    figure,
    forest_plot,
    labels,
    line,
    named_row,
    scale_row,
    ticks,
    word,
)
from counterveil.report.text import Block, Cells, Code, Facts, Item, Named, Picture, Section, View, percent
from counterveil.report.view import first_lines, guarantee_line, provenance_items

# Differences beyond this are worth a look; the usual rule of thumb.
THRESHOLD = 0.1
_MOST = 40  # rows of a text: those with the largest differences before
_HEADINGS = ("covariate", "before", "after", "ratio before", "ratio after")
_LARGEST = 400  # rows of a page
_OF_ARMS = "Standardised differences, each arm minus everybody, and ratios of variances, before and after"
_CAPTION = "Standardised differences, treated minus control, and ratios of variances, before and after"


def balance_view(facts: dict[str, Any], full: bool = False) -> View:
    """Return the table of balance, largest differences first, and how many are large; in full, with a love plot."""
    rows = balance_rows(facts)
    cells = balance_cells(facts, _LARGEST if full else _MOST)
    assert cells is not None
    left = len(rows) - len(cells.rows)
    items = [("Balance", _verdict(rows)), *(("Size", text) for text in _sizes(facts))]
    more = [f"... and {left} more columns with smaller differences before"] if left else []
    drawn = [Section("", [Picture(love_plot(rows[:_LARGEST]))])] if full else []
    return View([], "Balance of the covariates", cells.caption, [cells], items, more, drawn, cells.caption)


def balance_blocks(facts: dict[str, Any]) -> list[Block]:
    """Return what is shown of balance, with a love plot; nothing where there are no diagnostics."""
    rows, cells = balance_rows(facts), balance_cells(facts)
    if cells is None:
        return []
    left = f"... and {len(rows) - _LARGEST:,} more columns with smaller differences before."
    drawn = Picture(love_plot(rows[:_LARGEST]))
    return [_verdict(rows), *_sizes(facts), drawn, cells, *([left] if len(rows) > _LARGEST else [])]


def balance_cells(facts: dict[str, Any], most: int = _LARGEST) -> Cells | None:
    """Return the table of balance, largest differences first; None where there are no diagnostics."""
    rows = balance_rows(facts)
    caption = _OF_ARMS if "arm_means" in facts else _CAPTION
    shown = [list(_cells(row)) for row in rows[:most]]
    return Cells(list(_HEADINGS), shown, caption) if rows else None


def love_plot(rows: list[dict[str, Any]]) -> str:
    """Return the absolute standardised differences before and after, one line a covariate."""
    known = [abs(row[key]) for row in rows for key in _DIFFERENCES if row[key] is not None]
    reach = float(max([2 * THRESHOLD, *known]))

    def x(value: float) -> float:
        return 2 + 96 * value / reach

    def strip(row: dict[str, Any]) -> str:
        drawn = line((2, 50), (98, 50), "grid") + line((x(THRESHOLD), 0), (x(THRESHOLD), 100), "zero")
        for key, kind in zip(_DIFFERENCES, ("hollow", "ink-fill"), strict=True):
            drawn += "" if row[key] is None else dot((x(abs(row[key])), 50), kind)
        return drawn

    values = ticks(0.0, reach, 5)
    marks = "".join(word(x(value), 14, text) for value, text in zip(values, labels(values), strict=True))
    lines = "".join(
        named_row(row["covariate"], strip(row), 22, ", ".join(_cells(row)[:3]) + " (before, after)")
        for row in rows
    )
    caption = (
        f"Absolute standardised difference. Hollow: before. Filled: after. Dashed: {THRESHOLD}, a common "
        "limit."
    )
    return figure(f"{scale_row(marks)}{lines}{scale_row(marks)}", caption, "love plot")


def overlap_rows(facts: dict[str, Any]) -> dict[str, list[float]] | None:
    """Return the counts by propensity score of two arms; None where there are none."""
    found = facts.get("diagnostics", {}).get("overlap")
    return found if isinstance(found, dict) and len(found.get("edges", [])) > 1 else None


def overlap_sentence(found: dict[str, list[float]]) -> str:
    """Return in words how many people have scores near 0 or 1, where few of the other arm are like them."""
    edges, treated, control = found["edges"], found["treated"], found["control"]
    near = [k for k in range(len(treated)) if edges[k + 1] <= THRESHOLD or edges[k] >= 1 - THRESHOLD]
    beyond, everyone = sum(treated[k] + control[k] for k in near), sum(treated) + sum(control)
    return (
        f"{beyond:,.0f} of {everyone:,.0f} people have a propensity score below {THRESHOLD} or above "
        f"{1 - THRESHOLD:g}"
    )


def overlap_blocks(facts: dict[str, Any]) -> list[Block]:
    """Return what is shown of the overlap of the arms; nothing where there are no scores."""
    found = overlap_rows(facts)
    if found is not None:
        return [overlap_sentence(found), Picture(overlap_plot(found))]
    arms = facts.get("diagnostics", {}).get("overlap")
    if not isinstance(arms, list) or not arms:
        return []
    keys = [key for key in arms[0] if key != "arm"]
    heads = ["arm", *(key.replace("_", " ") for key in keys)]
    rows = [[str(arm["arm"]), *(f"{arm[key]:.3g}" for key in keys)] for arm in arms]
    return [Cells(heads, rows, "Scores: the chance of each arm, given the covariates")]


def overlap_plot(found: dict[str, list[float]]) -> str:
    """Return propensity scores of the treated upwards and of the controls downwards, as parts of an arm."""
    parts = {arm: [n / max(sum(found[arm]), 1) for n in found[arm]] for arm in ("treated", "control")}
    reach = max(*parts["treated"], *parts["control"], 1e-9)
    edges = found["edges"]
    x, bars = axis(edges[0], edges[-1]), []
    for k, (up, down) in enumerate(zip(parts["treated"], parts["control"], strict=True)):
        left, width = x(edges[k]) + 0.2, x(edges[k + 1]) - x(edges[k]) - 0.4
        for height, top, kind in (
            (48 * up / reach, 50 - 48 * up / reach, "ink-fill"),
            (48 * down / reach, 50.0, "pale-fill"),
        ):
            bars.append(
                f'<rect x="{left:.2f}%" y="{top:.2f}%" width="{width:.2f}%" height="{height:.2f}%" class="{kind}"/>'
            )
    inside = "".join(bars) + line((0, 50), (100, 50), "axis")
    inside += "".join(line((x(score), 0), (x(score), 100), "zero") for score in (THRESHOLD, 1 - THRESHOLD))
    marks = [edges[0] + (edges[-1] - edges[0]) * k / 4 for k in range(5)]
    shown = [(2.0, f"{reach:.0%}"), (50.0, "0"), (98.0, f"{reach:.0%}")]
    chart = Chart(
        inside,
        f"propensity scores of both arms: {overlap_sentence(found)}",
        [(x(score), f"{score:.2g}") for score in marks],
        shown,
        across="propensity score",
        up="part of the arm: treated upwards, control downwards",
        height=220,
    )
    return figure(chart.html(), f"Dashed: {THRESHOLD} and {1 - THRESHOLD:g}.", "overlap of propensity scores")


_DIFFERENCES = ("difference_before", "difference_after")


def balance_rows(facts: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the rows by falling difference before; one that does not exist comes first."""
    rows: list[dict[str, Any]] = facts.get("diagnostics", {}).get("balance", [])

    def size(row: dict[str, Any]) -> float:
        value = row["difference_before"]
        return float("inf") if value is None else abs(value)

    return sorted(rows, key=size, reverse=True)


def _sizes(facts: dict[str, Any]) -> list[str]:
    return [
        f"Effective size, {arm['arm']}: {arm['effective']:.0f} of {arm['rows']} rows"
        for arm in facts.get("diagnostics", {}).get("effective_size", [])
    ]


def _verdict(rows: list[dict[str, Any]]) -> str:
    before, after = (
        sum(row[key] is None or abs(row[key]) > THRESHOLD for row in rows) for key in _DIFFERENCES
    )
    return f"Columns that differ by more than {THRESHOLD}: {before} before, {after} after, of {len(rows)}"


def _cells(row: dict[str, Any]) -> tuple[str, ...]:
    differences = [_number(row[key], "+z.3f") for key in _DIFFERENCES]
    ratios = [_number(row[key], ".2f") for key in ("variance_ratio_before", "variance_ratio_after")]
    return (row["covariate"], *differences, *ratios)


def _number(value: float | None, form: str) -> str:
    return "none" if value is None else format(value, form)


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
                f"{one['difference']:+z.2f}",
                f"[{low:+z.2f}, {high:+z.2f}]",
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


_EXACT = (
    "Covariates and treatment are public here, so that these figures are exact and cost nothing: means (standard "
    "deviations) of numbers, percentages of labels."
)
_RELEASED_SUMMARY = (
    "Who was treated is private here. What follows is a release of its own, with noise; its price is added "
    "to that of the effect."
)
_FOR_SALE = (
    "Who was treated is private here, and a table of covariates by arm would be a release of its own. It costs the "
    "epsilon that you choose for it, on top of what this result spent; the smaller, the wider the intervals of its "
    "figures. Ask as below; result.to_html(path, overlap=summary) then shows it in this place."
)
_ASK = """summary = cv.overlap(data, study, protects="record", epsilon=0.5)
result.to_html("report.html", overlap=summary)

counterveil overlap DATA --study study.toml --protects record --epsilon 0.5"""


def table_one_cells(facts: Facts) -> Cells | None:
    """Return the table of the arms' covariates, None where the result has none."""
    found = facts.get("table_one")
    if not found:
        return None
    arms = [f"{arm['name']} (n = {arm['rows']:,})" for arm in found["arms"]]
    rows = [_row(row) for row in found["covariates"]]
    return Cells(["covariate", *arms, "std. difference"], rows, "Covariates by arm, before adjustment")


def _row(row: Facts) -> list[str]:
    if row["sds"] is None:
        cells = [percent(mean, ".1f") for mean in row["means"]]
    else:
        cells = [f"{mean:,.4g} ({sd:,.3g})" for mean, sd in zip(row["means"], row["sds"], strict=True)]
    known = row["difference"]
    return [row["covariate"], *cells, "none" if known is None else f"{known:+z.2f}"]


def table_one_words(facts: Facts) -> str:
    """Return what the table is, or what it would cost; empty where there is nothing to say."""
    found = facts.get("table_one")
    if found is None:
        return ""
    if found:
        return _EXACT
    return _RELEASED_SUMMARY if facts.get("overlap_summary") else _FOR_SALE


def table_one_blocks(facts: Facts) -> list[Block]:
    """Return what is said of the arms' covariates, and their table; nothing where there is nothing to say."""
    said, cells, bought = table_one_words(facts), table_one_cells(facts), facts.get("overlap_summary")
    if not said:
        return []
    if cells is not None:
        return [said, cells]
    return [said, *(summary_blocks(bought) if bought else [Code(_ASK, "How to ask")])]
