"""Means of several private arms: answers around the truth, charged once, refused where they have no form."""

import numpy as np
import pytest
from scipy.special import softmax

import counterveil as cv
from counterveil.errors import CounterveilError
from counterveil.privacy import Budget, Unit
from counterveil.session import drafted_access_policy

LEVEL = "treatment and outcome"
EFFECTS = np.array([0.0, 0.1, -0.1])


def people(n=4000, events=False):
    rng = np.random.default_rng(5)
    x = rng.uniform(-1, 1, (n, 2))
    chance = softmax(np.column_stack([np.zeros(n), 0.8 * x[:, 0], -0.6 * x[:, 1]]), axis=1)
    arm = (rng.random((n, 1)) > chance.cumsum(axis=1)).sum(axis=1)
    mean = 0.4 + 0.15 * x[:, 0] + EFFECTS[arm]
    y = rng.random(n) < mean if events else mean + 0.2 * rng.standard_normal(n)
    return {"t": arm, "y": y.astype(float), "a": x[:, 0], "b": x[:, 1]}


def study(bounds=(-1, 2), **more):
    names = {"a": cv.Range(-1, 1), "b": cv.Range(-1, 1)}
    return cv.Study("t", "y", bounds, names, arms=(0, 1, 2), reference=0, **more)


def ask(data, declared, **more):
    words = {"protects": LEVEL, "epsilon": 4, "delta": "1e-6", "noise": cv.SeededNoise(3)} | more
    return cv.arms(data, declared, **words)


@pytest.mark.parametrize("events", [False, True], ids=["numbers", "events"])
@pytest.mark.parametrize("delta", ["0", "1e-6"])
def test_effects_of_all_arms_are_answered_around_the_truth(events, delta):
    found = ask(people(events=events), study((0, 1) if events else (-1, 2)), delta=delta)
    for arm, (low, high) in found.interval().items():
        assert low < EFFECTS[arm] < high < low + 0.12
    assert found.guarantee.unit is Unit.TREATMENT_AND_OUTCOME
    assert found.assumptions is not None
    assert len(found.releases) == (2 if events else 4)
    assert all(mean.size is None for mean in found.means)
    again = type(found).from_dict(found.to_dict())
    assert again.interval() == found.interval()


def test_contrasts_hold_the_errors_of_models_of_both_means():
    found = ask(people(), study())
    reference, one = (mean.known.uncertainty for mean in found.means[:2])
    both = found.table[0].known.uncertainty
    assert both.extra == one.extra + reference.extra > 0
    assert both.bias == one.bias + reference.bias


def test_one_request_is_charged_once_for_all_arms():
    data, declared = people(), study()
    access_policy = drafted_access_policy(declared, Unit.TREATMENT_AND_OUTCOME)
    with cv.open_ledger(":memory:") as ledger:
        ledger.register("people", Budget(5, "1e-5"), access_policy=access_policy)
        words = {"ledger": ledger, "request_id": "one", "noise": None}
        first, again = ask(data, declared, **words), ask(data, declared, **words)
        assert first.means == again.means
        assert ledger.account("people").spent.epsilon == 4


def test_a_trial_needs_no_covariates_and_what_has_no_form_is_refused():
    plain = cv.Study("t", "y", (-1, 2), arms=(0, 1, 2), reference=0, randomised=True)
    assert ask(people(), plain).assumptions is None
    with_clusters = study(cluster="school")
    for declared, more, code in (
        (plain.changed(randomised=None), {}, "CV-S051"),
        (study(), {"method": "weighting"}, "CV-P016"),
        (study(), {"settings": cv.settings.Arms()}, "CV-P019"),
        (with_clusters, {}, "CV-P018"),
    ):
        with pytest.raises(CounterveilError) as caught:
            ask(people(100), declared, **more)
        assert caught.value.code == code
