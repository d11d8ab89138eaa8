"""Effects of groups where treatment and outcome are private and covariates, therefore groups, are public."""

import numpy as np
import pytest
from tests.unit.estimators.pairs.test_effect import LEVEL, people, study

import counterveil as cv
from counterveil.privacy import Budget, Unit
from counterveil.session import drafted_access_policy

BY = {"x0": (-0.5, 0.5)}


def ask(data, declared, **more):
    words = {"protects": LEVEL, "epsilon": 4, "delta": "1e-6", "noise": cv.SeededNoise(7), "by": BY} | more
    return cv.groups(data, declared, **words)


@pytest.mark.parametrize("delta", ["0", "1e-6"])
@pytest.mark.parametrize("events", [False, True], ids=["numbers", "events"])
def test_every_group_is_answered_around_the_truth(events, delta):
    data = people(events=events)
    found = ask(data, study(events), delta=delta)
    sizes = [
        int(((data["x0"] >= low) & (data["x0"] < high)).sum())
        for low, high in ((-1, -0.5), (-0.5, 0.5), (0.5, 1))
    ]
    assert [one.size for one in found.groups] == sizes
    assert {one.size_sd for one in found.groups} == {0.0}
    for one in found.groups:
        low, high = one.interval(simultaneous=True)
        assert low < 0.1 < high
        assert low < one.interval()[0] < one.interval()[1] < high < low + 0.4
    assert found.guarantee.unit is Unit.TREATMENT_AND_OUTCOME
    assert "numbers of people are public" in str(found)
    assert type(found).from_dict(found.to_dict()).interval() == found.interval()


def test_groups_cost_what_one_effect_does_and_are_charged_once():
    data, declared = people(), study()
    with cv.open_ledger(":memory:") as ledger:
        ledger.register(
            "people",
            Budget(5, "1e-5"),
            access_policy=drafted_access_policy(declared, Unit.TREATMENT_AND_OUTCOME),
        )
        words = {"ledger": ledger, "request_id": "one", "noise": None}
        first, again = ask(data, declared, **words), ask(data, declared, **words)
        assert first.interval() == again.interval()
        assert ledger.account("people").spent.epsilon == 4


def test_small_groups_are_left_out_whatever_treatments_are():
    data = people(1200)
    data["x0"][:20], data["x0"][20:] = 0.95, np.minimum(data["x0"][20:], 0.8)
    for columns in (data, data | {"t": 1 - data["t"], "y": np.zeros(1200)}):
        assert ask(columns, study(), by={"x0": (0, 0.9)}).left_out == ("x0 in [0.9, 1]",)
    with pytest.raises(cv.CounterveilError, match="CV-S110"):
        ask(people(40), study(), by={"x0": (-0.5, 0, 0.5)})


@pytest.mark.parametrize(
    ("more", "code"),
    [
        ({"method": "arms"}, "CV-P016"),
        ({"mechanism": "laplace"}, "CV-P010"),
        ({"settings": cv.settings.Groups()}, "CV-P019"),
    ],
)
def test_what_the_level_does_not_have_is_refused(more, code):
    with pytest.raises(cv.CounterveilError, match=code):
        ask(None, study(), **more)
    with pytest.raises(cv.CounterveilError, match="CV-P018"):
        ask(None, study(cluster="school"))
