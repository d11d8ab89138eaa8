"""The page of methods by source, from the tables of methods in the code."""

from __future__ import annotations

from collections.abc import Iterator

from counterveil.privacy import Unit
from counterveil.questions.ate import METHODS, Method
from counterveil.questions.cate.cate import FORMS

PLACES = ("memory", "Parquet, CSV", "DuckDB", "PostgreSQL", "Spark")
PASSES, ENGINE, READ, REFUSED = "passes", "in the engine", "read into memory", "refused (CV-D050)"
HERE = "in memory"
# What a method does with rows at each of the places.
BY_PASSES = (PASSES,) * len(PLACES)
BY_ENGINE = (HERE, *(ENGINE,) * (len(PLACES) - 1))
BY_ROWS = (HERE, *(READ,) * (len(PLACES) - 2), REFUSED)
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

Written by `python -m tools.reference` from the tables of methods in the code. How to use each source is in
[rows in a database, a file or Spark](../how-to/use-a-database.md).

- **passes**: rows are added up block by block into whole numbers, on all cores or in Spark's executors; those of a
  large source are never all in memory.
- **in the engine**: the engine that holds the rows groups and adds them up; only counts and sums leave it.
- **read into memory**: all rows of the study's columns are read into this process first.
- **refused (CV-D050)**: the method needs rows in one place, and those in Spark are not collected. The refusal names
  the method and what to use instead; nothing is spent.

Answers are the same to the bit at every place that a method runs at. Methods that are not answered in passes or in the
engine may depend on the order of the rows: some split rows by their place or break ties by it. Rows have the places in
which their source hands them over.
`auto` names one of the others, which then does as its own line says.

The rows of a person (`person=`), or of a cluster that is protected as a whole, become one first: in Spark's executors,
or in this process from rows that the engine has sorted by person, a block at a time. A method then does as its line
says; those `in the engine` run in passes over the rows made, as they do with `before=` and `where=`. Ratios (`per=`)
run in passes. Clusters of several rows (`cluster=` without `protects_cluster=True`) are read into memory from every
source, and refused in Spark (CV-S017).

| question | method | protects | {places} |
|{rule}|
{lines}
"""


def lines() -> Iterator[tuple[str, str, Unit, tuple[str, ...]]]:
    """Yield question, method, unit, and what the method does with rows at each place."""
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


def _how(method: Method, unit: Unit) -> tuple[str, ...]:
    """Return what a method of `ate` does with rows at each place."""
    if unit in method.in_batches:
        return BY_PASSES
    return BY_ENGINE if method.on_aggregates else BY_ROWS


def carriers_page() -> str:
    """Return the text of the page."""
    rows = [
        f"| {question} | {method} | {unit.value} | {' | '.join(how)} |"
        for question, method, unit, how in lines()
    ]
    rule = "|".join(["---"] * (3 + len(PLACES)))
    return _TEXT.format(places=" | ".join(PLACES), rule=rule, lines="\n".join(rows))
