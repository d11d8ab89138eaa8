"""Only `rows` sees private rows: estimators and questions reach them by declarations alone."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

PACKAGE = Path(__file__).resolve().parents[3] / "src/counterveil"
APART = ("estimators", "questions")
# Modules of `data` that read, hold or pass over rows; `counterveil.data` hands on the names of the second list.
ROW_MODULES = ("batches", "engines", "passes", "people", "sources", "spark", "spool", "strata", "table")
ROW_NAMES = {
    "Backend",
    "SpooledRows",
    "Sums",
    "Table",
    "rows_of_source",
    "strata_codes",
    "strata_of_rows",
    "strata_of_source",
    "strata_of_table",
    "table_of_source",
}
# What opens the handle of rows that estimators get.
KEYS = {"private_session", "private_table"}
# Attributes of sessions, gates and tables that hold rows or exact sums.
ROW_ATTRIBUTES = {"batches", "in_memory", "outcome_steps"}
ALLOWED = {
    # A planner's public sample, which nobody protects.
    "questions/plan/people.py": {"Table", "outcome"},
    # The type of what a function of the analyst's own is given.
    "questions/release.py": {"Table"},
    "questions/session.py": {"Table"},
}


def touches(source: str) -> Iterator[str]:
    """Yield what a module names that holds private rows or lets sums of them through."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ImportFrom) and node.module is not None:
            home = node.module.removeprefix("counterveil.data").lstrip(".").partition(".")[0]
            for name in node.names:
                of_rows = node.module.startswith("counterveil.data.") and home in ROW_MODULES
                if (
                    of_rows
                    or name.name in KEYS
                    or (node.module == "counterveil.data" and name.name in ROW_NAMES)
                ):
                    yield name.name
        if isinstance(node, ast.Attribute):
            holder = node.value.id if isinstance(node.value, ast.Name) else ""
            if node.attr in ROW_ATTRIBUTES or (holder, node.attr) in {("gate", "rows"), ("session", "table")}:
                yield node.attr
            if holder in ("table", "block", "rows", "columns") and node.attr in ("outcome", "measures"):
                yield node.attr
            if holder == "gate" and (node.attr.startswith("release") or node.attr == "respond"):
                yield node.attr


def modules() -> list[str]:
    return sorted(
        path.relative_to(PACKAGE).as_posix() for folder in APART for path in (PACKAGE / folder).rglob("*.py")
    )


@pytest.mark.parametrize("module", modules())
def test_estimators_and_questions_see_no_private_row(module):
    found = set(touches((PACKAGE / module).read_text(encoding="utf-8")))
    assert found - ALLOWED.get(module, set()) == set()


def test_what_is_allowed_is_needed():
    for module, names in ALLOWED.items():
        assert set(touches((PACKAGE / module).read_text(encoding="utf-8"))) >= names


def test_the_keys_to_private_rows_are_used_in_rows_alone():
    users = {
        path.relative_to(PACKAGE).parts[0]
        for path in PACKAGE.rglob("*.py")
        if KEYS & set(touches(path.read_text(encoding="utf-8")))
    }
    assert users == {"rows"}


@pytest.mark.parametrize(
    "line",
    [
        "from counterveil.data import Table",
        "from counterveil.data.passes import in_order",
        "from counterveil.rows.public import private_table",
        "sums = session.batches.run(count)",
        "y = session.table.outcome",
        "effect = gate.release('effect', value, bound)",
        "total = table.outcome.sum()",
        "rows = gate.rows",
    ],
)
def test_each_way_to_a_private_row_is_seen(line):
    assert list(touches(line))
