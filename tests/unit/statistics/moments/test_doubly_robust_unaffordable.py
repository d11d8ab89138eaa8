"""The orthogonal private effect where rows or budget are few: refusals, declared bounds, what public numbers save."""

import json

import numpy as np
import pytest
from tests.unit.statistics.moments.robust_data import DELTA, EFFECT, ask, columns, covered, least_squares

import counterveil as cv
from counterveil.datasets import synth
from counterveil.errors import ParameterError
from counterveil.privacy.caveats import ConfoundingBeyond, LinearScores, NotAdjusted


def test_an_unaffordable_adjustment_is_refused_and_nothing_is_spent():
    data = synth(1, 1000)
    with cv.Session(data.frame, data.study, budget=cv.Budget(3, DELTA)) as session:
        with pytest.raises(ParameterError, match="too small to adjust") as refusal:
            session.ate(protects="record", epsilon=1, delta=DELTA, method="doubly_robust")
        assert refusal.value.code == "CV-P404"
        assert session.remaining().epsilon == 3
    assert "rows" in str(refusal.value)


def test_a_declared_bound_buys_an_unadjusted_answer_that_says_so_first():
    data = synth(1, 1000)
    settings = cv.settings.DoublyRobust(fallback="unadjusted", kappa=0.25)
    result = ask(data, epsilon=1, settings=settings)
    assert result.details["adjusted"] is False
    assert str(result).splitlines()[1].startswith("*** NOT ADJUSTED: adjusted=False")
    assert result.condition == NotAdjusted(0.25)
    assert result.not_covered[0] == ConfoundingBeyond(0.25)
    low, high = result.interval()
    assert high - low > 2 * result.details["confounding_bound"]
    assert low <= EFFECT <= high
    narrower = ask(data, epsilon=1, settings=cv.settings.DoublyRobust(fallback="unadjusted", kappa=0.05))
    ends = narrower.interval()
    assert ends[1] - ends[0] < high - low
    again = type(result).from_dict(json.loads(json.dumps(result.to_dict())))
    assert again == result


def test_a_hopeless_adjustment_falls_back_only_where_a_bound_was_declared():
    data = synth(1, 1100)
    tight = cv.settings.DoublyRobust(kappa=0.01)
    fallen = ask(data, seed=2, epsilon="1.6", settings=tight)
    assert fallen.details["adjusted"] is False
    assert fallen.condition is not None
    assert "adjusted=False" in str(fallen).splitlines()[1]
    kept = ask(data, seed=2, epsilon="1.6")
    assert kept.details["adjusted"] is True
    assert kept.condition is None
    assert kept.assumes == LinearScores(inverse=False, squares=False, products=False)
    # A loose bound is no reason to leave covariates out.
    loose = ask(data, seed=2, epsilon="1.6", settings=cv.settings.DoublyRobust(kappa=0.5))
    assert loose.caution == kept.caution


def test_public_correlations_lower_the_price():
    data = synth(3, 1500)
    identity = tuple(tuple(row) for row in np.eye(20))
    known = cv.settings.DoublyRobust(covariance=identity)
    located = cv.settings.DoublyRobust(covariance=identity, means=(0.5,) * 20, sds=(12**-0.5,) * 20)
    with pytest.raises(ParameterError, match="too small to adjust"):
        ask(data, epsilon=1)
    widths = []
    for settings in (known, located):
        found = [ask(data, seed, epsilon=1, settings=settings) for seed in range(6)]
        widths.append(np.median([np.diff(one.interval())[0] for one in found]))
        assert covered(found, least_squares(*columns(data))[0]) >= 5
    assert widths[1] < widths[0]
    with pytest.raises(ParameterError, match="CV-P403"):
        ask(data, settings=cv.settings.DoublyRobust(covariance=np.eye(19)))
