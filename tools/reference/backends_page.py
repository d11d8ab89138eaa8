"""The page of methods by source, from the tables of methods in the code."""

from __future__ import annotations

from collections.abc import Iterator

from tools.reference.markdown import table

from counterveil.data.sources.frames import ENGINES
from counterveil.estimators.registry import Reading, forms
from counterveil.privacy import Unit

# What a method does with rows.
BY_PASSES, BY_ENGINE, BY_ROWS = HOW = tuple(reading.value for reading in Reading)
# Questions whose methods are not named in the table.
_SINGLE = ("policy_value", "targeting_curve", "overlap", "moments")
# Questions that are answered from the effects of public groups at these levels.
_BY_GROUPS = {
    "policy_value": (Unit.OUTCOME, Unit.TREATMENT_AND_OUTCOME),
    "targeting_curve": (Unit.OUTCOME, Unit.TREATMENT_AND_OUTCOME),
}
_TEXT = """# Methods by source

Written by `python -m tools.reference`. How to use each source: [use a database](../how-to/use-a-database.md).

- **streaming**: rows are added up block by block into whole numbers, on all cores or in Spark's executors. Tables of
  every Ibis backend stream.
- **pushed down**: the engine that holds the rows groups and adds them up; only counts and sums leave it. This needs
  exact arithmetic, tested for {engines} and files. Tables of other backends stream.
- **in memory**: all rows of the study's columns are read into this process, in a public order. Rows in Spark and in
  databases other than DuckDB and PostgreSQL have none and are refused (CV-D050).

Answers are bit-identical at every source. Methods in memory may depend on the order of rows, as their source hands them
over. `auto` names one of the others.

The rows of a person (`people=`), or of a protected cluster, become one first. Methods that are pushed down then stream,
as they do with `where=`, `cv.Change` and `cv.Ratio`. Clusters that are not protected are read into memory, and refused
where rows have no public order (CV-S017).

{lines}
"""


def lines() -> Iterator[tuple[str, str, Unit, str]]:
    """Yield question, method, unit, and what the method does with rows."""
    for question, method, unit, form in forms():
        yield question, "" if question in _SINGLE else method, unit, form.reading.value
    for question, units in _BY_GROUPS.items():
        for unit in units:
            yield question, "", unit, BY_ROWS


def backends_page() -> str:
    """Return the text of the page."""
    found: dict[tuple[str, str], dict[str, list[str]]] = {}
    for question, method, unit, how in lines():
        names = found.setdefault((question, unit.value), {how: [] for how in HOW})[how]
        if (method or "yes") not in names:
            names.append(method or "yes")
    rows = [(*key, *(", ".join(names) for names in by.values())) for key, by in found.items()]
    return _TEXT.format(
        engines=", ".join(ENGINES), lines="\n".join(table(("question", "protects", *HOW), rows))
    )
