"""Renderings of a result."""

import numpy as np
import pytest
from tests.unit.report.pages import read

import counterveil as cv
from counterveil.report.numbers import percent, probability, rounded
from counterveil.report.text import escape


@pytest.fixture(scope="module")
def result():
    rng = np.random.default_rng(0)
    t = np.tile([0, 1], 200)
    data = {"t_1 & <b>": t, "y%": rng.random(400) + 0.2 * t}
    study = cv.Study(treatment="t_1 & <b>", outcome="y%", outcome_range=(0, 2), randomised=True)
    return cv.ate(data, study, protects="outcome", epsilon=1)


@pytest.mark.parametrize(
    ("value", "error", "text"),
    [(1.23456, 0.02, "1.235"), (1234.567, 120.0, "1,235"), (0.5, 0.0, "0.5"), (float("inf"), 1.0, "inf")],
)
def test_digits_follow_the_error(value, error, text):
    assert rounded(value, error) == text


def test_small_texts():
    assert probability(0.0001) == "<0.001"
    assert probability(0.0214) == "0.021"
    assert percent(0.95) == "95 %"


def test_full_text_holds_every_part(result):
    text = result.full()
    for part in (
        "estimate",
        "sampling",
        "noise",
        "95 % interval",
        "Guarantee:",
        "Public:",
        "Spent:",
        "Not covered:",
    ):
        assert part in text
    assert max(map(len, text.splitlines())) < 80


def test_latex_is_escaped_and_balanced(result):
    table = result.to_latex()
    assert r"t\_1 \& $<$b$>$" in table
    assert r"y\%" in table
    assert table.count("{") - table.count(r"\{") == table.count("}") - table.count(r"\}")
    assert escape("a_b{c}") == r"a\_b\{c\}"


def test_page_is_well_formed_self_contained_and_escaped(result, tmp_path):
    page = result.to_html(tmp_path / "report.html").read_text(encoding="utf-8")
    assert "t_1 & <b>" in read(page).text
    assert "<b>" not in page
    assert "://" not in page
    assert "<svg" in page
