"""Balance and overlap of the arms as text and as pictures of a page; shown only where covariates are public."""

from __future__ import annotations

from typing import Any

from counterveil.report.document import Block, Cells, Picture, Section, View
from counterveil.report.pictures import (
    Chart,
    axis,
    dot,
    figure,
    labels,
    line,
    named_row,
    scale_row,
    ticks,
    word,
)

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
        f"Absolute standardised difference. Hollow: before. Filled: after. Dashed: {THRESHOLD}, beyond which a look "
        "is worth while."
    )
    return figure(f"{scale_row(marks)}{lines}{scale_row(marks)}", caption, "love plot")


# Overlap: how many people of either arm have which propensity score.


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
    differences = [_number(row[key], "+.3f") for key in _DIFFERENCES]
    ratios = [_number(row[key], ".2f") for key in ("variance_ratio_before", "variance_ratio_after")]
    return (row["covariate"], *differences, *ratios)


def _number(value: float | None, form: str) -> str:
    return "none" if value is None else format(value, form)
