"""Scores of outcomes that few people have are not clipped, and adjusted scores move as effects do."""

from types import SimpleNamespace

import numpy as np
import pytest
from tools.loose_study import study_of

import counterveil as cv
from counterveil.estimators.moments.cell_clip import (
    ScoreHistogram,
    chosen_clip,
    clip_without_histogram,
    edges_of,
)
from counterveil.estimators.moments.group_score import MeanScore, PlainScore

COVARIATES = {"a": cv.Range(0, 1), "b": cv.Binary()}


@pytest.mark.parametrize(("mean", "few"), [(-0.94, True), (0.94, True), (0.0, False), (-0.6, False)])
def test_scores_know_whether_few_people_carry_the_outcome(mean, few):
    # Outcomes in {-1, 1} around this mean where it is near an end, narrow ones elsewhere.
    square = 1.0 if few else mean**2 + 0.05
    for score in (PlainScore(0.5, mean, 0.0, square), MeanScore(mean, square)):
        assert score.heavy_tailed is few


@pytest.mark.parametrize("epsilon", [0.5, 2])
def test_effects_on_a_rare_outcome_are_covered(epsilon):
    design = {"control": 0, "randomised": True, "treated_share": 0.5}
    declared = study_of("t", "y", (0, 1), {"g": cv.Categories(["a", "b"])}, **design)
    asked = {"by": ["g"], "protects": "record", "epsilon": epsilon, "delta": 1e-6, "method": "arms"}
    covered = 0
    for seed in range(30):
        generator = np.random.default_rng(seed)
        t = generator.integers(0, 2, 20_000)
        y = (generator.random(20_000) < np.where(t == 1, 0.008, 0.002)).astype(int)
        frame = {"t": t, "y": y, "g": generator.choice(["a", "b"], 20_000).tolist()}
        found = cv.groups(frame, declared, noise=cv.SeededNoise(seed), **asked)
        covered += sum(low <= 0.006 <= high for low, high in found.interval().values())
    assert covered >= 53  # of 60; 57 expected


@pytest.mark.parametrize(("rate", "delta"), [(0.005, 0), (0.02, 1e-6)])
def test_what_a_rule_gains_on_a_rare_outcome_is_covered_where_covariates_are_adjusted_for(rate, delta):
    declared = cv.Study(cv.Treatment("t", control=0), cv.Outcome("y", (0, 1)), COVARIATES)
    asked = {"policy": cv.Policy.where(b=[1]), "protects": "record", "epsilon": 8, "delta": delta}
    covered = 0
    for seed in range(30):
        generator = np.random.default_rng(seed)
        a, b = generator.random(5_000), generator.integers(0, 2, 5_000)
        t = (generator.random(5_000) < 0.25 + 0.3 * a + 0.1 * b).astype(int)
        effect = rate * (0.5 + a)
        y = (generator.random(5_000) < rate * (0.5 + a) + effect * t).astype(int)
        rows = {"a": a, "b": b, "t": t, "y": y}
        found = cv.policy_value(rows, declared, noise=cv.SeededNoise(seed), **asked)
        low, high = found.over_none.interval()
        covered += low <= float((effect * b).mean()) <= high
    assert covered >= 26  # of 30; 28.5 expected


def test_scores_are_divided_by_their_information():
    # Propensities beyond 0.1 and 0.9 are kept there, so that scores move by less than effects do: without the division
    # a fifth of what the outcome's model errs by is left, and the root mean square below is 0.21.
    declared = cv.Study(cv.Treatment("t", control=0), cv.Outcome("y", (-20, 30)), COVARIATES)
    asked = {"by": "b", "protects": "record", "method": "adjusted", "epsilon": 0.5}
    n, errors = 20_000, []
    for seed in range(8):
        generator = np.random.default_rng(seed)
        a = generator.random(n)
        t = (generator.random(n) < 1 / (1 + np.exp(4 - 8 * a))).astype(int)
        y = 5 + 3 * a + t + generator.normal(size=n)
        rows = {"a": a, "b": generator.integers(0, 2, n), "t": t, "y": y}
        found = cv.groups(rows, declared, noise=cv.SeededNoise(seed), **asked)
        errors += [effect.estimate - 1 for effect in found.table]
    assert np.sqrt(np.mean(np.square(errors))) < 0.185


def test_one_cell_alone_still_has_a_width():
    # All scores in the innermost cell: its width says how far they may spread.
    edges = edges_of(4.0)
    ends = np.concatenate([[edges[0] * 2**0.5], edges, [edges[-1] * 2**0.5]])
    counts = np.zeros(len(ends) - 1)
    counts[len(counts) // 2] = 10_000.0

    def clip_of(sd, score):
        return chosen_clip(ScoreHistogram(ends, counts, sd), score, rows=10_000, cells=2, unit=30.0)

    clip = clip_of(20.0, MeanScore(0.0, 0.0))
    assert clip.centre == 0
    assert 0 < clip.size < 0.1
    assert clip.hidden == 0
    # A mean square that noise may hide lies anywhere beyond: the clip goes further out, and says what it may lose.
    further = clip_of(1000.0, MeanScore(0.0, 0.0, square_sd=0.1))
    assert further.size > 10 * clip.size
    assert further.hidden == pytest.approx(0.7 * 0.1 / (4 * further.size), rel=0.05)
    # Counts that are nearly free of noise say more than the mean square.
    surer = clip_of(0.001, MeanScore(0.0, 0.0, square_sd=0.1))
    assert surer.hidden < 0.01 * further.hidden


@pytest.mark.parametrize("unit", [0.1, 2.0, 30.0])
def test_without_a_histogram_no_rare_score_loses_more_than_is_said(unit):
    score = SimpleNamespace(
        variance=0.05, extra=0.0, largest_score=20.0, heavy_tailed=True, unseen=lambda _: 0.0
    )
    clip = clip_without_histogram(score, rows=5_000, cells=2, unit=unit)
    assert clip.size <= score.largest_score
    # Scores of one size, as rare as their mean square says; all of them may be in one of the two cells.
    sizes = np.geomspace(0.1, score.largest_score, 400)
    cut = 2 * np.minimum(score.variance / sizes**2, 1) * np.maximum(sizes - clip.size, 0)
    assert cut.max() <= clip.lost
    # Where noise allows, nobody is cut off.
    assert (clip.size == pytest.approx(score.largest_score)) == (unit == 0.1)


@pytest.mark.parametrize(("method", "epsilon"), [("adjusted", 1), ("adjusted", 4), ("arms", 4)])
def test_groups_hold_outcomes_far_out_of_a_range_that_holds_them(method, epsilon):
    # Forty standard deviations out: 10 of 1,000 treated and 2 of 1,000 others, in one of the groups.
    covariates = {"a": cv.Range(0, 1), "b": cv.Binary()}
    declared = cv.Study(
        cv.Treatment("t", control=0), cv.Outcome("y", (-20, 80)), covariates, assignment=cv.Trial()
    )
    asked = {"by": "b", "protects": "record", "method": method, "epsilon": epsilon, "delta": 1e-6}
    n, covered = 8000, 0
    for seed in range(10):
        generator = np.random.default_rng(seed)
        a, b, t = generator.random(n), generator.integers(0, 2, n), generator.integers(0, 2, n)
        far = generator.random(n) < np.where(t == 1, 0.01, 0.002) * b
        y = a + 0.3 * t + generator.normal(size=n) + 40 * far
        found = cv.groups({"a": a, "b": b, "t": t, "y": y}, declared, noise=cv.SeededNoise(seed), **asked)
        for (low, high), effect in zip(found.interval().values(), (0.3, 0.62), strict=True):
            covered += low <= effect <= high
    assert covered >= 17  # of 20
