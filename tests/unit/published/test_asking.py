"""Published forms are asked of data and a study, or of an open session, whose ledger they charge."""

import inspect

import pytest

import counterveil as cv
from counterveil.datasets import dataset_1, synth
from counterveil.errors import LedgerError, ParameterError, StudyError
from counterveil.privacy import Proof
from counterveil.published.asking import QueryForm

DATA = synth(seed=2, n=400, covariates=3)
# Models of both halves need more rows.
MORE = synth(seed=2, n=8000, covariates=3)
PEOPLE = {"x1": [0.1, 0.9], "x2": [0.5, 0.2]}
QUICK = {"outcome": "linear", "propensity": "logistic"}
FORMS = {name: getattr(cv.published, name) for name in cv.published.__all__ if not name.endswith("Settings")}


def asked(name, form, *source, **more):
    """Return a form's answer; queries and quick learners where effects at points are asked for."""
    given = {"epsilon": 1, "accept": "unproved"} | more
    if isinstance(form, QueryForm):
        search = {"starts": 2, "points": 400} if name == "cate_finite" else {}
        return form(*source, queries=PEOPLE, settings=form.settings(**QUICK, **search), **given)
    return form(*source, delta=0 if "_matching" in name else 1e-6, **given)


@pytest.mark.parametrize("name", [name for name in FORMS if not name.startswith("smooth_matching")])
def test_a_session_gives_the_same_answer_and_its_ledger_is_charged(name):
    form = FORMS[name]
    data = dataset_1(400, 5) if isinstance(form, QueryForm) else MORE if "cross_fit" in name else DATA
    budget, seed = cv.Budget(50, "1e-4"), cv.SeededNoise
    alone = asked(name, form, dict(data.frame), data.study, noise=seed(7))
    with cv.Session(dict(data.frame), data.study, budget=budget, noise=seed(7)) as session:
        answer = asked(name, form, session)
        account = session.account()
    assert answer.to_dict() == alone.to_dict()
    assert account.requests == 1
    assert account.unproved == (0 if name.endswith("_proved") else 1)
    assert account.spent.epsilon >= answer.spent.epsilon


def test_a_session_brings_its_own_study_ledger_and_noise():
    with cv.Session(dict(DATA.frame), DATA.study, budget=cv.Budget(5)) as session:
        for more in ({"study": DATA.study}, {"noise": cv.SeededNoise(1)}, {"dataset": "data"}):
            with pytest.raises(ParameterError) as refused:
                cv.published.record_matching(session, epsilon=1, accept="unproved", **more)
            assert refused.value.code == "CV-P565"
            assert next(iter(more)) in refused.value.got
        assert session.account().requests == 0


@pytest.mark.parametrize("form", [cv.published.ipw, cv.published.cate_finite])
def test_data_need_a_study(form):
    with pytest.raises(StudyError, match="CV-S015"):
        form(dict(DATA.frame), epsilon=1, accept="unproved")


def test_an_access_policy_names_a_published_form_apart_from_the_method(tmp_path):
    access_policy = cv.drafting.AccessPolicy(methods=["ipw", "published.record_matching"], unproved=True)
    with cv.open_ledger(tmp_path / "ledger.db", create=True) as book:
        book.register("people", cv.Budget(50, "1e-4"), access_policy=access_policy)
        given = {"epsilon": 1, "accept": "unproved", "ledger": book}
        with pytest.raises(LedgerError, match="CV-L044"):
            cv.published.ipw(dict(DATA.frame), DATA.study, delta=1e-6, **given)
        found = cv.published.record_matching(dict(DATA.frame), DATA.study, **given)
        assert found.guarantee.proof is Proof.REFUTED
        assert book.account("people").unproved == 1


def test_core_questions_have_no_way_to_a_published_form():
    for question in (cv.ate, cv.cate, cv.Session.ate, cv.Session.cate, cv.plan):
        assert not {"variant", "accept"} & set(inspect.signature(question).parameters)
