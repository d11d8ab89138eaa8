"""Whose effect the orthogonal private effect is."""

import numpy as np
import pytest
from tests.unit.statistics.moments.robust_data import DELTA, ask, confounded

import counterveil as cv
from counterveil.datasets import synth
from counterveil.errors import ParameterError
from counterveil.session import SeededNoise


def test_targets_are_named_and_differ_where_effects_vary():
    rng = np.random.default_rng(5)
    n = 20_000
    x = rng.uniform(-1, 1, n)
    e = 1 / (1 + np.exp(-1.5 * x))
    t = rng.random(n) < e
    y = 1 + x + (0.5 + 0.5 * x) * t + rng.normal(0, 0.2, n)
    frame = {"x": x, "t": t.astype(int), "y": y}
    study = cv.Study("t", "y", (-2, 4), {"x": cv.Range(-1, 1)}, control=0)
    found = {}
    for name in ("ATO", "ATE", "ATT", "ATC"):
        found[name] = cv.ate(
            frame,
            study,
            protects="record",
            method="doubly_robust",
            epsilon=2,
            delta=DELTA,
            estimand=name,
            noise=SeededNoise(6),
        )
    assert [one.estimand for one in found.values()] == ["ATO", "ATE", "ATT", "ATC"]
    assert "overlap-weighted" in str(found["ATO"])
    assert "overlap-weighted" not in str(found["ATE"])
    assert "weighted to the treated" in found["ATT"].method
    tau = 0.5 + 0.5 * x
    assert found["ATE"].estimate == pytest.approx(tau.mean(), abs=0.03)
    assert found["ATT"].estimate == pytest.approx(tau[t].mean(), abs=0.04)
    assert found["ATC"].estimate == pytest.approx(tau[~t].mean(), abs=0.04)
    assert found["ATC"].estimate < found["ATE"].estimate < found["ATT"].estimate


def test_weighted_targets_claim_no_interval_where_the_weights_matter_more_than_noise():
    data = synth(1, 4000, 2, outcome_range=(0, 2))
    wide = ask(data, estimand="ATT")
    assert wide.interval_of is None
    sharp = ask(data, estimand="ATT", epsilon=30)
    assert "linearly" in sharp.interval_of
    assert str(sharp).splitlines()[1].startswith("*** NO VALID INTERVAL")
    assert ask(data, estimand="ATO", epsilon=30).interval_of is None


@pytest.mark.parametrize(
    ("method", "protects"),
    [
        (method, "record")
        for method in ("ipw", "cross_fit", "fold_aggregation", "score_strata", "stratified", "trial")
    ]
    + [
        (method, "outcome")
        for method in ("auto", "weighting", "matching", "difference_in_means", "stratified")
    ]
    + [("matching", "record")],
)
def test_other_methods_refuse_the_overlap_weighted_effect(method, protects):
    with pytest.raises(ParameterError) as refusal:
        ask(confounded(), estimand="ATO", method=method, protects=protects)
    assert refusal.value.code == "CV-P401"


def test_auto_estimates_the_overlap_weighted_effect_only_where_it_is_asked_for():
    asked = ask(confounded(), estimand="ATO", method="auto")
    assert asked.estimand == "ATO"
    assert asked.details["chosen_by_auto"].startswith("doubly_robust")
    assert "overlap-weighted" in str(asked).splitlines()[2]
    assert ask(confounded(), method="auto", estimand="ATE").estimand == "ATE"
