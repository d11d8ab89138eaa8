"""Everything is left to the value: intervals are for the largest variance there can be, and some refuse."""

import numpy as np
import pytest

import counterveil as cv
from counterveil.errors import CounterveilError

ALONE = cv.settings.DifferenceInMeans(variance_share=0)
RNG = np.random.default_rng(5)
T = np.tile([0, 0, 1, 0, 1], 24)
DATA = {
    "t": T,
    "y": np.round(RNG.uniform(-3, 5, 120), 3),
    "z": np.round(RNG.uniform(0, 2, 120), 3),
    "before": RNG.uniform(-3, 5, 120),
    "earlier": RNG.uniform(-3, 5, 120),
    "site": np.where(np.arange(120) % 2, "a", "b"),
    "school": np.arange(120) // 5,
    "x": RNG.normal(size=120),
}
TRIAL = {"control": 0, "randomised": True}
ARMS = {"arms": (0, 1, 2), "reference": 0, "randomised": True}
ASKED = {"protects": "outcome", "epsilon": 8, "method": "difference_in_means"}


def ask(question, study, settings=ALONE, **more):
    return question(DATA, study, **ASKED, settings=settings, noise=cv.SeededNoise(2), **more)


@pytest.mark.parametrize(
    ("question", "study", "more"),
    [
        (
            cv.groups,
            cv.Study("t", "y", (-3, 5), {"site": cv.Categories(("a", "b"))}, **TRIAL),
            {"by": "site"},
        ),
        (cv.outcomes, cv.Study("t", outcomes={"y": (-3, 5), "z": (0, 2)}, **TRIAL), {}),
        (cv.event_study, cv.Study("t", "y", (-3, 5), before=("earlier", "before"), **TRIAL), {}),
    ],
)
def test_questions_by_means_spend_everything_on_the_values(question, study, more):
    usual, alone = (ask(question, study, settings, **more) for settings in (None, ALONE))
    for one, other in zip(usual.table, alone.table, strict=True):
        assert other.std_error.noise < one.std_error.noise
        known = other.known.uncertainty
        assert known.variance_noise is None
        assert known.variance == known.variance_cap


def test_a_clustered_error_is_then_the_largest():
    study = cv.Study("t", "y", (-3, 5), cluster="school", **TRIAL)
    known = ask(cv.ate, study).uncertainty
    assert known.sd_noise is None
    # Every school may lie at one end of the range or at the other.
    weights = np.where(T == 1, 1 / T.sum(), 1 / (120 - T.sum()))
    own = np.bincount(DATA["school"], weights) / 2
    assert known.variance == known.variance_cap == pytest.approx(64 * float(own @ own))
    assert known.noise.epsilon == 8


@pytest.mark.parametrize(
    ("question", "study", "code"),
    [
        (cv.arms, cv.Study("t", "y", (-3, 5), **ARMS), "CV-P019"),
        (cv.outcomes, cv.Study("t", outcomes={"y": (-3, 5), "z": (0, 2)}, **ARMS), "CV-P019"),
        (cv.ate, cv.Study("t", "y", (0, 5), denominator="z", denominator_range=(1, 2), **TRIAL), "CV-P673"),
    ],
)
def test_questions_without_such_an_interval_refuse_it(question, study, code):
    with pytest.raises(CounterveilError, match=code):
        ask(question, study)
