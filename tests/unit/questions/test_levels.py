"""The level of treatment and outcome: what answers at it say, and what has no form for it."""

import numpy as np
import pytest

import counterveil as cv

PAIR = "treatment and outcome"
RNG = np.random.default_rng(3)
ROWS = 600
DATA = {
    "arm": RNG.permutation([0, 1] * (ROWS // 2)),
    "y": RNG.uniform(size=ROWS),
    "z": RNG.uniform(size=ROWS),
    "age": RNG.uniform(20, 80, ROWS),
    "id": np.arange(ROWS),
    "site": np.arange(ROWS) % 20,
    "third": np.arange(ROWS) % 3,
}
AGE = {"age": cv.Range(20, 80)}
TRIAL = cv.Study("arm", "y", (0, 1), AGE, randomised=True)


def answer(**more):
    return cv.ate(DATA, TRIAL, protects=PAIR, epsilon=2, **more)


@pytest.fixture(scope="module")
def found():
    return answer()


def test_an_answer_says_what_is_protected_and_what_is_public(found):
    said = found.guarantee.sentence()
    assert "differ in the treatment and the outcome of one row" in said
    assert "for the treatment and outcome of one row" in " ".join(str(found).split())
    told = " ".join(found.guarantee.public)
    assert "who took part, with all covariates" in told
    assert "the treatment 'arm' is protected" in told
    report = found.write_up()
    assert "treatment" in report
    assert found.to_dict()["guarantee"]["adjacency"] == "change-treatment-and-outcome-of-one-row"


def test_two_answers_are_pooled_and_keep_their_level(found):
    pooled = cv.pool([found, answer()])
    assert pooled.guarantee.unit.value == PAIR


OTHERS = {
    "event_study": (cv.Study("arm", "y", (0, 1), AGE, before=("z", "third")), {}),
    "moments": (TRIAL, {}),
    "outcomes": (cv.Study("arm", outcomes={"y": (0, 1), "z": (0, 1)}, randomised=True), {}),
    "overlap": (TRIAL, {}),
    "survival": (cv.Study("arm", outcome="age", event="site", horizon=50, randomised=True), {}),
}


@pytest.mark.parametrize("name", OTHERS)
def test_other_questions_are_refused_before_a_row_is_read(name):
    study, more = OTHERS[name]
    with pytest.raises(cv.CounterveilError, match=r"CV-P018") as error:
        getattr(cv, name)(None, study, protects=PAIR, epsilon=1, **more)
    assert name in error.value.got
    assert "counterveil.ate" in error.value.expected


@pytest.mark.parametrize(
    "more",
    [
        {"person": "id"},
        {"cluster": "site"},
        {"cluster": "site", "protects_cluster": True},
        {"before": "z"},
        {"denominator": "z", "denominator_range": (0, 1)},
        {"where": "arm == 1"},
    ],
)
def test_studies_without_a_form_are_refused_before_a_row_is_read(more):
    study = cv.Study("arm", "y", (0, 1), AGE, randomised=True, **more)
    with pytest.raises(cv.CounterveilError, match="CV-P018") as error:
        cv.ate(None, study, protects=PAIR, epsilon=1)
    assert next(iter(more)) in error.value.got


@pytest.mark.parametrize(
    ("more", "code"),
    [
        ({"trim": 0.1}, "CV-P668"),
        ({"method": "weighting"}, "CV-P018"),
        ({"measure": "ratio", "estimand": "ATT"}, "CV-P687"),
        ({"settings": cv.settings.Auto(kappa=0.25)}, "CV-P019"),
        ({"method": "trial", "settings": cv.settings.Trial("none")}, "CV-P019"),
    ],
)
def test_what_the_level_does_not_have_is_refused(more, code):
    with pytest.raises(cv.CounterveilError, match=code):
        cv.ate(None, TRIAL, protects=PAIR, epsilon=1, **more)


def test_a_session_knows_what_is_left_for_it():
    with cv.Session(DATA, TRIAL, budget=cv.Budget(3)) as session:
        session.ate(protects=PAIR, epsilon=1)
        assert session.remaining(PAIR).epsilon == session.remaining("outcome").epsilon == 2
        assert session.account().record_spent.epsilon == 0
