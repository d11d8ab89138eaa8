"""Formulas of regressions: what is read, and what is refused."""

import pytest

from counterveil.errors import ParameterError
from counterveil.results.regression import Formula, parse_formula

COLUMNS = ("age", "site=a", "site=b", "t", "dose", "blood pressure", "y", "t:age", "site=a:t", "site=b:t")
GROUPS = {"site": ("site=a", "site=b")}


def read(text):
    return parse_formula(text, COLUMNS, GROUPS)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("y ~ t", Formula("y", ("t",))),
        ("y~t+age", Formula("y", ("t", "age"))),
        ("y ~ 1 + t", Formula("y", ("t",))),
        ("y ~ 0 + t", Formula("y", ("t",), False)),
        ("y ~ t - 1", Formula("y", ("t",), False)),
        ("y ~ 1", Formula("y", ())),
        ("y ~ t*age", Formula("y", ("t", "age", "t:age"))),
        ("y ~ age:t + t", Formula("y", ("t:age", "t"))),
        ("y ~ site", Formula("y", ("site=a", "site=b"))),
        ("y ~ t:site", Formula("y", ("site=a:t", "site=b:t"))),
        ("`blood pressure` ~ `t`", Formula("blood pressure", ("t",))),
        ("y ~ age + [dose ~ t]", Formula("y", ("age",), True, ("dose",), ("t",))),
        ("y ~ [dose ~ t + site] + age", Formula("y", ("age",), True, ("dose",), ("t", "site=a", "site=b"))),
        ("y ~ t + C(site)", Formula("y", ("t", "site=a", "site=b"))),
        ("y ~ t*age | site", Formula("y", ("t", "age", "t:age"), absorbed=("site=a", "site=b"))),
        ("y ~ 0 + [dose ~ t]", Formula("y", (), False, ("dose",), ("t",))),
    ],
)
def test_reads(text, expected):
    assert read(text) == expected


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("y", "CV-P783"),
        ("~ t", "CV-P783"),
        ("y ~", "CV-P783"),
        ("y ~ 0", "CV-P783"),
        ("y ~ t +", "CV-P783"),
        ("y ~ t age", "CV-P783"),
        ("site ~ t", "CV-P783"),
        ("y ~ y", "CV-P783"),
        ("y ~ [dose t]", "CV-P783"),
        ("y ~ [dose + age ~ t]", "CV-P783"),
        ("y ~ [dose ~ t", "CV-P783"),
        ("y ~ t:age:dose", "CV-P783"),
        ("y ~ t |", "CV-P783"),
        ("y ~ 0 + t | site", "CV-P783"),
        ("y ~ C(age)", "CV-P791"),
        (3, "CV-P783"),
        ("y ~ income", "CV-P784"),
        ("y ~ dose:age", "CV-P782"),
    ],
)
def test_refuses(text, code):
    with pytest.raises(ParameterError, match=code):
        read(text)
