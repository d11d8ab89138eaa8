"""Moments released once: one charge, free regressions, files without data, and what is refused."""

import json
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import t
from tools.loose_study import study_of

import counterveil as cv
from counterveil.errors import CounterveilError
from counterveil.results import Moments

COVARIATES = {
    "age": cv.Range(20, 80),
    "before": cv.Range(0, 10),
    "site": cv.Categories(["n", "s", "w"]),
    "dose": cv.Binary(),
}
STUDY = cv.Study("t", cv.Outcome("y", (0, 20)), COVARIATES, assignment=cv.Trial())
NORMAL = {"protects": "record", "epsilon": 1, "delta": "1e-6"}


def people(n=6000, seed=0):
    rng = np.random.default_rng(seed)
    age, before = rng.uniform(20, 80, n), np.minimum(rng.gamma(9, 0.5, n), 10)
    site, t, hidden = rng.choice(["n", "s", "w"], n), rng.integers(0, 2, n), rng.random(n)
    dose = np.where(hidden < 0.7, t, hidden > 0.85).astype(int)
    y = 4 + 0.05 * (age - 50) + 0.6 * before + dose + 2 * (hidden - 0.5) + (site == "w") + rng.normal(0, 1, n)
    return {"age": age, "before": before, "site": site, "t": t, "dose": dose, "y": y}


def exact(data, *names):
    """Return the regression of the rows."""
    columns = [np.ones(len(data["y"]))]
    for name in names:
        base, _, label = name.partition("=")
        columns.append(np.asarray(data[base] == label if label else data[base], float))
    return np.linalg.lstsq(np.column_stack(columns), data["y"], rcond=None)[0]


@pytest.fixture(scope="module")
def released():
    return cv.moments(people(), STUDY, outcomes=["dose"], terms=["t:age"], noise=cv.SeededNoise(1), **NORMAL)


def test_it_is_charged_once_and_resent():
    with cv.Session(people(2000), STUDY, budget=cv.Budget(2, "1e-6")) as session:
        first = session.moments(request_id="all", **NORMAL)
        assert session.remaining("record").epsilon == pytest.approx(1)
        assert session.moments(request_id="all", **NORMAL) == first
        assert first.regress("y ~ t + age").coefficients
        assert session.remaining("record").epsilon == pytest.approx(1)
    assert first.guarantee.unit.value == "record"
    assert first.guarantee.proof.value == "finite-sample"
    assert "rows/moments/regression_moments.proof.md" in first.guarantee.pages


@pytest.mark.parametrize("delta", ["1e-6", 0])
def test_with_a_large_budget_it_is_the_regression_of_the_rows(delta):
    data = people()
    found = cv.moments(data, STUDY, protects="record", epsilon=10**6, delta=delta, noise=cv.SeededNoise(2))
    names = ("t", "before", "site=s", "site=w")
    fit = found.regress("y ~ t + before + site")
    assert fit.terms == ("Intercept", *names)
    errors = np.array([one.std_error.sampling for one in fit.coefficients])
    assert np.all(np.abs(np.array(list(fit.params)) - exact(data, *names)) < 0.02 * errors)
    rows = {one["column"]: one for one in found.tidy()}
    assert rows["before"]["mean"] == pytest.approx(data["before"].mean(), abs=0.05)
    assert rows["before"]["sd"] == pytest.approx(data["before"].std(), rel=0.05)


def test_coefficients_lie_near_the_truth(released):
    fit = released.regress("y ~ t*age + before + site")
    for name, truth in {"before": 0.6, "site=w": 1.0, "t:age": 0.0}.items():
        one = fit.coefficient(name)
        assert abs(one.estimate - truth) < 4 * one.std_error.total
        assert one.std_error.total == pytest.approx(np.hypot(one.std_error.sampling, one.std_error.noise))
    at = fit.partial("t", {"age": 50})
    both = fit.combination({"t": 1, "t:age": 50})
    assert (at.estimate, at.interval()) == (both.estimate, both.interval())
    low, high = fit.interval(0.5)["before"]
    assert fit.interval()["before"][0] < low < high < fit.interval()["before"][1]


def test_compliers_from_the_same_release(released):
    found = released.compliance("dose", controls=["age", "before"])
    itt, take_up, effect = found.table
    assert take_up.interval()[0] < 0.7 < take_up.interval()[1]
    assert effect.estimate == pytest.approx(itt.estimate / take_up.estimate, rel=0.02)
    assert effect.interval() == found.two_stage.anderson_rubin[0]
    # Of one instrument, no effect of receipt is no effect of assignment; that of t would be smaller.
    assert effect.p_value == pytest.approx(itt.p_value, rel=1e-6)
    assert found.two_stage.first_stage > 100
    assert "makes nobody refuse" in str(found).replace("\n             ", " ")
    assert [row["effect"] for row in found.tidy()] == ["intention to treat", "take-up", "complier effect"]


def test_a_file_holds_no_data_and_is_read_back(released, tmp_path):
    path = released.save(tmp_path / "moments.json")
    again = Moments.load(path)
    assert again == released
    assert again.regress("y ~ t").to_dict() == released.regress("y ~ t").to_dict()
    facts = json.loads(path.read_text())
    assert facts["guarantee_warning"].startswith("SIMULATED")
    size = 1 + len(released.columns)
    assert np.array(facts["matrix"]).shape == (size, size)
    path.write_text("{}")
    with pytest.raises(CounterveilError, match="CV-P787"):
        Moments.load(path)


@pytest.mark.parametrize(
    "change",
    [{"matrix": [[1.0]]}, {"rows": 0}, {"noise_sd": "none"}, {"groups": [["site", ["x"]]]}, {"level": 95}],
)
def test_changed_facts_are_refused(released, change):
    with pytest.raises(CounterveilError):
        Moments.from_dict(released.to_dict() | change)
    lopsided = released.to_dict()
    lopsided["matrix"][0][1] += 1.0
    with pytest.raises(CounterveilError, match="CV-P661"):
        Moments.from_dict(lopsided)


@pytest.mark.parametrize("protects", ["record", "outcome"])
def test_r_squared_and_intervals_are_those_of_the_rows(protects):
    data = people(3000)
    words = {"protects": protects, "epsilon": 10**6, "delta": "1e-6", "outcomes": ["dose"]}
    found = cv.moments(data, STUDY, noise=cv.SeededNoise(2), **words)
    columns = np.column_stack((data["t"], data["before"]))
    for formula, own in (
        ("y ~ t + before", np.column_stack((np.ones(3000), columns))),
        ("y ~ t + before - 1", columns),
        ("dose ~ t", np.column_stack((np.ones(3000), data["t"]))),
    ):
        y, free = np.asarray(data[formula[: formula.index(" ~")]], float), 3000 - own.shape[1]
        slopes, (left,) = np.linalg.lstsq(own, y, rcond=None)[:2]
        plain = "- 1" in formula
        unexplained = left / (y @ y if plain else 3000 * y.var())
        errors = np.sqrt(left / free * np.diag(np.linalg.inv(own.T @ own)))
        ends = np.stack([slopes + side * t.ppf(0.95, free) * errors for side in (-1, 1)], axis=1)
        fit = found.regress(formula)
        # Long rows count less, which moves it a little.
        assert fit.r_squared == pytest.approx(1 - unexplained, abs=0.01)
        assert fit.conf_int(0.1).to_numpy() == pytest.approx(ends, rel=0.02, abs=0.02)
        assert ("(uncentered)" in fit.summary()) == plain
        adjusted = float(fit.summary().partition("Adj. R-squared")[2].split("\n")[0].split()[-1])
        assert adjusted == pytest.approx(1 - unexplained * (3000 if plain else 2999) / free, abs=0.011)
    assert found.regress("y ~ 1").r_squared == pytest.approx(0.0, abs=1e-6)


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        ({"outcomes": ["weight"]}, "CV-P780"),
        ({"outcomes": "dose"}, "CV-P780"),
        ({"terms": ["t:weight"]}, "CV-P780"),
        ({"terms": ["t"]}, "CV-P781"),
        ({"terms": ["site:site"]}, "CV-P781"),
        ({"terms": ["log(before)"]}, "CV-P792"),
        ({"terms": ["log(site)"]}, "CV-P792"),
        ({"robust": ["y ~ age + [dose ~ t]"]}, "CV-P794"),
        ({"epsilon": "0.001"}, "CV-P790"),
        ({"protects": "outcome", "terms": ["y:age"]}, "CV-P788"),
        ({"level": 2}, "CV-P015"),
    ],
)
def test_refusals(arguments, code):
    with pytest.raises(CounterveilError, match=code):
        cv.moments(
            people(500), STUDY, **({"protects": "record", "epsilon": 100, "delta": "1e-6"} | arguments)
        )


def test_refusals_of_studies():
    for declared in (
        {"denominator": "dose", "denominator_range": (0, 1)},
        {"before": "before", "before_range": (0, 10)},
    ):
        with pytest.raises(CounterveilError, match="CV-S095"):
            cv.moments(
                people(50),
                study_of("t", "y", (0, 20), {"age": (20, 80)}, **declared),
                protects="record",
                epsilon=1,
            )
    many = {f"x{place}": cv.Range(0, 1) for place in range(140)}
    with pytest.raises(CounterveilError, match="CV-P789"):
        cv.moments({}, cv.Study("t", cv.Outcome("y", (0, 20)), many), protects="record", epsilon=1)


def test_several_outcomes_are_columns_too():
    rng = np.random.default_rng(5)
    t, before = rng.integers(0, 2, 4000), rng.normal(size=4000)
    data = {"t": t, "days0": before, "days": before + t + 0.3 * rng.normal(size=4000)}
    data["visits"] = 0.5 * t + rng.normal(size=4000)
    declared = {"outcomes": {"days": (-6, 8), "visits": (-6, 6)}, "baseline": {"days": "days0"}}
    study = study_of("t", randomised=True, **declared)
    found = cv.moments(data, study, protects="record", epsilon=4, delta="1e-6", noise=cv.SeededNoise(0))
    assert found.columns == ("t", "days", "visits", "days0")
    for formula, name, truth in (("days ~ t + days0", "days0", 1.0), ("visits ~ t", "t", 0.5)):
        one = found.regress(formula).coefficient(name)
        assert abs(one.estimate - truth) < 4 * one.std_error.total
    with pytest.raises(CounterveilError, match="CV-S096"):
        cv.moments(data, study, protects="outcome", epsilon=1)


@pytest.mark.parametrize("protects", ["record", "outcome"])
def test_terms_absorbed_groups_and_robust_errors_are_those_of_least_squares(protects):
    pd = pytest.importorskip("pandas")
    data = people()
    data["y"] = data["y"] + 0.3 * np.abs(data["before"] - 4) * np.random.default_rng(9).normal(size=6000)
    wider = COVARIATES | {"before": cv.Range("0.1", 10)}
    study = cv.Study(cv.Treatment("t", control=0), cv.Outcome("y", (-10, 30)), wider, assignment=cv.Trial())
    formula = "y ~ t + np.log(before) + I(age**2) + age | C(site)"
    terms = ["log(before)", "I(age ** 2)"]
    options = {"epsilon": 10**6, "delta": "1e-6", "noise": cv.SeededNoise(3)}
    found = cv.moments(data, study, protects=protects, terms=terms, robust=[formula], **options)
    fit = found.regress(formula, cov_type="HC1")
    shown = (data["t"], np.log(data["before"]), data["age"] ** 2, data["age"])
    x = np.column_stack((*shown, np.ones(6000), data["site"] == "s", data["site"] == "w"))
    inverse = np.linalg.inv(x.T @ x)
    own = inverse @ (x.T @ data["y"])
    left = x * (data["y"] - x @ own)[:, None]
    covariance = inverse @ left.T @ left @ inverse * 6000 / (6000 - 7)
    assert list(fit.params.index) == ["t", "log(before)", "age:age", "age"]
    assert fit.params.to_numpy() == pytest.approx(own[:4], rel=2e-3, abs=1e-5)
    assert fit.bse.to_numpy() == pytest.approx(np.sqrt(np.diag(covariance))[:4], rel=5e-3)
    assert fit.cov_params().to_numpy() == pytest.approx(covariance[:4, :4], rel=0.05, abs=1e-6)
    assert isinstance(fit.conf_int(0.1), pd.DataFrame)
    assert list(fit.conf_int(0.1).loc["t"]) == pytest.approx(list(fit.coefficient("t").interval(0.9)))
    test = fit.wald_test("I(age**2) = 0, age = 2 t - 1")
    off = np.array([own[2], own[3] - 2 * own[0] + 1])
    rows = np.zeros((2, 7))
    rows[0, 2], rows[1, 3], rows[1, 0] = 1, 1, -2
    exact = off @ np.linalg.solve(rows @ covariance @ rows.T, off) / 2
    assert test.statistic == pytest.approx(exact, rel=0.02)
    assert fit.wald_test([[1, 0, 0, 0]]).pvalue == pytest.approx(fit.pvalues["t"], rel=1e-6, abs=1e-12)
    for formula, code in (("y ~ t", "CV-P793"), ("y ~ C(age)", "CV-P791")):
        with pytest.raises(CounterveilError, match=code):
            found.regress(formula, cov_type="HC1")


def test_terms_that_are_not_there(released):
    fit = released.regress("y ~ t*age")
    for ask, code in (
        (lambda: fit.coefficient("before"), "CV-P785"),
        (lambda: fit.coefficient(5), "CV-P785"),
        (lambda: fit.partial("t"), "CV-P786"),
        (lambda: fit.partial("t", at={"age": "old"}), "CV-P003"),
        (lambda: fit.combination({"t": np.nan}), "CV-P003"),
        (lambda: fit.wald_test("t = 0 = age"), "CV-P783"),
        (lambda: fit.wald_test([["a"]]), "CV-P785"),
        (lambda: released.save("/no folder/file"), "CV-P021"),
    ):
        with pytest.raises(CounterveilError, match=code):
            ask()


@pytest.mark.parametrize(
    ("protects", "page"), [("outcome", "outcome_moments"), ("record", "regression_moments")]
)
def test_a_guarantee_names_the_pages_of_its_own_level(protects, page):
    data = cv.datasets.synth(seed=1, n=400, covariates=2)
    noise = cv.SeededNoise(1)
    moments = cv.moments(data.frame, data.study, protects=protects, epsilon=8, noise=noise)
    others = {"outcome_moments", "regression_moments"} - {page}
    named = {Path(name).name.removesuffix(".proof.md") for name in moments.guarantee.pages}
    assert page in named
    assert not named & others
