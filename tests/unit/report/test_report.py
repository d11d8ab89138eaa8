"""Renderings of a result."""

import numpy as np
import pytest

import counterveil as cv
from counterveil.report.text import escape


@pytest.fixture(scope="module")
def result():
    rng = np.random.default_rng(0)
    t = np.tile([0, 1], 200)
    data = {"t_1 & <b>": t, "y%": rng.random(400) + 0.2 * t}
    study = cv.Study(treatment="t_1 & <b>", outcome="y%", outcome_range=(0, 2), randomised=True)
    return cv.ate(data, study, protects="outcome", epsilon=1)


def test_latex_is_escaped_and_balanced(result):
    table = result.to_latex()
    assert r"t\_1 \& $<$b$>$" in table
    assert r"y\%" in table
    assert table.count("{") - table.count(r"\{") == table.count("}") - table.count(r"\}")
    assert escape("a_b{c}") == r"a\_b\{c\}"
