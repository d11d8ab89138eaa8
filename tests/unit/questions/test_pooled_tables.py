"""Answers of several effects over several sites: rows are averaged, moments are added up."""

import json

import numpy as np
import pytest

import counterveil as cv
from counterveil.errors import CounterveilError
from counterveil.questions.pooled import PooledMoments, PooledTable

COVARIATES = {"age": cv.Range(20, 80), "sex": cv.Binary()}
TWO = cv.Study("t", "y", (0, 2), COVARIATES, control=0, treated=1, randomised=True)
TIMES = cv.Study(
    "t", "days", covariates=COVARIATES, event="e", horizon=24, grid=6, control=0, treated=1, randomised=True
)
SIZES = (300, 500, 900)
# So much budget that noise does not matter beside this part of a coefficient.
PLENTY, NEAR = 10**5, 1e-3


def rows(size, seed):
    source = np.random.default_rng(seed)
    frame = {"t": source.permutation(size) % 2, "sex": source.integers(0, 2, size)}
    frame["age"] = source.uniform(20, 80, size)
    frame["y"] = 0.5 + 0.2 * frame["t"] + 0.01 * frame["age"] - 0.2 * seed + source.uniform(-0.2, 0.2, size)
    frame["days"] = np.minimum(source.exponential(20 + 10 * frame["t"]), 24.0)
    frame["e"] = (frame["days"] < 24).astype(int)
    return frame


@pytest.fixture(scope="module")
def groups():
    asked = {"by": "sex", "protects": "outcome", "epsilon": 1}
    return {
        f"site {k}": cv.groups(rows(size, k), TWO, **asked, method="difference_in_means")
        for k, size in enumerate(SIZES)
    }


@pytest.fixture(scope="module")
def survival():
    asked = {"protects": "outcome", "epsilon": 2, "method": "kaplan_meier"}
    return [cv.survival(rows(size, k), TIMES, **asked) for k, size in enumerate(SIZES)]


def test_every_row_is_the_average_of_the_sites_rows(groups):
    found = cv.pool(groups)
    assert isinstance(found, PooledTable)
    assert [row.effect.name for row in found.rows] == ["sex=0", "sex=1"]
    for row in found.rows:
        estimates = [groups[site].effect(row.effect.name).estimate for site in row.weights]
        assert row.effect.estimate == pytest.approx(np.dot([*row.weights.values()], estimates))
        assert sum(row.weights.values()) == pytest.approx(1)
        # Noise is drawn anew: single sites may be more exact by chance.
        assert float(row.effect.std_error) < np.mean(
            [float(one.effect(row.effect.name).std_error) for one in groups.values()]
        )
    assert found.guarantee.epsilon == 1


def test_intervals_for_all_rows_are_bonferronis(groups):
    found = cv.pool(groups)
    for one in found.table:
        assert one.interval(simultaneous=True) == one.interval(1 - 0.05 / 2)
        assert one.adjusted_p_value <= 1
    assert PooledTable.from_dict(json.loads(json.dumps(found.to_dict()))).table == found.table


def test_a_group_that_one_site_alone_has_is_left_out(groups):
    from dataclasses import replace

    lone = {
        name: one if name == "site 0" else replace(one, groups=(replace(one.groups[0], several=1),))
        for name, one in groups.items()
    }
    found = cv.pool(lone)
    assert found.left_out == ("sex=1",)
    assert [one.name for one in found.table] == ["sex=0"]


def test_other_questions_are_not_pooled(groups, survival):
    with pytest.raises(CounterveilError, match="CV-P503"):
        cv.pool([groups["site 0"], survival[0]])
    with pytest.raises(CounterveilError, match="CV-P502"):
        cv.pool([groups["site 0"].to_dict(), groups["site 1"].to_dict() | {"groups": []}])


def test_survival_and_any_number_of_it_is_averaged(survival):
    found = cv.pool(survival)
    assert [one.name for one in found.table] == [one.name for one in survival[0].table]
    for of in (
        lambda one: one.difference(12.0),
        lambda one: one.restricted_mean("treated"),
        lambda one: one.hazard_ratio(),
    ):
        low, high = found.average(of).interval()
        ends = [of(one).interval() for one in survival]
        assert min(end[0] for end in ends) <= low < high <= max(end[1] for end in ends)
        assert high - low < min(end[1] - end[0] for end in ends)


def test_a_quantile_that_a_site_does_not_reach_is_not_known(survival):
    found = cv.pool(survival, method="all")
    assert found.average(lambda one: one.quantile("treated", 0.99)).interval() == (-np.inf, np.inf)
    low, high = found.average(lambda one: one.quantile_difference(0.25)).interval()
    assert low <= high


def test_moments_of_sites_add_up_to_those_of_all_rows():
    sites = [rows(size, k) for k, size in enumerate(SIZES)]
    asked = {"protects": "outcome", "epsilon": PLENTY}
    found = cv.pool({f"s{k}": cv.moments(one, TWO, **asked) for k, one in enumerate(sites)})
    assert isinstance(found, PooledMoments)
    whole = {name: np.concatenate([one[name] for one in sites]) for name in sites[0]}
    site = np.repeat([0, 1, 2], SIZES)
    columns = [np.ones(len(site)), whole["t"], whole["age"]]
    for formula, more in (("y ~ t + age", []), ("y ~ t + age | site", [site == 1, site == 2])):
        x = np.column_stack([*columns, *more]).astype(float)
        wanted, left, *_ = np.linalg.lstsq(x, whole["y"], rcond=None)
        fit = found.regress(formula)
        assert fit.coefficient("t").estimate == pytest.approx(wanted[1], rel=NEAR)
        error = np.sqrt(left[0] / (len(x) - x.shape[1]) * np.linalg.inv(x.T @ x)[1, 1])
        assert fit.coefficient("t").std_error.total == pytest.approx(error, rel=0.01)
    again = PooledMoments.from_dict(json.loads(json.dumps(found.to_dict())))
    assert (
        again.regress("y ~ t").coefficient("t").estimate == found.regress("y ~ t").coefficient("t").estimate
    )


def test_a_held_weight_of_moments_counts_as_fewer_rows():
    sites = [
        cv.moments(rows(size, k), TWO, protects="outcome", epsilon=1)
        for k, size in enumerate((100, 100, 2000))
    ]
    found = cv.pool(sites, weight_limits=cv.settings.WeightLimits(0.5))
    assert max(one.weight for one in found.answers) == pytest.approx(0.5)
    assert found.rows == int(1 / (0.25 / 2000 + 2 * 0.0625 / 100))
