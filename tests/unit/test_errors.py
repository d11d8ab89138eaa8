"""Rows of a table of refusals become errors of the class that their code names, with the facts filled in."""

import pytest

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
