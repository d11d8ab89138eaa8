"""A request id that comes back with another learner, rule or model is refused: a name stands for each of them."""

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


def other_request():
    return pytest.raises(cv.CounterveilError, match="CV-L007")


@pytest.fixture
def session():
    with cv.Session(DATA, STUDY, budget=cv.Budget(100, "1e-3")) as opened:
        yield opened


def effect(session, learner, name, request_id="one"):
    settings = cv.settings.Folds(learner=learner, folds=5, name=name)
    return session.ate(
        protects="record",
        epsilon=1,
        method="sample_and_aggregate",
        settings=settings,
        request_id=request_id,
    )


def constant(_x, _t, _y):
    return 0.1


PAIR = cv.settings.ModelPair(Ridge(alpha=1.0), LogisticRegression())


@pytest.mark.parametrize("learner", [constant, PAIR])
def test_two_names_of_a_learner_are_two_requests(session, learner):
    first = effect(session, learner, "first")
    with other_request():
        effect(session, learner, "second")
    with other_request():
        effect(session, "ols", None)
    again = effect(session, learner, "first")
    assert again.estimate == first.estimate
    assert "first" in again.details["learner"]


def older(limit, name):
    return cv.Policy(name, function=lambda row: row["age"] > limit)


def test_two_names_of_a_rule_are_two_requests(session):
    def asked(rule):
        return session.policy_value(policy=rule, protects="record", epsilon=1, request_id="one")

    first = asked(older(40, "over 40"))
    with other_request():
        asked(older(60, "over 60"))
    assert asked(older(40, "over 40")).over_none.estimate == first.over_none.estimate


class Slope:
    def __init__(self, slope, name=None):
        self.slope = slope
        self.name = name

    def effect(self, columns):
        return self.slope * np.asarray(columns["age"])


def curve(session, model, request_id="one"):
    return session.targeting_curve(
        model=model, thresholds=(0.2,), protects="record", epsilon=1, request_id=request_id
    )


def test_two_names_of_a_model_are_two_requests(session):
    curve(session, Slope(0.01, "rising"))
    with other_request():
        curve(session, Slope(-0.01, "falling"))
    with other_request():
        session.policy_value(
            policy=cv.Policy.from_model(Slope(0.01, "rising")), protects="record", epsilon=1, request_id="one"
        )


UNNAMED = (
    lambda session, request_id: effect(session, constant, None, request_id),
    lambda session, request_id: effect(session, PAIR, None, request_id),
    lambda session, request_id: curve(session, Slope(0.01), request_id),
    lambda session, request_id: session.policy_value(
        policy=cv.Policy.from_model(Slope(0.01)), protects="record", epsilon=1, request_id=request_id
    ),
    *(
        lambda session, request_id, rule=rule: session.policy_value(
            policy=rule, protects="record", epsilon=1, request_id=request_id
        )
        for rule in (lambda row: row["age"] > 40, cv.Policy.of(lambda row: row["age"] > 40))
    ),
)


@pytest.mark.parametrize("ask", UNNAMED)
def test_what_has_no_name_gets_no_request_id_and_spends_nothing(session, ask):
    before = session.account().remaining
    with pytest.raises(cv.CounterveilError, match="CV-C010"):
        ask(session, "one")
    assert session.account().remaining == before
    assert ask(session, None)


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
