"""The page of methods by source, from the tables of methods in the code."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from tools.reference.markdown import table

from counterveil.data.sources.frames import ENGINES
from counterveil.estimators.method import Method
from counterveil.privacy import Unit
from counterveil.questions import arms, event_study, groups, outcomes, quantiles, survival
from counterveil.questions.ate import METHODS
from counterveil.questions.cate import FORMS

# What a method does with rows.
BY_PASSES, BY_ENGINE, BY_ROWS = HOW = ("streaming", "pushed down", "in memory")
# Questions with methods by what they protect; private pairs and these methods need all rows.
_BY_UNIT: dict[str, Mapping[Unit, Iterable[str]]] = {
    "groups": groups.METHODS,
    "arms": arms.METHODS,
    "event_study": event_study.METHODS,
    "outcomes": outcomes.METHODS,
    "survival": survival.METHODS,
    "quantiles": quantiles.METHODS,
}
_ALL_ROWS = ("weighting", "matching")
# Questions with one method.
_SINGLE = {
    "policy_value": tuple(Unit),
    "targeting_curve": (Unit.OUTCOME, Unit.RECORD),
    "overlap": (Unit.RECORD,),
    "moments": (Unit.OUTCOME, Unit.RECORD),
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
    for name, method in METHODS.items():
        for unit in method.forms:
            if name == "auto":
                continue
            yield "ate", name, unit, _how(method, unit)
    for name, forms in FORMS.items():
        for unit in forms.by_unit:
            yield "cate", name, unit, BY_PASSES if unit in forms.in_batches else BY_ROWS
    for question, units in _BY_UNIT.items():
        for unit, names in units.items():
            for name in names:
                whole = name in _ALL_ROWS or (unit is Unit.TREATMENT_AND_OUTCOME and name != "trial")
                yield question, name, unit, BY_ROWS if whole else BY_PASSES
    for question, protected in _SINGLE.items():
        for unit in protected:
            ranked = question in ("policy_value", "targeting_curve")
            yield question, "", unit, BY_ROWS if ranked and unit is not Unit.RECORD else BY_PASSES


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
    return _TEXT.format(
        engines=", ".join(ENGINES), lines="\n".join(table(("question", "protects", *HOW), rows))
    )
