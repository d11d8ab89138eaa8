"""Intervals ran inside the reservation: where they failed, the budget was gone and no answer was kept."""

import numpy as np
import pytest

import counterveil as cv
from counterveil.inference import uncertainty
from counterveil.session import SeededNoise

ROWS = 60
STUDY = cv.Study(
    treatment="t",
    outcome="y",
    outcome_range=(0, 1),
    covariates={"a": cv.Range(0, 1), "b": cv.Binary()},
    control=0,
    randomised=True,
)
ASKED = {
    "difference in means": lambda session, **rest: session.ate(
        protects="outcome", method="difference_in_means", **rest
    ),
    "trial": lambda session, **rest: session.ate(protects="record", method="trial", **rest),
    "matching": lambda session, **rest: session.ate(protects="outcome", method="matching", **rest),
    "groups": lambda session, **rest: session.groups(protects="outcome", by="b", **rest),
}


def people():
    draw = np.random.default_rng(0)
    t = np.arange(ROWS) % 2
    return {"a": draw.random(ROWS), "b": draw.integers(0, 2, ROWS), "t": t, "y": draw.random(ROWS)}


@pytest.mark.parametrize("failure", [MemoryError, KeyboardInterrupt, ZeroDivisionError])
@pytest.mark.parametrize("asked", ASKED.values(), ids=ASKED)
def test_an_answer_is_kept_before_any_interval_is_computed(asked, failure, monkeypatch):
    def fail(*_):
        raise failure

    with cv.Session(people(), STUDY, budget=cv.Budget(1), noise=SeededNoise(1)) as session:
        with monkeypatch.context() as broken:
            for name in ("half_width", "tail", "inflation"):
                broken.setattr(uncertainty, name, fail)
            with pytest.raises(failure):
                asked(session, epsilon=1, request_id="once").to_dict()
        again = asked(session, epsilon=1, request_id="once")
        assert session.account().spent.epsilon == 1
        assert session.account().requests == 1
        assert again.to_dict() == asked(session, epsilon=1, request_id="once").to_dict()
