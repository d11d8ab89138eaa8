import pytest

import counterveil as cv
from counterveil.data import Table
from counterveil.estimators.ate.doubly_robust_releases import Records
from counterveil.estimators.groups.clip import clip_without_histogram
from counterveil.estimators.groups.scores import ArmScore, PlainScore
from counterveil.kernels.record_features import FeatureMap


@pytest.fixture
def records():
    study = cv.Study(
        treatment="t", outcome="y", outcome_range=(0, 1), covariates={"x": cv.Range(0, 1)}, control=0
    )
    frame = {"t": [0, 1, 0, 1], "y": [0, 1, 0, 0], "x": [0.1, 0.2, 0.3, 0.4]}
    return Records(Table.attach(frame, study), FeatureMap(()))


@pytest.mark.parametrize(("mean", "whole"), [(-0.94, True), (0.94, True), (0.0, False), (-0.6, False)])
def test_without_a_histogram_a_rare_outcome_is_not_clipped(records, mean, whole):
    # Outcomes in {-1, 1} around this mean where it is near an end, narrow ones elsewhere.
    square = 1.0 if whole else mean**2 + 0.05
    for score in (PlainScore(records, 0.5, mean, 0.0, square), ArmScore(records, mean, square)):
        clip = clip_without_histogram(score)
        assert (clip.size == score.reach) is whole
        assert clip.size <= score.reach
