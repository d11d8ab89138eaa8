"""Names and formulas of other packages: each works, or its refusal holds the line to write."""

import copy
import pickle
import re

import numpy as np
import pytest

import counterveil as cv
from counterveil.results.elsewhere import _ATTRIBUTES, _CALLS

N = 600
RNG = np.random.default_rng(3)
ROWS = {
    "d": RNG.integers(0, 2, N),
    "x1": RNG.uniform(1, 5, N),
    "x2": RNG.uniform(0, 1, N),
    "site": RNG.choice(["a", "b", "c"], N),
}
ROWS["y"] = np.clip(3 + 0.5 * ROWS["d"] + RNG.normal(0, 1, N), 1, 10)
RANGES = {"y": (1, 10), "x1": (1, 5), "x2": (0, 1), "site": ["a", "b", "c"]}
ASKED = {"protects": "outcome", "epsilon": 1}


def refused(*args, **named):
    with pytest.raises(cv.CounterveilError) as caught:
        cv.ate(*args, **(ASKED | named))
    return caught.value


@pytest.fixture(scope="module")
def result():
    return cv.ate("y ~ d | x1", ROWS, RANGES, noise=cv.SeededNoise(1), **ASKED)


@pytest.fixture(scope="module")
def moments():
    study = cv.Study(
        cv.Treatment("d", control=0), cv.Outcome("y", (1, 10)), {"x1": (1, 5), "site": ["a", "b", "c"]}
    )
    return cv.moments(ROWS, study, protects="record", epsilon=5, delta="1e-6", noise=cv.SeededNoise(1))


@pytest.mark.parametrize(
    "call", [lambda f: cv.ate(f, ROWS, **ASKED), lambda f: cv.ate(f, data=ROWS, **ASKED)]
)
def test_a_formula_without_ranges_says_which_are_missing(call):
    with pytest.raises(cv.CounterveilError, match="CV-S015") as caught:
        call("y ~ d | x1 + C(site)")
    line = '{"y": (lowest, highest), "x1": (lowest, highest), "site": (lowest, highest)}'
    assert line in caught.value.fix
    assert "study" not in caught.value.problem


def test_columns_without_a_range_are_all_named():
    found = refused("y ~ d | x1 + site", ROWS, {"y": (1, 10)})
    assert found.code == "CV-S150"
    assert "'x1', 'site'" in found.got
    assert '"x1": ..., "site": ...' in found.fix
    # A name that is nearly one of the ranges is misspelt.
    assert "did you mean 'site'?" in refused("y ~ d | sitte", ROWS, RANGES).fix


def test_a_formula_after_the_data_is_named_as_such():
    for more in ((), (RANGES,)):
        found = refused(ROWS, "y ~ d | x1", *more)
        assert found.code == "CV-S015"
        assert 'cv.ate("y ~ d | x1", data, study' in found.fix


def test_data_and_ranges_may_be_named(result):
    named = cv.ate("y ~ d | x1", data=ROWS, study=RANGES, noise=cv.SeededNoise(1), **ASKED)
    assert named.estimate == result.estimate


@pytest.mark.parametrize("term", ["C(site)", "factor(site)", "i(site)", "C(site, Treatment('b'))"])
def test_labels_of_other_packages_are_the_column(term):
    plain = cv.ate("y ~ d | site", ROWS, RANGES, noise=cv.SeededNoise(1), **ASKED)
    found = cv.ate(f"y ~ C(d) | {term}", ROWS, RANGES, noise=cv.SeededNoise(1), **ASKED)
    assert found.estimate == plain.estimate
    assert refused("y ~ d | C(x1)", ROWS, RANGES).code == "CV-P791"


@pytest.mark.parametrize(
    ("formula", "line"),
    [
        ("y ~ d + x1 + x2", '"y ~ d | x1 + x2"'),
        ("y ~ d*x2 | x1", 'cv.groups(data, study, by="x2"'),
        ("y ~ d | x1*x2", '.regress("y ~ d*x2")'),
        ("log(y) ~ d | x1", 'terms=["log(a)"'),
        ("y ~ d | x1^2", 'terms=["log(a)", "I(a**2)"]'),
        ("y ~ d | I(x1**2)", "declare its range"),
        ("y ~ x1 | d ~ x2", '.regress("y ~ x1 + [d ~ x2]")'),
        ("y ~ Surv(d, x2)", "declare its range"),
    ],
)
def test_other_formulas_are_refused_with_the_line_to_write(formula, line):
    found = refused(formula, ROWS, RANGES)
    assert found.code == "CV-S150"
    assert line in found.fix


def test_a_time_to_an_event_is_written_as_in_survival_packages():
    found = cv.Study.from_formula(
        "Surv(days, died) ~ arm | age",
        {"days": (0, 360), "age": (18, 90)},
        treatment=cv.Treatment("arm", control=0),
    )
    same = cv.Study(
        cv.Treatment("arm", control=0),
        cv.TimeToEvent("days", "died", horizon=360),
        covariates={"age": (18, 90)},
    )
    assert found == same
    chosen = cv.Study.from_formula("Surv(days, died) ~ arm", same)
    assert (chosen.event.column, tuple(chosen.covariates)) == ("died", ())
    for formula in ("Surv(days, hurt) ~ arm", "Surv(days, days) ~ arm"):
        with pytest.raises(cv.CounterveilError, match="CV-S150"):
            cv.Study.from_formula(formula, same)
    assert '"days": (lowest, highest)' in refused("Surv(days, died) ~ d", ROWS).fix


@pytest.mark.parametrize(
    ("formula", "line"),
    [
        ("log(y) ~ d", 'terms=["log(y)"]'),
        ("y ~ d + x1^2", 'terms=["I(x1**2)"]'),
        ("y ~ d + exp(x1)", "make it a column"),
        ("y ~ d + C(site, Treatment('b'))", "site=cv.Categories(['b', ...])"),
        ("y ~ d + i(site, ref='b')", "site=cv.Categories(['b', ...])"),
        ("y ~ 1 | d ~ x1", '"y ~ 1 + [d ~ x1]"'),
    ],
)
def test_regressions_that_were_not_released_say_how(moments, formula, line):
    with pytest.raises(cv.CounterveilError, match=r"CV-P78[34]") as caught:
        moments.regress(formula)
    assert line in caught.value.fix


def test_labels_of_a_regression_may_be_written_as_elsewhere(moments):
    plain = moments.regress("y ~ d + C(site)")
    for term in ("factor(site)", "i(site)", "as.factor(site)"):
        assert moments.regress(f"y ~ d + {term}").params.equals(plain.params)


@pytest.mark.parametrize(
    ("name", "line"),
    [
        ("feols", "cv.moments("),
        ("did", "cv.event_study("),
        ("matchit", 'method="matching"'),
        ("DoubleMLIRM", 'method="doubly_robust"'),
        ("CoxPHFitter", "cv.survival("),
        ("confint", "result.interval()"),
    ],
)
def test_functions_of_other_packages_are_pointed_to_ours(name, line):
    assert not hasattr(cv, name)
    assert name not in dir(cv)
    with pytest.raises(AttributeError, match=f"no attribute '{name}'") as caught:
        getattr(cv, name)
    assert line in str(caught.value)


def test_every_line_names_what_there_is(result, moments):
    for line in _CALLS.values():
        for name in re.findall(r"\bcv\.(\w+)", line):
            assert hasattr(cv, name)
    offered = {one for lines in _ATTRIBUTES.values() for one in lines}
    kinds = (type(result), type(moments), type(moments.regress("y ~ d")))
    for one in offered:
        assert any(hasattr(kind, one.partition("(")[0]) for kind in kinds), one


def test_attributes_of_other_results_are_pointed_to_ours(result, moments):
    regression = moments.regress("y ~ d")
    for found, name, line in (
        (result, "confint", "result.interval()"),
        (result, "coef", "result.estimate"),
        (result, "pvalues", "result.p_value"),
        (regression, "confint", "result.conf_int()"),
        (regression, "coef", "result.params"),
        (moments, "ols", 'result.regress("y ~ d + x")'),
    ):
        assert not hasattr(found, name)
        assert name not in dir(found)
        with pytest.raises(AttributeError, match=re.escape(line)):
            getattr(found, name)
    with pytest.raises(AttributeError, match=r"no attribute 'nonsense'$"):
        _ = result.nonsense


def test_results_are_copied_and_pickled_as_before(result):
    for again in (copy.copy(result), copy.deepcopy(result)):
        assert again.estimate == result.estimate
    moved = cv.results.Result.from_dict(pickle.loads(pickle.dumps(result.to_dict())))
    assert moved.interval() == result.interval()


def test_a_formula_takes_what_a_study_declares_beside_its_columns():
    rows = {"y": [0, 1] * 40, "t": [0, 0, 1, 1] * 20, "school": [k // 4 for k in range(80)]}
    asked = {"protects": "outcome", "epsilon": 1, "noise": cv.SeededNoise(1), "assignment": cv.Trial()}
    result = cv.ate("y ~ t", rows, {"y": (0, 1)}, where="school != 3", clusters="school", **asked)
    assert "school" in result.guarantee.to_dict()["public"][1]
    assert result.details["rows"] == 76


@pytest.mark.parametrize(
    ("call", "line"),
    [
        (lambda study: cv.plan(study, n=500, epsilon=1), "rows=500"),
        (
            lambda study: cv.plan(study, rows=500, epsilon=1, lost=0.1),
            'question="survival", assumed=cv.Assumptions(',
        ),
        (lambda study: cv.ate({}, study, epsilon=1), '"treatment and outcome", "record"'),
    ],
)
def test_what_is_lacking_or_named_otherwise_is_written_out(call, line):
    with pytest.raises(cv.CounterveilError, match="CV-P028") as refused:
        call(cv.Study("t", {"y": (0, 1)}))
    assert line in str(refused.value)


def test_the_text_of_a_study_in_python_makes_it_again():
    study = cv.Study(cv.Treatment("t", control=0), {"y": (0, 1)}, {"age": (18, 90)}, people="id")
    assert eval(repr(study), {"Study": cv.Study}) == study
