"""The page of methods by source, from the tables of methods in the code."""

from __future__ import annotations

from collections.abc import Iterator

from tools.reference.markdown import table

from counterveil.privacy import Unit
from counterveil.questions.ate import METHODS, Method
from counterveil.questions.cate.cate import FORMS

# What a method does with rows.
BY_PASSES, BY_ENGINE, BY_ROWS = HOW = ("streaming", "pushed down", "in memory")
# Questions whose rows are added up in the same way whatever the method is.
_OTHERS = {
    ("groups", "difference_in_means", Unit.OUTCOME): BY_PASSES,
    ("groups", "weighting", Unit.OUTCOME): BY_ROWS,
    ("groups", "matching", Unit.OUTCOME): BY_ROWS,
    ("groups", "all methods", Unit.RECORD): BY_PASSES,
    ("policy_value, targeting_curve", "all methods", Unit.RECORD): BY_PASSES,
    ("overlap", "", Unit.RECORD): BY_PASSES,
    ("moments", "", Unit.OUTCOME): BY_PASSES,
    ("moments", "", Unit.RECORD): BY_PASSES,
    ("arms", "difference_in_means", Unit.OUTCOME): BY_PASSES,
    ("arms", "weighting", Unit.OUTCOME): BY_ROWS,
    ("arms", "matching", Unit.OUTCOME): BY_ROWS,
    ("event_study", "difference_in_means", Unit.OUTCOME): BY_PASSES,
    ("event_study", "weighting", Unit.OUTCOME): BY_ROWS,
    ("event_study", "matching", Unit.OUTCOME): BY_ROWS,
    ("event_study", "difference_in_means", Unit.RECORD): BY_PASSES,
    ("outcomes", "difference_in_means", Unit.OUTCOME): BY_PASSES,
    ("outcomes", "weighting", Unit.OUTCOME): BY_ROWS,
    ("outcomes", "matching", Unit.OUTCOME): BY_ROWS,
    ("outcomes", "trial", Unit.RECORD): BY_PASSES,
    ("survival", "kaplan_meier, stratified", Unit.OUTCOME): BY_PASSES,
    ("survival", "weighting", Unit.OUTCOME): BY_ROWS,
    ("survival", "all methods", Unit.RECORD): BY_PASSES,
}
_TEXT = """# Methods by source

Written by `python -m tools.reference`. How to use each source: [use a database](../how-to/use-a-database.md).

- **streaming**: rows are added up block by block into whole numbers, on all cores or in Spark's executors.
- **pushed down**: the engine that holds the rows groups and adds them up; only counts and sums leave it.
- **in memory**: all rows of the study's columns are read into this process. Rows in Spark are refused (CV-D050).

Answers are bit-identical at every source. Methods in memory may depend on the order of rows, as their source hands them
over. `auto` names one of the others.

The rows of a person (`person=`), or of a protected cluster, become one first. Methods that are pushed down then stream,
as they do with `before=`, `where=` and `per=`. Clusters (`cluster=` alone) are read into memory, and refused in Spark
(CV-S017).

{lines}
"""


def lines() -> Iterator[tuple[str, str, Unit, str]]:
    """Yield question, method, unit, and what the method does with rows."""
    for name, method in METHODS.items():
        for unit in method.forms:
            if name == "auto":
                continue
            yield "ate", name, unit, _how(method, unit)
    for name, forms in FORMS.items():
        for unit in forms.by_unit:
            yield "cate", name, unit, BY_PASSES if unit in forms.in_batches else BY_ROWS
    for (question, method, unit), how in _OTHERS.items():
        yield question, method, unit, how


def _how(method: Method, unit: Unit) -> str:
    if unit in method.in_batches:
        return BY_PASSES
    return BY_ENGINE if method.on_aggregates else BY_ROWS


def backends_page() -> str:
    """Return the text of the page."""
    found: dict[tuple[str, str], dict[str, list[str]]] = {}
    for question, method, unit, how in lines():
        found.setdefault((question, unit.value), {how: [] for how in HOW})[how].append(method or "yes")
    rows = [(*key, *(", ".join(names) for names in by.values())) for key, by in found.items()]
    return _TEXT.format(lines="\n".join(table(("question", "protects", *HOW), rows)))
