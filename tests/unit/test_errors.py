"""Rows of a table of refusals become errors of the class that their code names, with the facts filled in."""

from pathlib import Path

import pytest

from counterveil import errors
from counterveil.errors import CounterveilError, DataError, LedgerError, explanation, refusal, refusals

ROW = {
    "problem": "column {name!r} has {{gaps}}",
    "expected": "no {value!s}",
    "got": "{name}",
    "fix": "fill {name!r}",
}


@pytest.fixture(autouse=True)
def one_more_row(monkeypatch):
    monkeypatch.setitem(refusals(), "CV-D000", ROW)


def test_facts_stand_where_the_texts_name_them():
    found = refusal("CV-D000", name="a b", value="plain")
    assert type(found) is DataError
    assert (found.code, found.problem, found.fix) == ("CV-D000", "column 'a b' has {gaps}", "fill 'a b'")
    assert (found.expected, found.got) == ("no 'plain'", "a b")


def test_a_missing_fact_is_a_fault():
    with pytest.raises(KeyError, match="value"):
        refusal("CV-D000", name="x")


def test_the_letter_of_a_code_names_the_class_and_a_further_letter_another_text(monkeypatch):
    monkeypatch.setitem(refusals(), "CV-L000b", ROW)
    found = refusal("CV-L000b", name="x", value=1)
    assert (type(found), found.code) == (LedgerError, "CV-L000")


def test_every_code_is_explained_with_the_names_of_its_facts():
    codes = {row[:7] for row in refusals()} - {"CV-D000"}
    assert all(explanation(code).startswith(f"# {code}: ") for code in codes)
    assert explanation("CV-P999") is None
    assert isinstance(errors.unforeseen(ValueError("a secret")), CounterveilError)
    assert "secret" not in str(errors.unforeseen(ValueError("a secret")))


def test_hints_name_nothing_that_no_registry_has():
    # The package is installed from a checkout: every hint is made by `installing`.
    root = Path(errors.__file__).parent
    pages = [*root.rglob("*.py"), *root.rglob("*.md"), *root.rglob("*.toml"), *root.rglob("*.html")]
    named = [page.name for page in pages if "counterveil[" in page.read_text(encoding="utf-8")]
    assert named == []
    typed = [page.name for page in root.rglob("*.py") if "pip install" in page.read_text(encoding="utf-8")]
    assert typed == ["errors.py"]
    assert errors.installing("plots") == "in a checkout of Counterveil: pip install '.[plots]'"
