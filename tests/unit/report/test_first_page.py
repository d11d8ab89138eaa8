"""The first page of a report: words that claim no more than the interval, whose names cannot break out of it."""

import numpy as np
import pytest
from tests.unit.report.pages import read

import counterveil as cv
from counterveil.privacy.caveats import Target, written
from counterveil.report import markdown, page, report_view
from counterveil.report.page import escaped
from counterveil.report.pictures import forest_plot
from counterveil.report.words import answer_words, protection_words

HOSTILE = (
    """</title></style><script>alert(1)</script>" onload="x' `|*[a](javascript:b) {{7*7}} <!-- ${x} &lt;"""
)


def people(rows=200, names=("t", "y", "age", "site"), labels=("a", "b")):
    rng = np.random.default_rng(5)
    treatment, outcome, age, site = names
    t = np.arange(rows) % 2
    return {
        treatment: t,
        outcome: np.clip(0.3 + 0.3 * t + rng.normal(0, 0.1, rows), 0, 1),
        age: rng.uniform(20, 80, rows) + 5 * t,
        site: rng.choice(labels, rows),
    }


def study(names=("t", "y", "age", "site"), labels=("a", "b"), **declared):
    covariates = {names[2]: cv.Range(20, 85), names[3]: cv.Categories(labels)}
    return cv.Study(names[0], names[1], (0, 1), covariates, **declared)


@pytest.fixture(scope="module")
def weighted():
    return cv.ate(people(), study(), protects="outcome", epsilon=2, method="weighting", request_id="main")


@pytest.fixture
def facts(weighted):
    return weighted.page_facts()


def test_without_an_interval_for_the_effect_none_is_told(facts):
    facts["interval_target"] = written(Target.CONFOUNDED_DIFFERENCE)
    said = " ".join(answer_words(facts))
    assert "No interval for the effect" in said
    assert "Zero lies" not in said


@pytest.mark.parametrize(
    ("proof", "said"),
    [("none", "Nothing is protected"), ("asymptotic", "not proved"), ("refuted", "has been refuted")],
)
def test_what_is_not_proved_is_not_promised(facts, proof, said):
    facts["guarantee"] = facts["guarantee"] | {"proof": proof}
    (words,) = protection_words(facts)
    assert said in words
    assert "cannot change the odds" not in words


def test_names_cannot_break_out_of_a_page():
    names = tuple(f"{HOSTILE} {place}" for place in range(4))
    marks = (f"{HOSTILE} a", f"{HOSTILE} b")
    result = cv.ate(
        people(100, names, marks), study(names, marks), protects="outcome", epsilon=1, method="weighting"
    )
    facts = result.page_facts()
    text = page(report_view(facts))
    assert "<script" not in text
    shown = read(text).text
    for name in (*names, *marks):
        assert " ".join(name.split()) in shown
    text = markdown(report_view(facts))
    outside = "".join(text.split("```")[::2])
    assert "<script" not in outside.replace(r"\<script", "")
    assert "](javascript" not in outside.replace(r"\]", "")


def test_a_fence_is_longer_than_the_backticks_in_it(facts):
    facts["repeat"] = facts["repeat"] | {"study": "x = '````'"}
    assert "`````toml\nx = '````'\n`````" in markdown(report_view(facts))
    assert escaped("a|b_c\n<d>") == r"a\|b\_c \<d\>"


def test_private_arms_have_no_table_but_its_price_or_what_was_bought(tmp_path):
    data, declared = people(400), study(randomised=True)
    result = cv.ate(data, declared, protects="record", epsilon=2, method="trial")
    assert result.by_arm == {}
    page = result.to_html(tmp_path / "page.html").read_text()
    assert "cv.overlap(data, study, epsilon=0.5)" in page
    summary = cv.overlap(data, declared, epsilon=2)
    page = result.to_html(tmp_path / "page.html", overlap=summary).read_text()
    assert "cv.overlap(data" not in page
    assert "is a release of its own, with noise" in page
    assert "share treated along the score" in read(page).text or "Share treated" in page


def test_intervals_without_ends_have_no_picture(facts):
    (effect,) = facts["effects"]
    effect["interval"] = effect["interval"] | {"high": float("inf")}
    assert forest_plot([effect]) == ""
    assert "There is no picture" in page(report_view(facts))
