"""Outcomes that crowd at an end of their declared range: what a released histogram says of them, in the answer."""

import json

import numpy as np
import pytest

import counterveil as cv
from counterveil.estimators.histogram import outcomes_at_ends
from counterveil.privacy.caveats import CROWDED, Caveat, OutcomesAtEnds, read_fact, written
from counterveil.report.caveats import fact_words


def people(rows, most, seed=0):
    """Return people whose outcomes, around 10 with a standard deviation of 3, are declared to lie in (0, `most`)."""
    source = np.random.default_rng(seed)
    x, t = source.uniform(0, 1, rows), source.permutation(rows) % 2
    y = np.clip(10 + x + t + source.normal(0, 3, rows), 0, None)
    study = cv.Study("t", cv.Outcome("y", (0, most)), {"x": cv.Range(0, 1)}, assignment=cv.Trial())
    return {"t": t, "y": y, "x": x}, study, float((y > most).mean())


WAYS = {
    "record": {"protects": "record", "method": "doubly_robust", "epsilon": 3, "delta": 1e-6},
    "record, pure": {"protects": "record", "method": "doubly_robust", "epsilon": 6},
    "pairs": {"protects": "treatment and outcome", "epsilon": 2},
    "outcome": {
        "protects": "outcome",
        "method": "difference_in_means",
        "epsilon": 2,
        "settings": cv.settings.DifferenceInMeans(find_range=True),
    },
}


def said_of(way, most):
    data, study, beyond = people(6000, most)
    found = cv.ate(data, study, noise=cv.SeededNoise(5), **WAYS[way])
    (ends,) = [one for one in found.not_covered if isinstance(one, OutcomesAtEnds)]
    assert Caveat.CLAMPING not in found.not_covered
    return found, ends, beyond


@pytest.mark.parametrize("way", WAYS)
def test_an_answer_says_how_many_outcomes_crowd_at_an_end_that_clips(way):
    found, ends, beyond = said_of(way, 11)
    assert ends.crowded == ("upper",)
    share, low, high = ends.upper
    assert low < share < high
    # Beyond the clamped, cells are narrow beside the spread of outcomes and about even.
    assert beyond > 0.3
    assert abs(share - beyond) < (high - low) / 2 + 2 * ends.part
    assert "OUTCOMES AT THE UPPER END OF THE DECLARED RANGE" in " ".join(str(found).split())
    full = " ".join(found.full().split())
    assert f"{share:.1%} [{low:.1%}, {high:.1%}]" in full
    assert "declare a wider range" in full
    assert type(found).from_dict(json.loads(json.dumps(found.to_dict()))).not_covered == found.not_covered


@pytest.mark.parametrize("way", WAYS)
def test_a_range_that_holds_all_outcomes_is_said_to(way):
    found, ends, _ = said_of(way, 30)
    assert ends.crowded == ()
    assert "clamping of outcomes to the declared range" in " ".join(str(found).split())
    assert "no crowd at its ends was found" in " ".join(found.full().split())


def test_an_answer_without_such_a_histogram_says_that_it_cannot_tell():
    data, study, _ = people(2000, 11)
    found = cv.ate(data, study, protects="outcome", epsilon=1, method="difference_in_means")
    assert Caveat.CLAMPING in found.not_covered
    assert "this answer does not say how many lie at its ends" in " ".join(found.full().split())


def test_a_crowd_has_to_stand_out_of_its_noise():
    counts, rows = np.array([100.0, 90.0, 400.0, 60.0, 350.0]), 1000
    for pure, half in ((False, 1.96 * 2**0.5), (True, 4.113 / 2**0.5)):
        ends = outcomes_at_ends(counts, 20.0, rows, pure)
        assert ends.lower[0] == pytest.approx(0.01)
        assert ends.upper[0] == pytest.approx(0.29)
        assert ends.upper[2] - ends.upper[0] == pytest.approx(half * 20 / rows, rel=1e-3)
        assert ends.part == pytest.approx(0.2)
        assert ends.crowded == ("upper",)
    assert outcomes_at_ends(counts, 200.0, rows, False).crowded == ()
    both = outcomes_at_ends(counts[[4, 3, 2, 1, 2]], 1.0, rows, True)
    assert both.crowded == ("lower", "upper")
    assert "BOTH ENDS" in fact_words(both)
    assert both.lower[1] > CROWDED
    # The interval alone leaves out no crowd, which noise does too often.
    doubtful = OutcomesAtEnds(0.1, (0.03, 0.015, 0.045), (0.0, -0.02, 0.02))
    assert doubtful.crowded == ()
    assert read_fact("not_covered", written(both)) == both


def test_intervals_of_laplace_differences_hold_at_their_level():
    draws = np.random.default_rng(3).laplace(size=(400_000, 2)) @ [1, -1]
    half = outcomes_at_ends(np.zeros(4), 2**0.5, 1, True).lower[2]
    assert half == 1.0  # a share is at most one
    half = 1000 * outcomes_at_ends(np.zeros(4), 2**0.5, 1000, True).lower[2]
    assert (np.abs(draws) > half).mean() == pytest.approx(0.05, abs=0.0015)
