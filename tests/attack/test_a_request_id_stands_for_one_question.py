"""Finding B8: a request id that comes back with another learner, rule or model is refused."""

import threading

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression, Ridge

import counterveil as cv

RNG = np.random.default_rng(8)
TREATED = RNG.permutation([0, 1] * 100)
DATA = {
    "treated": TREATED,
    "relapse": RNG.binomial(1, 0.4 - 0.1 * TREATED).astype(float),
    "age": RNG.uniform(20, 80, 200),
}
STUDY = cv.Study("treated", cv.Outcome("relapse", (0, 1)), {"age": cv.Range(18, 90)}, assignment=cv.Trial())
GLOBAL = 0.25


def other_request():
    return pytest.raises(cv.CounterveilError, match="CV-L007")


@pytest.fixture
def session():
    with cv.Session(DATA, STUDY, budget=cv.Budget(100, "1e-3")) as opened:
        yield opened


def effect(session, learner):
    settings = cv.settings.Folds(learner=learner, folds=5)
    asked = {"protects": "record", "epsilon": 1, "method": "sample_and_aggregate", "request_id": "one"}
    return session.ate(**asked, settings=settings)


def constant(value):
    return lambda _x, _t, _y: value


def test_two_lambdas_are_two_requests(session):
    first = effect(session, lambda _x, _t, _y: 0.1)
    with other_request():
        effect(session, lambda _x, _t, _y: 0.2)
    assert effect(session, lambda _x, _t, _y: 0.1).estimate == first.estimate


def test_two_closures_are_two_requests(session):
    effect(session, constant(0.1))
    with other_request():
        effect(session, constant(0.2))
    assert effect(session, constant(0.1))


def test_two_values_of_a_global_are_two_requests(session, monkeypatch):
    effect(session, lambda _x, _t, _y: GLOBAL)
    monkeypatch.setitem(globals(), "GLOBAL", 0.5)
    with other_request():
        effect(session, lambda _x, _t, _y: GLOBAL)


def test_two_penalties_are_two_requests(session):
    def asked(alpha):
        own = cv.settings.Folds(
            learner=cv.settings.ModelPair(Ridge(alpha=alpha), LogisticRegression()), folds=5
        )
        return session.ate(
            protects="record", epsilon=1, method="sample_and_aggregate", settings=own, request_id="one"
        )

    first = asked(1.0)
    with other_request():
        asked(50.0)
    assert asked(1.0).estimate == first.estimate


def test_two_rules_are_two_requests(session):
    def asked(rule):
        return session.policy_value(policy=rule, protects="record", epsilon=1, request_id="one")

    asked(lambda row: row["age"] > 40)
    with other_request():
        asked(lambda row: row["age"] > 60)


class Slope:
    def __init__(self, slope):
        self.slope = slope

    def effect(self, columns):
        return self.slope * np.asarray(columns["age"])


def test_two_models_of_one_class_are_two_requests(session):
    def asked(slope):
        return session.targeting_curve(
            model=Slope(slope), thresholds=(0.2,), protects="record", epsilon=1, request_id="one"
        )

    asked(0.01)
    with other_request():
        asked(-0.01)


def test_an_accepted_form_is_another_request_than_a_proved_one(session):
    # Limits that leave enough room: the published claim is true, so that the form runs either way.
    asked = {"epsilon": 1, "request_id": "one", "settings": cv.settings.Matching(neighbours=1, limit=20)}
    session.ate(protects="outcome", method="matching", **asked)
    for accept in (None, "unproved"):
        with other_request():
            cv.published.outcome_matching(session, **asked, accept=accept)
    asked["request_id"] = "two"
    cv.published.outcome_matching(session, **asked)
    with other_request():
        cv.published.outcome_matching(session, **asked, accept="unproved")


class Locked:
    """Can be copied by its own rule, but not taken apart."""

    def __init__(self):
        self.lock = threading.Lock()

    def __deepcopy__(self, memo):
        return self

    def __call__(self, _x, _t, _y):
        return 0.1


def test_what_cannot_be_identified_gets_no_request_id(session):
    with pytest.raises(cv.CounterveilError, match="CV-C010"):
        effect(session, Locked())
    settings = cv.settings.Folds(learner=Locked(), folds=5)
    assert session.ate(protects="record", epsilon=1, method="sample_and_aggregate", settings=settings)
