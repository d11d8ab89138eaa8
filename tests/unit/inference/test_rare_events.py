"""Intervals of differences between few events, by adding up all that can happen."""

import numpy as np
import pytest
from scipy.stats import binom

import counterveil as cv
from counterveil.inference.measures import rare_events

ARMS = [(100, 400), (250, 250), (300, 1200), (1000, 4000)]
RISKS = [(0.01, 0.01), (0.02, 0.01), (0.01, 0.02), (0.01, 0.005), (0.05, 0.03), (0.5, 0.4)]


def coverage(sizes, risks, added):
    """Return how often a 95 % interval of the difference covers, over all numbers of events in both arms."""
    means, chances, variances = [], [], []
    for n, p in zip(sizes, risks, strict=True):
        mean = np.arange(n + 1) / n
        means.append(mean)
        chances.append(binom.pmf(np.arange(n + 1), n, p))
        variances.append(mean * (1 - mean) / (n - 1))
    error = np.abs(np.subtract.outer(*means) - (risks[0] - risks[1]))
    covered = error <= 1.96 * np.sqrt(np.add.outer(*variances) + added)
    return float(chances[0] @ covered @ chances[1])


@pytest.mark.parametrize("sizes", ARMS)
def test_one_more_event_in_each_arm_keeps_the_level(sizes):
    added = rare_events((0, 1), sizes)
    assert min(coverage(sizes, risks, added) for risks in RISKS) > 0.943


def test_without_it_few_events_are_missed():
    assert coverage((100, 400), (0.01, 0.01), 0.0) < 0.82
    assert coverage((300, 1200), (0.01, 0.01), 0.0) < 0.92


def test_other_outcomes_have_nothing_added():
    assert rare_events((-3, 5), (10, 10)) == 0.0


GROUPS = np.array(["a", "b"])[np.arange(600) // 300]
NOTHING = {"arm": np.arange(600) % 3 // 2, "event": np.zeros(600), "group": GROUPS}
STUDY = cv.Study("arm", "event", (0, 1), {"group": cv.Categories(["a", "b"])}, control=0, randomised=True)


@pytest.mark.parametrize(
    ("protects", "method"), [("outcome", "auto"), ("record", "auto"), ("outcome", "stratified")]
)
def test_no_event_in_either_arm_is_no_certainty(protects, method):
    found = cv.ate(NOTHING, STUDY, protects=protects, method=method, epsilon=1e5, noise=cv.SeededNoise(1))
    low, high = found.interval()
    assert (high - low) / 2 >= 1.95 * np.sqrt(1 / 200**2 + 1 / 400**2)


@pytest.mark.parametrize(
    ("protects", "method"),
    [("outcome", "difference_in_means"), ("outcome", "stratified"), ("record", "trial")],
)
def test_nor_beside_a_ratio_or_pooled(protects, method):
    asked = {"protects": protects, "method": method, "measure": "ratio", "epsilon": 20}
    sites = [cv.ate(NOTHING, STUDY, **asked, noise=cv.SeededNoise(seed)) for seed in (1, 2)]
    least = 1.95 * np.sqrt(1 / 200**2 + 1 / 400**2)
    for found, part in ((sites[0], 1), (cv.pool(sites, method="all"), 1 / np.sqrt(2))):
        low, high = found.as_measure("difference").interval()
        assert (high - low) / 2 >= part * least


@pytest.mark.parametrize("protects", ["outcome", "record"])
@pytest.mark.parametrize("measure", ["difference", "nnt", "ratio"])
def test_nor_among_several_outcomes(protects, measure):
    study = cv.Study("arm", outcomes={"event": (0, 1), "other": (0, 1)}, control=0, randomised=True)
    data = NOTHING | {"other": NOTHING["arm"]}
    found = cv.outcomes(
        data, study, protects=protects, measure=measure, epsilon=1e5, noise=cv.SeededNoise(1)
    ).as_measure("difference")
    low, high = found.effect("event").interval()
    assert (high - low) / 2 >= 1.95 * np.sqrt(1 / 200**2 + 1 / 400**2)


def test_what_weights_add_for_rare_events_does_not_depend_on_the_order_of_rows():
    rng = np.random.default_rng(3)
    x = rng.random(900)
    arm = (rng.random(900) < 0.02 + 0.3 * x**3).astype(int)
    study = cv.Study("arm", "event", (0, 1), {"x": cv.Range(0, 1)}, control=0, randomised=False)
    lengths = []
    for order in (np.argsort(-arm, kind="stable"), np.arange(900)):
        data = {"arm": arm[order], "event": np.zeros(900), "x": x[order]}
        asked = {"protects": "outcome", "method": "weighting", "epsilon": 1e5}
        low, high = cv.ate(data, study, **asked, noise=cv.SeededNoise(1)).interval()
        lengths.append(high - low)
    assert lengths[0] == pytest.approx(lengths[1], rel=1e-4)
