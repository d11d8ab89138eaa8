"""Inverse probability weighting as published: refuted, and of another quantity for the treated."""

import numpy as np
import pytest
from tests.unit.published.test_proved_ipw import STUDY, TRUTH, people, question

import counterveil as cv
from counterveil.data import Table
from counterveil.errors import ClaimError, ParameterError
from counterveil.privacy import Estimand, Proof
from counterveil.published import weighting
from counterveil.session import Gate, SeededNoise


def ask(data=None, **extra):
    given = {"epsilon": 2, "delta": 1e-6, "accept": "unproved", "noise": SeededNoise(1)} | extra
    return cv.published.ipw(people() if data is None else data, STUDY, **given)


def test_it_is_refuted_and_has_to_be_accepted():
    with pytest.raises(ClaimError, match="CV-C001"):
        ask(accept=None)
    accepted = ask(noise=None)
    assert accepted.guarantee.proof is Proof.REFUTED
    assert str(accepted).startswith("*** NO GUARANTEE")
    with pytest.raises(ParameterError, match="CV-P421"):
        ask(delta=0)


def test_it_estimates_another_quantity_for_the_treated(monkeypatch):
    monkeypatch.setattr(weighting, "PENALTY", 0.001)
    data = people(20_000)
    asked = {"epsilon": 300, "delta": 1e-6, "estimand": "ATT", "noise": SeededNoise(1)}
    ours = cv.published.ipw_proved(data, STUDY, **asked).estimate
    theirs = ask(data, **asked).estimate
    # A noisy score and no intercept make the published form crude; its scale is half of the effect.
    assert ours == pytest.approx(TRUTH["ATT"], abs=0.05)
    assert abs(theirs - ours * np.mean(data["t"])) < abs(theirs - ours)


def test_it_loses_more_than_it_claims_where_noise_makes_scores_extreme():
    table = Table.attach(people(100), STUDY)
    asked = question(epsilon=0.2, delta=1e-6)
    plan = weighting.paper_plan(asked)
    parts = (np.arange(50), np.arange(50, 100))
    lost = []
    for seed in range(5):
        gate = Gate(plan, SeededNoise(seed))
        drawn = weighting.release(gate, plan, table, parts, Estimand.ATE)
        lost.append(weighting.lost_delta(asked, drawn))
    assert max(lost) > 0.9


def test_settings_are_refused():
    with pytest.raises(ParameterError, match="CV-P019"):
        ask(settings=cv.settings.Trial())
