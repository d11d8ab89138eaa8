"""How a release of one's own is shown: its numbers with intervals for the noise, and the guarantee.

In: facts of the answer: numbers in units of the caller's function, the bound that the caller declared, which
the guarantee rests on (`rows/statistic.proof.md`), and the noise. Out: a view and a picture.
"""

from __future__ import annotations

from counterveil.report.text import Cells, Facts, Item, View, percent
from counterveil.report.view import first_lines, guarantee_line, provenance_items

_ROWS = 12  # numbers of a summary
_LARGEST = 400  # numbers of a page
_FOREST = 40  # numbers of a picture
_INTERVAL = "covers the privacy noise; the rows are taken as they are, without sampling error"


def release_view(facts: Facts, full: bool = False) -> View:
    """Return the table of released numbers, and what they mean."""
    most = _LARGEST if full else _ROWS
    left = len(facts["values"]) - most
    headings = ["number", "released", "noise (sd)", f"{percent(facts['level'])} interval"]
    rows = [
        [str(number), f"{value:.6g}", f"{facts['sd']:.3g}", f"[{low:.6g}, {high:.6g}]"]
        for number, (value, (low, high)) in enumerate(
            zip(facts["values"], facts["intervals"], strict=True), start=1
        )
    ]
    items: list[Item] = [
        ("Bound", f"one person moves it by {facts['bound']:.6g} at most, as declared"),
        ("Interval", _INTERVAL),
        ("Guarantee", guarantee_line(facts)),
    ]
    if full:
        items += provenance_items(facts)
    more = [f"... and {left} more in release.values"] if left > 0 else []
    table = Cells(headings, rows[:most], "Released numbers")
    title = f"Release {facts['name']}"
    return View(first_lines(facts), title, f"{facts['rows']:,} rows", [table], items, more, [], _INTERVAL)


def drawn_facts(facts: Facts) -> Facts:
    """Return the numbers as effects of a forest."""
    effects = [
        {
            "name": f"{facts['name']} {number}",
            "estimate": value,
            "std_error": {"total": facts["sd"]},
            "interval": {"low": low, "high": high},
        }
        for number, (value, (low, high)) in enumerate(
            zip(facts["values"][:_FOREST], facts["intervals"], strict=False), start=1
        )
    ]
    return {"level": facts["level"], "effects": effects, "axis": f"{facts['name']}, as released"}
