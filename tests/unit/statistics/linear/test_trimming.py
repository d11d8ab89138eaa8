"""Trimming by propensity scores: which rows are kept, whose effect it is, and that outcomes play no part in it."""

import itertools

import numpy as np
import pytest

import counterveil as cv
from counterveil.data import Table
from counterveil.errors import ParameterError, StudyError
from counterveil.privacy.caveats import KeptPeople
from counterveil.questions.pooled import check_document
from counterveil.statistics.linear.weighting_design import crump_limit, trimmed

STUDY = cv.Study("t", "y", (0, 1), {"x": cv.Range(-3, 3)})


def rows(n=2000, seed=0, slope=2.0, bend=0.1):
    rng = np.random.default_rng(seed)
    x = np.clip(rng.standard_normal(n), -3, 3)
    chance = 1 / (1 + np.exp(-slope * x))
    t = (rng.random(n) < chance).astype(int)
    y = np.clip(0.5 + 0.1 * x + (0.1 + bend * np.abs(x)) * t + 0.05 * rng.standard_normal(n), 0, 1)
    return {"x": x, "t": t, "y": y}


def test_the_limit_of_least_variance_is_that_of_the_definition():
    score = np.random.default_rng(1).beta(0.4, 0.4, 5000)
    limit = crump_limit(score)
    g = 1 / (score * (1 - score))

    def variance(a):
        kept = (score >= a) & (score <= 1 - a)
        return g[kept].mean() / kept.sum()

    tried = np.linspace(0.0, 0.4, 401)
    best = tried[np.argmin([variance(a) for a in tried])]
    assert limit == pytest.approx(best, abs=0.01)
    assert 0.05 < limit < 0.2
    kept = (score >= limit) & (score <= 1 - limit)
    assert 1 / (limit * (1 - limit)) == pytest.approx(2 * g[kept].mean(), rel=0.01)
    assert crump_limit(np.full(100, 0.5)) == 0.0


def test_rows_within_the_limits_are_kept_and_named():
    table = Table.attach(rows(), STUDY)
    part = trimmed(table, 0.1)
    assert 0 < part.table.rows < table.rows
    assert part.population == KeptPeople(part.table.rows, 2000, 0.1)
    assert np.abs(part.table.covariates["x"]).max() < np.abs(table.covariates["x"]).max()
    assert trimmed(table, 1e-6).population is None
    assert trimmed(table, "optimal").limit == pytest.approx(0.1, abs=0.06)


def test_the_effect_is_that_of_those_kept_and_says_so_first():
    data = rows(4000)
    found = cv.ate(data, STUDY, protects="outcome", epsilon=8, trim=0.2, noise=cv.SeededNoise(1))
    table = Table.attach(data, STUDY)
    part = trimmed(table, 0.2)
    kept = part.table.covariates["x"]
    truth = 0.1 + 0.1 * np.abs(kept).mean()
    everyone = 0.1 + 0.1 * np.abs(table.covariates["x"]).mean()
    low, high = found.interval()
    assert low - 0.01 <= truth <= high + 0.01
    assert everyone > high + 0.01
    assert found.details["rows"] == part.table.rows
    assert found.details["rows_before_trimming"] == 4000
    first = str(found).splitlines()
    assert "SIMULATED" in first[0]
    assert first[1].startswith("*** TRIMMED: the effect is that of the")
    for text in (found.full(), found.write_up(), found.to_latex(), repr(found)):
        assert "TRIMMED" in text
    assert "everyone in the study" not in found.summary()
    assert found.tidy()[0]["population"] in found.warning
    assert found.table[0].name == "ATE, trimmed"
    assert cv.results.Result.from_dict(found.to_dict()) == found
    check_document(found.to_dict())
    assert "statistics/linear/trimmed_rows.proof.md" in found.guarantee.pages


def test_outcomes_do_not_choose_rows_and_those_left_out_move_nothing():
    """All outcomes of a small table: the same rows are kept, and only their outcomes count."""
    x = np.array([-3.0, -1.0, -0.5, 0.0, 0.2, 0.5, 1.0, 3.0])
    t = np.array([0, 0, 1, 0, 1, 0, 1, 1])
    kept, means = set(), {}
    for y in itertools.product((0.0, 1.0), repeat=8):
        part = trimmed(Table.attach({"x": x, "t": t, "y": np.array(y)}, STUDY), 0.4)
        kept.add(tuple(part.table.covariates["x"]))
        own = (
            part.table.outcome / part.table.outcome.max() if part.table.outcome.max() else part.table.outcome
        )
        inside = tuple(
            value for value, place in zip(y, x, strict=True) if place in part.table.covariates["x"]
        )
        means.setdefault(inside, set()).add(
            float(own[part.table.treated].mean() - own[~part.table.treated].mean())
        )
    assert len(kept) == 1
    assert 4 <= len(next(iter(kept))) < 8
    assert all(len(found) == 1 for found in means.values())
    # One outcome moves the difference of the arms' means by at most one over the smaller arm.
    treated = sum(t[list(x).index(place)] for place in next(iter(kept)))
    smaller = min(treated, len(next(iter(kept))) - treated)
    for inside, (value,) in means.items():
        for place in range(len(inside)):
            other = (*inside[:place], 1.0 - inside[place], *inside[place + 1 :])
            assert abs(next(iter(means[other])) - value) <= 1 / smaller + 1e-12


@pytest.mark.parametrize("trim", [0, 0.5, -0.1, "best", True])
def test_limits_that_are_none_are_refused(trim):
    with pytest.raises(ParameterError, match="CV-P669"):
        cv.ate(rows(50), STUDY, protects="outcome", epsilon=1, trim=trim)


def test_private_scores_and_arms_without_overlap_are_refused():
    with pytest.raises(ParameterError, match="CV-P668"):
        cv.ate(rows(50), STUDY, protects="record", epsilon=1, trim=0.1)
    apart = {"x": np.repeat([-3.0, 3.0], 50), "t": np.repeat([0, 1], 50), "y": np.zeros(100)}
    with pytest.raises(StudyError, match="CV-S065"):
        cv.ate(apart, STUDY, protects="outcome", epsilon=1, trim=0.3)


def test_trimmed_results_are_pooled_with_trimmed_ones_alone():
    asked = {"protects": "outcome", "epsilon": 2, "noise": cv.SeededNoise(1)}
    one = cv.ate(rows(seed=1), STUDY, trim=0.1, **asked)
    other = cv.ate(rows(seed=2), STUDY, trim=0.1, **asked)
    pooled = cv.pool({"a": one, "b": other})
    assert "TRIMMED" in str(pooled)
    with pytest.raises(ParameterError, match="CV-P503"):
        cv.pool({"a": one, "b": cv.ate(rows(seed=2), STUDY, **asked)})
