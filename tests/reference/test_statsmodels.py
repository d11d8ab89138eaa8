"""Agreement with statsmodels and numpy where there is hardly any noise."""

import numpy as np
import pytest

import counterveil as cv
from counterveil.inference.heterogeneity import heterogeneity

DIGITS = 2e-3  # three digits
FREE = {"epsilon": 100_000, "noise": cv.SeededNoise(1)}
linear = pytest.importorskip("statsmodels.formula.api", reason="statsmodels is not installed")


@pytest.mark.parametrize("protects", ["record", "outcome"])
def test_regressions_hc1_errors_and_wald_tests(protects):
    pd, rng, n = pytest.importorskip("pandas"), np.random.default_rng(2), 20_000
    t, x, site = rng.integers(0, 2, n), rng.uniform(1, 3, n), rng.choice(list("abc"), n)
    y = 0.1 * t * (1 + x) + 0.2 * x + 0.3 * np.log(x) + 0.1 * (site == "b") + 0.1 * x * rng.normal(size=n)
    data = pd.DataFrame({"t": t, "x": x, "site": site, "y": np.clip(y, -1, 3)})
    covariates = {"x": cv.Range(1, 3), "site": cv.Categories(list("abc"))}
    study, formula = (
        cv.Study(
            cv.Treatment("t", control=0),
            cv.Outcome("y", (-1, 3)),
            covariates,
        ),
        "y ~ t*x + log(x) | C(site)",
    )
    asked = {"protects": protects, "delta": "1e-6", "terms": ["t:x", "log(x)"], "robust": [formula], **FREE}
    moments = cv.moments(data, study, **asked)
    found = moments.regress(formula, cov_type="HC1")
    other = linear.ols("y ~ t*x + np.log(x) + C(site)", data).fit(cov_type="HC1")
    for name in ("t", "x", "t:x", "log(x)"):
        theirs = name.replace("log", "np.log")
        assert found.params[name] == pytest.approx(other.params[theirs], rel=DIGITS)
        assert found.bse[name] == pytest.approx(other.bse[theirs], rel=DIGITS)
    asked, options = "t = 0.09, t:x = 0.1", {"scalar": True, "use_f": True}
    own, test = found.wald_test(asked), other.wald_test(asked, **options)
    assert own.statistic == pytest.approx(test.statistic, rel=0.02)
    assert own.pvalue == pytest.approx(test.pvalue, abs=0.01)
    for formula in ("y ~ t + x", "y ~ t*x - 1"):
        found, other = moments.regress(formula), linear.ols(formula, data).fit()
        assert found.r_squared == pytest.approx(other.rsquared, rel=DIGITS)
        assert ("(uncentered)" in found.summary()) == ("- 1" in formula)
        adjusted = float(found.summary().partition("Adj. R-squared")[2].split("\n")[0].split()[-1])
        assert adjusted == pytest.approx(other.rsquared_adj, abs=DIGITS)


@pytest.mark.parametrize("protects", ["record", "outcome"])
def test_labels_are_compared_with_the_first(protects):
    pd, rng, n = pytest.importorskip("pandas"), np.random.default_rng(6), 20_000
    t, site = rng.integers(0, 2, n), rng.choice(["a", "b", "c"], n, p=[0.5, 0.3, 0.2])
    y = 0.3 + 0.1 * t + 0.2 * (site == "b") - 0.1 * (site == "c") + 0.05 * rng.normal(size=n)
    data = pd.DataFrame({"t": t, "site": site, "y": np.clip(y, 0, 1)})
    for labels in (["a", "b", "c"], ["b", "a", "c"]):
        study = cv.Study(
            cv.Treatment("t", control=0), cv.Outcome("y", (0, 1)), {"site": cv.Categories(labels)}
        )
        moments = cv.moments(data, study, protects=protects, delta="1e-6", terms=["t:site"], **FREE)
        found = moments.regress("y ~ t*C(site)")
        coded = f"C(site, Treatment({labels[0]!r}))"
        other = linear.ols(f"y ~ t*{coded}", data).fit()
        assert len(found.params) == len(other.params)
        for name in found.params.index:
            theirs = ":".join(
                f"{coded}[T.{part.removeprefix('site=')}]" if "=" in part else part
                for part in name.split(":")
            )
            assert found.params[name] == pytest.approx(other.params[theirs], abs=DIGITS)
            assert found.bse[name] == pytest.approx(other.bse[theirs], rel=0.01)


def test_errors_of_clusters():
    rng = np.random.default_rng(4)
    school = np.repeat(np.arange(400), 10)
    t = rng.permutation(400)[school] % 2
    y = np.clip(0.4 + 0.1 * t + rng.normal(0, 0.1, 400)[school] + rng.normal(0, 0.1, 4000), 0, 1)
    study = cv.Study(
        "t", cv.Outcome("y", (0, 1)), assignment=cv.Trial(), clusters=cv.Clusters("school", assigned=True)
    )
    found = cv.ate({"t": t, "y": y, "school": school}, study, protects="outcome", **FREE)
    asked = {"cov_type": "cluster", "cov_kwds": {"groups": school}}
    other = linear.ols("y ~ t", {"t": t, "y": y}).fit(**asked)
    assert found.estimate == pytest.approx(other.params["t"], rel=DIGITS)
    assert float(found.std_error) == pytest.approx(other.bse["t"], rel=DIGITS)


def test_quantiles_are_those_of_numpy():
    rng = np.random.default_rng(5)
    t = np.arange(20_000) % 2
    y = np.clip(np.exp(3 + 0.3 * t + 0.5 * rng.normal(size=20_000)), 0, 100)
    study = cv.Study(cv.Treatment("t", control=0), cv.Outcome("y", (0, 100)), assignment=cv.Trial())
    found = cv.quantiles({"t": t, "y": y}, study, protects="record", grid=1000, **FREE)
    for share in (0.25, 0.5, 0.9):
        for arm, name in enumerate(("control", "treated")):
            own = np.quantile(y[t == arm], share)
            assert found.quantile(name, share).estimate == pytest.approx(own, rel=DIGITS)


def test_slopes_over_doses():
    rng = np.random.default_rng(3)
    dose = np.repeat([0, 5, 10, 20], 500)
    y = np.clip(0.4 + 0.004 * dose + rng.normal(0, 0.1, 2000), 0, 1)
    study = cv.Study(
        cv.Treatment("dose", arms=[0, 5, 10, 20], reference=0),
        cv.Outcome("y", (0, 2)),
        assignment=cv.Trial(),
    )
    found = cv.arms({"dose": dose, "y": y}, study, protects="outcome", method="difference_in_means", **FREE)
    other = linear.ols("y ~ dose", {"y": y, "dose": dose}).fit(cov_type="HC2")
    assert found.slope().estimate == pytest.approx(other.params["dose"], rel=DIGITS)
    assert float(found.slope().std_error) == pytest.approx(other.bse["dose"], rel=DIGITS)


def test_how_far_sites_differ():
    from statsmodels.stats.meta_analysis import combine_effects

    effects, variances = np.array([0.1, 0.5, 0.3, 0.9, -0.1]), np.array([0.02, 0.03, 0.01, 0.04, 0.05])
    other, own = combine_effects(effects, variances, method_re="iterated"), heterogeneity(effects, variances)
    assert own.tau_squared == pytest.approx(other.tau2, rel=DIGITS)
    assert own.q == pytest.approx(other.q, rel=DIGITS)
    assert own.i_squared == pytest.approx(other.i2, rel=DIGITS)
