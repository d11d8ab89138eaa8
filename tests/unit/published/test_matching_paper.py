"""Matching where only outcomes are private: the published form."""

import json

import numpy as np
import pytest
from tests.unit.statistics.linear.matching_data import DATA

import counterveil as cv
from counterveil.errors import BudgetError, ClaimError, ParameterError
from counterveil.privacy import Proof


def ask(**more):
    given = {"epsilon": 1, "noise": cv.SeededNoise(1)} | more
    return cv.published.outcome_matching(dict(DATA.frame), DATA.study, **given)


def test_the_published_form_is_proved_where_nobody_runs_out():
    result = ask(noise=None)
    assert result.guarantee.proof is Proof.FINITE_SAMPLE
    assert "suffices" in result.guarantee.remarks[0]
    assert result.uncertainty.noise.name == "laplace_pair"
    k = [result.details[f"max_uses_{arm}"] / 5 for arm in ("treated", "control")]
    scales = sorted(5 * (part + 1) / 1000 for part in k)
    noise = result.uncertainty.noise
    assert [float(noise.narrow), float(noise.scale)] == pytest.approx(scales, rel=1e-8)
    assert cv.results.Result.from_dict(json.loads(json.dumps(result.to_dict()))) == result


def lopsided():
    """A study in which the smaller arm runs out under a limit of one."""
    rng = np.random.default_rng(1)
    x = rng.random(60)
    t = np.zeros(60, int)
    t[:12] = 1
    return {"t": t, "y": rng.random(60), "x": x}, cv.Study("t", "y", (0, 1), {"x": cv.Range(0, 1)})


def test_a_false_claim_needs_acceptance_names_the_true_epsilon_and_charges_it():
    frame, study = lopsided()
    arguments = {"epsilon": 1, "settings": cv.settings.Matching(limit=1, neighbours=3)}
    asked = cv.published.outcome_matching
    with cv.Session(frame, study, budget=cv.Budget(10)) as session:
        with pytest.raises(ClaimError, match="CV-C001"):
            asked(session, **arguments)
        assert session.remaining().epsilon == 10
        result = asked(session, **arguments, accept="unproved")
        assert session.remaining().epsilon == 10 - result.spent.epsilon
    true = result.details["true_epsilon"]
    assert true > 1.5
    assert float(result.spent.epsilon) == pytest.approx(true)
    assert result.guarantee.proof is Proof.REFUTED
    assert str(result).startswith("*** NO GUARANTEE")
    assert f"{true:.4g}" in result.guarantee.remarks[0]
    assert result.guarantee.epsilon == 1
    with cv.Session(frame, study, budget=cv.Budget(1)) as session, pytest.raises(BudgetError):
        asked(session, **arguments, accept="unproved")
    alone = asked(frame, study, **arguments, accept="unproved")
    assert alone.spent == result.spent


@pytest.mark.parametrize(
    ("wrong", "code"),
    [
        ({"settings": cv.settings.Matching(limit="best")}, "CV-P202"),
        ({"settings": cv.settings.Matching(limit=None)}, "CV-P202"),
        ({"estimand": "ATT"}, "CV-P203"),
        ({"delta": 1e-6}, "CV-P203"),
    ],
)
def test_the_published_form_refuses_what_it_does_not_have(wrong, code):
    with pytest.raises(ParameterError, match=code):
        ask(**wrong)
