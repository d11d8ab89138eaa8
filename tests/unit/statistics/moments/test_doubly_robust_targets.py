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
            frame, study, protects="record", method="doubly_robust", epsilon=2, delta=DELTA, estimand=name,
            noise=SeededNoise(6),
        )  # fmt: skip
    assert [one.estimand for one in found.values()] == ["ATO", "ATE", "ATT", "ATC"]
    assert "overlap-weighted" in str(found["ATO"])
    assert "overlap-weighted" not in str(found["ATE"])
    assert "on those who received it" in " ".join(str(found["ATT"]).split())
    assert all(one.interval_target is None for one in found.values())
    tau = 0.5 + 0.5 * x
    assert found["ATE"].estimate == pytest.approx(tau.mean(), abs=0.03)
    assert found["ATT"].estimate == pytest.approx(tau[t].mean(), abs=0.04)
    assert found["ATC"].estimate == pytest.approx(tau[~t].mean(), abs=0.04)
    assert found["ATC"].estimate < found["ATE"].estimate < found["ATT"].estimate


@pytest.mark.parametrize(
    ("method", "protects"),
    [(method, "record") for method in ("sample_and_aggregate", "stratified", "trial")]
    + [
        (method, "outcome")
        for method in ("auto", "weighting", "matching", "difference_in_means", "stratified")
    ],
)
def test_other_methods_refuse_the_overlap_weighted_effect(method, protects):
    with pytest.raises(ParameterError, match="CV-P401"):
        ask(confounded(), estimand="ATO", method=method, protects=protects)


def test_public_correlations_serve_the_overlap_weighted_effect_alone():
    data = synth(1, 4000, 2, outcome_range=(0, 2))
    settings = cv.settings.DoublyRobust(covariance=((1.0, 0.0), (0.0, 1.0)))
    assert ask(data, estimand="ATO", settings=settings).interval_target is None
    with pytest.raises(ParameterError) as refusal:
        ask(data, estimand="ATT", settings=settings)
    assert refusal.value.code == "CV-P406"
