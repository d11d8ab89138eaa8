"""The first page of a report: words that claim no more than the interval, whose names cannot break out of it."""

import numpy as np
import pytest
from tests.unit.report.pages import read

import counterveil as cv
from counterveil.privacy.caveats import Caveat, ParallelTrends, Target, written
from counterveil.report import markdown, page, report_view
from counterveil.report.markdown import escaped
from counterveil.report.pictures import forest_plot, labels, ticks
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


def test_zero_inside_and_outside_are_said(facts):
    effect = facts["effects"][0]
    effect["interval"] = effect["interval"] | {"low": 0.1, "high": 0.3}
    assert "Zero lies outside" in " ".join(answer_words(facts))
    effect["interval"] = effect["interval"] | {"low": -0.1, "high": 0.3}
    assert "Zero lies inside" in " ".join(answer_words(facts))
    effect["estimate"] = -0.2
    assert "lower than without" in answer_words(facts)[0]


def test_without_an_interval_for_the_effect_none_is_told(facts):
    facts["interval_of"] = written(Target.CONFOUNDED_DIFFERENCE)
    said = " ".join(answer_words(facts))
    assert "No interval for the effect" in said
    assert "Zero lies" not in said


def test_what_has_to_be_supposed_is_said(facts):
    assert "only if nothing but the declared covariates" in answer_words(facts)[-1]
    for caveat, said in (
        (ParallelTrends("y", adjusted=False, of_untreated=False), "This supposes parallel trends: without"),
        (Caveat.NOTHING_ADJUSTED, "Nothing was adjusted for"),
        (Caveat.UNDECLARED_COVARIATES, "Covariates that were not declared"),
    ):
        facts["not_covered"] = [written(caveat)]
        assert said in answer_words(facts)[-1]
    facts["not_covered"] = [written(Caveat.CLAMPING)]
    assert "outside" in answer_words(facts)[-1] or "inside" in answer_words(facts)[-1]


@pytest.mark.parametrize(
    ("epsilon", "delta", "said"),
    [
        ("1", "0", "more than 2.72."),
        ("1/10", "0", "more than 1.11."),
        ("8", "1/1000", "more than 2,981, up to an additional probability of 0.001."),
        ("40", "0", "e to the power of 40"),
    ],
)
def test_epsilon_is_a_factor_on_the_odds(facts, epsilon, delta, said):
    facts["guarantee"] = facts["guarantee"] | {"epsilon": epsilon, "delta": delta}
    assert said in protection_words(facts)[0]


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


def test_the_covariates_of_public_arms_are_exact(weighted):
    data, found = people(), weighted.by_arm
    treated = data["t"] == 1
    assert [arm["rows"] for arm in found["arms"]] == [100, 100]
    age, a, _ = found["covariates"]
    one, other = data["age"][treated], data["age"][~treated]
    assert age["means"] == pytest.approx([one.mean(), other.mean()])
    assert age["sds"] == pytest.approx([one.std(ddof=1), other.std(ddof=1)])
    scale = np.sqrt((one.var(ddof=1) + other.var(ddof=1)) / 2)
    assert age["difference"] == pytest.approx((one.mean() - other.mean()) / scale)
    assert a["covariate"] == "site = a"
    assert a["means"] == pytest.approx([np.mean(data["site"][part] == "a") for part in (treated, ~treated)])
    assert f"{one.mean():.4g} ({one.std(ddof=1):.3g})" in page(report_view(weighted.page_facts()))


def test_private_arms_have_no_table_but_its_price_or_what_was_bought(tmp_path):
    data, declared = people(400), study(randomised=True)
    result = cv.ate(data, declared, protects="record", epsilon=2, method="trial")
    assert result.by_arm == {}
    page = result.to_html(tmp_path / "page.html").read_text()
    assert "cv.overlap(data, study, epsilon=0.5)" in page
    summary = cv.overlap(data, declared, epsilon=2)
    page = result.to_html(tmp_path / "page.html", overlap=summary).read_text()
    assert "cv.overlap(data" not in page
    assert "bought as a release of its own" in page
    assert "share treated along the score" in read(page).text or "Share treated" in page


def test_marks_of_an_axis_are_few_round_numbers():
    assert labels(ticks(-0.13, 0.52)) == ["0.0", "0.2", "0.4"]
    assert labels(ticks(0, 1)) == ["0.0", "0.5", "1.0"]
    assert labels(ticks(-3000, 12000)) == ["0", "5,000", "10,000"]
    for low, high in ((0, 1e-9), (-5, 7), (1e6, 3e6), (0.1, 0.100001)):
        assert 1 <= len(ticks(low, high)) <= 5


def test_intervals_without_ends_have_no_picture(facts):
    (effect,) = facts["effects"]
    effect["interval"] = effect["interval"] | {"high": float("inf")}
    assert forest_plot([effect]) == ""
    assert "There is no picture" in page(report_view(facts))
