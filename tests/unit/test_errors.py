"""Rows of a table of refusals become errors of the class that their code names, with the facts filled in."""

import re
from pathlib import Path

import pytest

from counterveil import errors
from counterveil.errors import DataError, LedgerError, Refusal

ROW = Refusal(
    "CV-D003", "column {name!r} has {{gaps}}", expected="no {value!s}", got="{name}", fix="fill {name!r}"
)


def test_facts_stand_where_the_texts_name_them():
    found = ROW("a b", "plain")
    assert type(found) is DataError
    assert (found.code, found.problem, found.fix) == ("CV-D003", "column 'a b' has {gaps}", "fill 'a b'")
    assert (found.expected, found.got) == ("no 'plain'", "a b")


def test_values_that_somebody_passed_are_shortened():
    assert ROW("x", list(range(1000))).expected == "no a list of 1000"
    assert "{0.__class__}" in ROW("{0.__class__}", 1).got


@pytest.mark.parametrize("facts", [(), ("x",), ("x", "y", "z")])
def test_another_number_of_facts_is_a_fault(facts):
    with pytest.raises(ValueError, match="zip"):
        ROW(*facts)


def test_the_letter_of_a_code_names_the_class():
    texts = {"expected": "a", "got": "b", "fix": "c"}
    assert type(Refusal("CV-L001", "d", **texts)()) is LedgerError


def test_hints_name_nothing_that_no_registry_has():
    # The package is installed from a checkout: every hint is made by `installing`.
    root = Path(errors.__file__).parent
    pages = [*root.rglob("*.py"), *root.rglob("*.md"), *root.rglob("*.html")]
    named = [page.name for page in pages if "counterveil[" in page.read_text(encoding="utf-8")]
    assert named == []
    typed = [page.name for page in root.rglob("*.py") if "pip install" in page.read_text(encoding="utf-8")]
    assert typed == ["errors.py"]
    assert errors.installing("plots") == "in a checkout of Counterveil: pip install '.[plots]'"
    assert errors.installing("", folder="./lab") == "in a checkout of Counterveil: pip install ./lab"


def test_captions_suit_a_light_and_a_dark_page():
    root = Path(errors.__file__).parent / "report"
    said = [
        page.name
        for page in root.glob("*.py")
        if re.search(r"[Dd]ark(:| line| band)|Pale(:| band)", page.read_text())
    ]
    assert said == []
