"""The clustered standard error of a weighted sum: brute force, CR2 and its degrees of freedom, refusals."""

from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from tools.loose_study import study_of

import counterveil as cv
from counterveil.errors import CounterveilError
from counterveil.estimators.linear.cluster_freedom import degrees_of_freedom, freedom_at
from counterveil.rows.linear.clustered_error import cluster_form
from counterveil.rows.linear.weighted_sum import linear_form

BITS = 1  # outcomes 0, 1, 2 are 0, 1/2 and 1 of the range
VALUES = (0, 1, 2)
DESIGNS = [
    # whole clusters in one arm; both arms within clusters; one large cluster
    ([0, 0, 1, 1, 2, 3], [1, 1, 1, 0, 0, 0], None),
    ([0, 0, 1, 2, 2, 3], [1, 1, 1, 0, 0, 0], None),
    ([0, 0, 0, 1, 2, 2], [1, 0, 1, 0, 1, 0], None),
    ([0, 0, 1, 2, 3, 3, 3], [1, 1, 1, 0, 0, 0, 0], [0.5, 0.1, 0.4, -0.5, -0.3, -0.3, 0.1]),
    ([0, 1, 1, 0, 2, 3, 2], [1, 1, 1, 1, 0, 0, 0], [0.7, 0.2, -0.1, 0.2, -0.6, -0.3, -0.1]),
]


def form_of(cluster, treated, weights):
    treated = np.array(treated, dtype=bool)
    if weights is None:
        weights = np.where(treated, 1 / treated.sum(), -1 / (~treated).sum())
    form = linear_form(np.asarray(weights, dtype=float))
    return form, cluster_form(form, np.array(cluster), treated)


@pytest.mark.parametrize("design", DESIGNS)
def test_no_change_exceeds_the_claim_and_it_is_attained(design):
    _, clusters = form_of(*design)
    rows = len(design[0])
    known = {y: clusters.length(np.array(y, dtype=np.int64), BITS) for y in product(VALUES, repeat=rows)}
    claim = Fraction(clusters.largest_change) + clusters.rounding
    worst = Fraction(0)
    for y, length in known.items():
        for place, value in product(range(rows), VALUES):
            if value > y[place]:
                worst = max(worst, abs(length - known[(*y[:place], value, *y[place + 1 :])]))
    assert worst <= claim
    assert float(worst) == pytest.approx(float(claim), rel=1e-6)
    assert worst > claim / 3


def test_the_cap_is_the_largest_standard_deviation_of_dependent_clusters():
    _, clusters = form_of(*DESIGNS[3])
    weights = np.array(DESIGNS[3][2])
    # Each cluster at one of its two extremes, or at the other, with even chances.
    own = [np.abs(weights[np.array(DESIGNS[3][0]) == g]).sum() / 2 for g in range(4)]
    assert clusters.cap == pytest.approx(np.sqrt(np.sum(np.square(own))), rel=1e-7)


def regression(cluster, treated, y):
    """Return CR2's standard error of the treatment and its degrees of freedom, from hat matrices."""
    x = np.column_stack([np.ones(len(y)), treated])
    bread = np.linalg.inv(x.T @ x)
    hat = x @ bread @ x.T
    left = (np.eye(len(y)) - hat) @ y
    total, forms = 0.0, []
    for g in np.unique(cluster):
        own = np.flatnonzero(cluster == g)
        values, vectors = np.linalg.eigh(np.eye(len(own)) - hat[np.ix_(own, own)])
        root = vectors @ np.diag(values**-0.5) @ vectors.T
        row = (bread @ x[own].T @ root)[1]
        total += float(row @ left[own]) ** 2
        forms.append((np.eye(len(y)) - hat)[:, own] @ row)
    products = np.array(forms) @ np.array(forms).T
    return np.sqrt(total), np.trace(products) ** 2 / (products**2).sum()


@pytest.mark.parametrize("within", [False, True])
def test_agrees_with_cr2_and_the_freedom_of_bell_and_mccaffrey(within):
    rng = np.random.default_rng(4)
    cluster = rng.permutation(np.repeat(np.arange(14), rng.integers(2, 12, 14)))
    treated = (rng.random(len(cluster)) < 0.4) if within else (cluster % 3 == 0)
    steps = 24
    y = rng.integers(0, 2**steps, len(cluster))
    _, clusters = form_of(cluster, treated, None)
    error, freedom = regression(cluster, treated.astype(float), y / 2**steps)
    assert float(clusters.length(y, steps)) == pytest.approx(error, rel=1e-6)
    assert freedom_at(clusters, 0.0) == pytest.approx(freedom, rel=1e-6)
    assert degrees_of_freedom(clusters) <= freedom * (1 + 1e-6)


def test_many_clusters_take_a_shorter_way_to_nearly_the_same_freedom():
    rng = np.random.default_rng(5)
    cluster = np.repeat(np.arange(401), rng.integers(1, 5, 401))
    _, clusters = form_of(cluster, cluster % 2 == 0, None)
    kept = cluster < 399
    _, fewer = form_of(cluster[kept], cluster[kept] % 2 == 0, None)
    assert degrees_of_freedom(clusters) == pytest.approx(degrees_of_freedom(fewer), rel=0.03)


def trial(clusters=12, size=10, seed=0):
    rng = np.random.default_rng(seed)
    school = np.repeat(np.arange(clusters), size)
    arm = school % 2
    y = np.clip(
        0.5 + 0.1 * arm + rng.normal(0, 0.1, clusters)[school] + rng.normal(0, 0.1, len(school)), 0, 1
    )
    return {"arm": arm, "y": y, "school": school, "x": rng.random(len(school))}


def study(**more):
    return study_of(
        "arm", "y", (0, 1), {"x": cv.Range(0, 1)}, control=0, randomised=True, cluster="school", **more
    )


@pytest.mark.parametrize("clusters", [4, 5])
def test_too_few_clusters_are_refused_before_anything_is_spent(clusters):
    with cv.Session(trial(clusters), study(), budget=cv.Budget(1)) as session:
        with pytest.raises(CounterveilError, match="CV-S066"):
            session.ate(protects="outcome", epsilon=1, method="difference_in_means")
        assert session.remaining().epsilon == 1


@pytest.mark.parametrize(
    "asked",
    [
        {"method": "stratified", "protects": "outcome"},
        {"method": "doubly_robust", "protects": "record"},
        {"method": "sample_and_aggregate", "protects": "record"},
        {"method": "trial", "protects": "record", "settings": cv.settings.Trial("covariates")},
    ],
)
def test_methods_that_would_take_rows_for_independent_are_refused(asked):
    with pytest.raises(CounterveilError, match="CV-S026"):
        cv.ate(trial(), study(), epsilon=1, **asked)


def test_other_questions_are_refused_too():
    data = trial()
    declared = cv.Study(
        cv.Treatment("arm", control=0),
        cv.Outcome("y", (0, 1)),
        {"x": cv.Range(0, 1).cut(0.5)},
        assignment=cv.Trial(),
        clusters="school",
    )
    with cv.Session(data, declared, budget=cv.Budget(50)) as session:
        asked = [
            lambda: session.groups(by="x", protects="record", method="adjusted", epsilon=1),
            lambda: session.cate(protects="record", epsilon=1),
            lambda: session.cate(protects="outcome", epsilon=1),
            lambda: session.overlap(protects="record", epsilon=1),
        ]
        for ask in asked:
            with pytest.raises(CounterveilError, match="CV-S026"):
                ask()
        assert session.remaining().epsilon == 50
