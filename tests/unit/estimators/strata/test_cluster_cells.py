"""Counts and sums by cluster and arm: brute force, agreement with the clustered regression, refusals."""

from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from tools.loose_study import study_of

import counterveil as cv
from counterveil.data import OUTCOME_STEPS, Table
from counterveil.errors import CounterveilError
from counterveil.estimators.strata.clustered_trial import compared
from counterveil.rows.strata.cluster_sensitivity import ClusterCells
from counterveil.rows.strata.cluster_totals import ClusterArms

VALUES = (0, OUTCOME_STEPS // 2, OUTCOME_STEPS)


def study(**more):
    return study_of("arm", "y", (0, 1), control=0, randomised=True, cluster="school", **more)


def table(records, declared):
    cluster, treated, outcome = (np.array(column) for column in zip(*records, strict=True))
    return Table(
        declared, treated.astype(np.intp), treated.astype(bool), outcome.astype(np.int64), {}, cluster=cluster
    )


@pytest.mark.parametrize("groups", [1, 2])
@pytest.mark.parametrize("assigned", [False, True])
def test_no_replacement_exceeds_the_claim_and_both_are_attained(assigned, groups):
    declared = study(assigned_by_cluster=assigned)
    places = [(0, 0), (1, 1)] if assigned else list(product((0, 1), (0, 1)))
    people = [(g, t, y, group) for (g, t), y, group in product(places, VALUES, range(groups))]
    # Two fixed rows keep both clusters, and their arms, in every data set.
    fixed = [(0, 0, VALUES[1], 0), (1, 1, VALUES[1], 0)]
    cells = ClusterArms.of(table([row[:3] for row in fixed], declared))

    def totals(records):
        rows = table([row[:3] for row in records], declared)
        return cells.totals(rows, np.array([row[3] for row in records]), groups)

    known = {
        rows: tuple(np.array(part) for part in totals([*fixed, *rows]))
        for rows in product(people, repeat=2 if assigned else 1)
    }
    claim, worst = ClusterCells(Fraction(1)), [0, 0]
    for rows, (counts, sums) in known.items():
        for other in people:
            others = known[(other, *rows[1:])]
            worst[0] = max(worst[0], int(np.abs(counts - others[0]).sum()))
            worst[1] = max(worst[1], int(np.abs(sums - others[1]).sum()))
    assert worst[0] == claim.counts
    assert Fraction(worst[1], OUTCOME_STEPS) == claim.sums


def data(clusters=24, size=20, within=False, seed=0):
    rng = np.random.default_rng(seed)
    school = np.repeat(np.arange(clusters), rng.integers(size // 2, 2 * size, clusters))
    arm = rng.integers(0, 2, len(school)) if within else school % 2
    shared = rng.normal(0, 0.1, clusters)[school]
    y = np.clip(0.4 + 0.1 * arm + shared + rng.normal(0, 0.1, len(school)), 0, 1)
    return {"arm": arm, "y": y, "school": school}


@pytest.mark.parametrize("within", [False, True])
def test_without_noise_it_is_the_clustered_regression(within):
    rows = data(within=within)
    attached = Table.attach(rows, study(assigned_by_cluster=not within))
    cells = ClusterArms.of(attached)
    counts, sums = cells.totals(attached)
    found = compared(
        cells, np.array(counts, float), np.array(sums) / OUTCOME_STEPS, noises=(0.0, 0.0), width=1.0
    )
    x = np.column_stack([np.ones(len(rows["y"])), rows["arm"]])
    slopes = np.linalg.lstsq(x, rows["y"], rcond=None)[0]
    left, bread = rows["y"] - x @ slopes, np.linalg.inv(x.T @ x)
    scores = np.array([x[rows["school"] == g].T @ left[rows["school"] == g] for g in range(24)])
    plain = (bread @ scores.T @ scores @ bread)[1, 1]
    each = 24 if within else 12
    assert found.effect == pytest.approx(slopes[1], abs=1e-6)
    assert found.uncertainty.variance == pytest.approx(plain * each / (each - 1), rel=1e-4)
    assert 10 < found.uncertainty.freedom < 24


def test_an_arm_that_is_lost_in_noise_gets_the_whole_range():
    attached = Table.attach(data(), study(assigned_by_cluster=True))
    cells = ClusterArms.of(attached)
    counts, sums = cells.totals(attached)
    people = np.array(counts, float)
    people[cells.arm == 1] = -3.0
    found = compared(cells, people, np.array(sums) / OUTCOME_STEPS, noises=(50.0, 0.1), width=1.0)
    assert np.isfinite(found.effect)
    # Outcomes lie in [0, 1], effects in [-1, 1], and every level's interval is all of it.
    for level in (0.05, 0.95):
        assert found.uncertainty.half_width(level) >= abs(found.effect) + 1
    assert found.uncertainty.p_value(found.effect, 0.95) == 1


def test_the_answer_says_how_it_was_found_and_is_the_same_in_every_order():
    rows = data()
    declared = study(assigned_by_cluster=True)
    order = np.random.default_rng(1).permutation(len(rows["y"]))
    mixed = {name: values[order] for name, values in rows.items()}
    asked = {"protects": "record", "epsilon": 2}
    one, two = (cv.ate(each, declared, noise=cv.SeededNoise(2), **asked) for each in (rows, mixed))
    assert one.interval() == two.interval()
    assert "clustered by school, 24 clusters" in one.method
    assert one.std_error.noise > 0
    assert type(one).from_dict(one.to_dict()).interval() == one.interval()
    real = cv.ate(rows, declared, **asked)
    assert "one row" in str(real)
    assert "which arm each of them was assigned to" in str(real.guarantee.public)


def refusal(rows, declared, **asked):
    with pytest.raises(CounterveilError) as refused:
        cv.ate(rows, declared, protects="record", **asked)
    return refused.value.code


def test_refusals_come_before_anything_is_spent():
    assert refusal(data(4), study(assigned_by_cluster=True), epsilon=1) == "CV-S066"
    assert refusal(data(5, within=True), study(), epsilon=1) == "CV-S066"
    assert refusal(data(24, 4), study(), epsilon=0.2) == "CV-P681"
    assert refusal(data(), study(), epsilon=1, delta=1e-6, mechanism="gaussian") == "CV-P240"
    observed = cv.Study(
        cv.Treatment("arm", control=0),
        cv.Outcome("y", (0, 1)),
        assignment=cv.Observational(),
        clusters="school",
    )
    assert refusal(data(), observed, epsilon=1, method="trial") == "CV-S026"
    # Where the noise is left open, a delta is not needed: the guarantee is pure.
    assert cv.ate(data(), study(), protects="record", epsilon=4, delta=1e-6).details["mechanism"] == "laplace"
