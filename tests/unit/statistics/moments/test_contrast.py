"""The comparison of a trial of records as it is: centres, and what `method="trial"` leaves open."""

import json
from fractions import Fraction

import numpy as np
import pytest

import counterveil as cv
from counterveil.data import Table
from counterveil.errors import ParameterError
from counterveil.numerics.columns import arm_totals
from counterveil.privacy import Budget, Proof
from counterveil.privacy.caveats import Caveat, Target
from counterveil.session import Gate, SeededNoise
from counterveil.statistics.moments.trial import plan_of, release, release_share


def trial(n=3000, seed=0, share=0.2):
    rng = np.random.default_rng(seed)
    t = (rng.random(n) < share).astype(int)
    return {"t": t, "y": np.clip(rng.normal(0.3 + 0.35 * t, 0.1, n), 0, 1)}


def study(**extra):
    return cv.Study(**({"treatment": "t", "outcome": "y", "outcome_range": (0, 1), "control": 0} | extra))


ARMS = cv.settings.Trial("none", "arms")


def ask_for(data, declared, **extra):
    given = {"epsilon": 1, "settings": ARMS} | extra
    return cv.ate(data, declared, protects="record", method="trial", **given)


def difference(data):
    """Return the difference and its error, one more event in each arm counted."""
    y, t = data["y"], data["t"] == 1
    one_more = 1 / t.sum() ** 2 + 1 / (~t).sum() ** 2
    return y[t].mean() - y[~t].mean(), np.sqrt(y[t].var() / t.sum() + y[~t].var() / (~t).sum() + one_more)


def test_unequal_arms_with_a_large_effect_need_the_centre_of_both_arms():
    data = trial()
    effect, _ = difference(data)
    table = Table.attach(data, study(randomised=True))
    arms, budget = arm_totals(table.treated, table.outcome), Budget(1)

    def error(centre):
        plan = plan_of(centre, table.rows, budget, "staircase")
        rest = plan, arms, table.outcome_unit, Fraction(1), None, centre
        found = [release(Gate(plan, SeededNoise(s)), *rest).effect for s in range(400)]
        return np.sqrt(np.mean([(float(one) - effect) ** 2 for one in found]))

    assert error("arms") < 0.9 * error("pooled")


def test_a_trial_has_an_interval_and_an_undeclared_study_has_none_for_the_effect():
    data = trial(500)
    for settings in (ARMS, cv.settings.Trial("none", "pooled"), None):
        assert ask_for(data, study(randomised=True), settings=settings).interval_target is None
        assert ask_for(data, study(), settings=settings).interval_target is Target.CONFOUNDED_DIFFERENCE
    loose = ask_for(data, study())
    assert loose.not_covered[0] is Caveat.NOTHING_ADJUSTED
    assert "NO VALID INTERVAL FOR THE EFFECT" in str(loose)
    assert cv.results.Result.from_dict(json.loads(json.dumps(loose.to_dict()))) == loose
    assert loose.guarantee.proof is Proof.FINITE_SAMPLE


def test_a_declared_share_never_lengthens_an_interval():
    for rows, epsilon, low in ((300, 0.5, 0.0), (1000, 4, 0.0), (5000, 1, -4.0), (20_000, 4, -30.0)):
        for seed in range(3):
            data = trial(rows, seed)
            halves = []
            for share in (None, 0.2):
                declared = study(randomised=True, treated_share=share, outcome_range=(low, 1))
                found = ask_for(data, declared, epsilon=epsilon, noise=SeededNoise(seed))
                halves.append(found.uncertainty.half_width(0.95))
            assert halves[1] <= 1.02 * halves[0]


def test_a_declared_share_is_joined_with_the_released_one():
    table = Table.attach(trial(1000), study(randomised=True))
    arms = arm_totals(table.treated, table.outcome)
    exact = Fraction(arms.treated.count, arms.count)

    def found(declared, epsilon):
        plan = plan_of("arms", table.rows, Budget(epsilon), "staircase")
        return release_share(Gate(plan, SeededNoise(1)), arms, declared)

    sharp, _ = found(Fraction(1, 2), 10_000)
    assert float(sharp) == pytest.approx(float(exact), abs=1e-4)
    blurred, variance = found(Fraction(1, 2), Fraction(1, 1000))
    assert float(blurred) == pytest.approx(0.5, abs=1e-2)
    assert variance == pytest.approx(0.25 / 1000, rel=1e-2)
    (_, alone), (_, joined) = found(None, 1), found(Fraction(1, 2), 1)
    assert joined < alone


def test_refusals():
    with pytest.raises(ParameterError, match="CV-P240"):
        ask_for(trial(100), study(), delta=1e-6, mechanism="gaussian")
    with pytest.raises(ParameterError, match="CV-P018"):
        cv.ate(trial(100), study(), protects="outcome", method="trial", epsilon=1)
    with pytest.raises(ParameterError, match="CV-P019"):
        ask_for(trial(100), study(), settings=cv.settings.Matching())
    with pytest.raises(ParameterError, match="CV-P018"):
        cv.ate(trial(100), study(), protects="record", method="difference_in_means", epsilon=1)


@pytest.mark.parametrize(("rows", "centre"), [(300, "pooled"), (600, "arms")])
@pytest.mark.parametrize("delta", [0, "1e-6"])
def test_what_is_left_open_is_chosen_from_public_numbers(rows, centre, delta):
    def ask(settings, **rest):
        return ask_for(
            trial(rows), study(randomised=True), delta=delta, noise=SeededNoise(3), settings=settings, **rest
        )

    named = ask(cv.settings.Trial("none", centre), mechanism="staircase")
    for settings in (None, cv.settings.Trial("none")):
        found = ask(settings)
        assert (found.estimate, found.method) == (named.estimate, named.method)
