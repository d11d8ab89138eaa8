"""Outcomes that few people have: scores are not clipped, with or without a histogram."""

import numpy as np
import pytest
from tests.thinned import thinned_rows

import counterveil as cv
from counterveil.statistics.moments.row_scores import ArmScore, PlainScore
from counterveil.statistics.moments.score_cells import chosen_clip, edges_of


@pytest.mark.parametrize(("mean", "few"), [(-0.94, True), (0.94, True), (0.0, False), (-0.6, False)])
def test_scores_know_whether_few_people_carry_the_outcome(mean, few):
    # Outcomes in {-1, 1} around this mean where it is near an end, narrow ones elsewhere.
    square = 1.0 if few else mean**2 + 0.05
    for score in (PlainScore(0.5, mean, 0.0, square), ArmScore(mean, square)):
        assert score.crowded is few


@pytest.mark.parametrize(
    ("method", "epsilon"),
    thinned_rows([("arms", 0.5), ("arms", 2), ("scores", 0.5), ("scores", 2)], ("arms", 0.5), ("scores", 2)),
)
def test_effects_on_a_rare_outcome_are_covered(method, epsilon):
    declared = cv.Study(
        treatment="t",
        outcome="y",
        outcome_range=(0, 1),
        covariates={"g": cv.Categories(["a", "b"])},
        control=0,
        randomised=True,
        treated_share=0.5,
    )
    covered = 0
    for seed in range(30):
        generator = np.random.default_rng(seed)
        t = generator.integers(0, 2, 20_000)
        y = (generator.random(20_000) < np.where(t == 1, 0.008, 0.002)).astype(int)
        frame = {"t": t, "y": y, "g": generator.choice(["a", "b"], 20_000).tolist()}
        found = cv.groups(
            frame,
            declared,
            by=["g"],
            protects="record",
            epsilon=epsilon,
            delta=1e-6,
            method=method,
            noise=cv.SeededNoise(seed),
        )
        covered += sum(low <= 0.006 <= high for low, high in found.interval().values())
    assert covered >= 53  # of 60; 57 expected


def test_one_cell_alone_still_has_a_width():
    # All scores in the innermost cell: its width says how far they may spread.
    edges = edges_of(4.0)
    ends = np.concatenate([[edges[0] * 2**0.5], edges, [edges[-1] * 2**0.5]])
    middles = (ends[1:] + ends[:-1]) / 2
    counts = np.zeros(len(middles))
    counts[len(counts) // 2] = 10_000.0
    clip = chosen_clip(middles, counts, 20.0, 10_000, 2, 30.0)
    assert clip.centre == 0
    assert 0 < clip.size < 0.1
