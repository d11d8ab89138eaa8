"""Rivals agree with what they estimate where noise is small, and the catalogue says what is true of them."""

import numpy as np
import pytest

from counterveil.errors import MissingExtraError
from counterveil_lab.attacks.refuted import GALLERY
from counterveil_lab.reproduce.rivals import environment, measuring, plain
from counterveil_lab.reproduce.rivals.catalogue import RIVALS, TESTS
from counterveil_lab.reproduce.rivals.measuring import run
from counterveil_lab.reproduce.rivals.ours import matched_effect
from counterveil_lab.reproduce.rivals.protocol import Answer, Budget, Records

# Noise is a hundred-thousandth of what it is at epsilon 1.
HUGE = Budget(1e5, 1e-6)


def people(rows=600, seed=0, yes_or_no=False):
    rng = np.random.default_rng(seed)
    x = np.column_stack([rng.integers(0, 2, rows), rng.uniform(-1, 1, rows), rng.integers(0, 3, rows)])
    index = x @ np.array([0.5, 1.0, 0.3])
    treated = rng.random(rows) < 1 / (1 + np.exp(0.5 - index))
    y = index + treated + rng.normal(0, 0.5, rows)
    if yes_or_no:
        return Records(x, rng.random(rows) < 0.5, (y > 1).astype(float), ((0, 1), (-1, 1), (0, 2)), (0, 1))
    values = ((0.0, 1.0), None, (0.0, 1.0, 2.0))
    return Records(x.astype(float), treated, y, ((0, 1), (-1, 1), (0, 2)), (-3, 5), values)


TARGETS = {
    "difference in means, Laplace": plain.difference,
    "OLS, Laplace": plain.ols,
    "OLS, noisy Gram": plain.ols,
    "ours, difference in means (outcome)": plain.difference,
    "ours, difference in means, value alone (outcome)": plain.difference,
    "IPW, Laplace": plain.aipw,
    "PrivSyn": plain.aipw,
    "k-anonymity, Mondrian": plain.aipw,
}
# Weighting, records in bins and groups of ten are other estimators of the same effect.
NEAR = {"IPW, Laplace": 0.05, "PrivSyn": 0.15, "k-anonymity, Mondrian": 0.15}


@pytest.mark.parametrize("name", TARGETS)
def test_a_rival_is_at_its_target_where_the_budget_is_huge(name):
    records = people()
    rival = RIVALS[name]
    budget = Budget(HUGE.epsilon, 0.0) if rival.delta == "none" else HUGE
    if rival.ours:
        budget = Budget(1000.0, 0.0)
    found = rival.estimate(records, budget, 1).value
    assert found == pytest.approx(TARGETS[name](records, budget, 1).value, abs=NEAR.get(name, 0.01))


@pytest.mark.parametrize("name", ["SmoothDPM", "GlobalDPM"])
def test_matching_in_strata_is_at_its_target_where_the_budget_is_huge(name):
    records = people()
    found = RIVALS[name].estimate(records, HUGE, 1).value
    assert found == pytest.approx(matched_effect(records), abs=0.01)
    assert 0.5 < found < 1.5


def test_dpci_is_the_doubly_robust_effect_where_the_budget_is_huge():
    records = people()
    found = RIVALS["DPCI"].estimate(records, HUGE, 1).value
    assert found == pytest.approx(plain.aipw(records, HUGE, 1).value, abs=0.02)


def test_seeds_repeat_an_answer_and_others_do_not():
    records = people()
    rival = RIVALS["OLS, noisy Gram"]
    assert rival.estimate(records, Budget(1.0, 1e-6), 3) == rival.estimate(records, Budget(1.0, 1e-6), 3)
    assert rival.estimate(records, Budget(1.0, 1e-6), 3) != rival.estimate(records, Budget(1.0, 1e-6), 4)


def test_refuted_claims_name_an_entry_of_the_gallery_or_a_counterexample():
    for rival in RIVALS.values():
        assert rival.why
        if rival.gallery is not None:
            assert rival.gallery in GALLERY
            assert rival.claim == "refuted"
    assert [one.name for one in RIVALS.values() if one.claim == "refuted" and one.gallery is None] == [
        "GlobalDPM"
    ]


def test_rivals_without_their_environment_say_how_to_make_it(tmp_path, monkeypatch):
    monkeypatch.setenv(environment.VARIABLE, str(tmp_path))
    apart = [one for one in RIVALS.values() if one.apart]
    assert {"AIM", "MST", "DP-EBM, T-learner", "DoubleML, not private"} <= {one.name for one in apart}
    assert all(environment.COMMAND in (environment.unavailable(one) or "") for one in apart)
    assert environment.unavailable(RIVALS["zero"]) is None
    with pytest.raises(MissingExtraError, match="CV-E110"):
        environment.Worker()


def test_measuring_has_the_answer_with_memory_and_the_least_of_all_times(monkeypatch):
    clock = iter([0.0, 3.0, 10.0, 11.0, 20.0, 22.0])
    monkeypatch.setattr(measuring, "_used", lambda: next(clock))
    found = run(RIVALS["OLS, not private"], people(), HUGE, 1)
    assert Answer(*found["answer"]) == plain.ols(people(), HUGE, 1)
    assert found["seconds"] == 1.0
    assert found["peak"] > 20
    # Quick ones are repeated until a second is over.
    clock = iter([0.0, 0.5, 1.0, 1.25, 2.0, 2.125, 3.0, 3.25, 4.0])
    found = run(RIVALS["zero"], people(), HUGE, 1)
    assert (found["first"], next(clock, None)) == (0.5, 4.0)
    monkeypatch.undo()
    # A refusal is no answer.
    refused = run(RIVALS["IPW-PP"], people(), Budget(1.0, 0.0), 1)
    assert refused["answer"] is None
    assert "CV-P421" in refused["refused"]


def test_p_values_agree_without_noise_and_see_an_effect():
    null = people(400, yes_or_no=True)
    rng = np.random.default_rng(1)
    y = (rng.random(400) < np.where(null.treated, 0.7, 0.4)).astype(float)
    effect = Records(null.x, null.treated, y, null.covariate_ranges, (0, 1))
    budget = Budget(50.0, 0.0)
    for name, test in TESTS.items():
        assert test(effect, budget, 1) < 0.001, name
        assert test(null, budget, 1) > 0.01, name
    first, second = (test(null, budget, 1) for test in TESTS.values())
    assert first == pytest.approx(second, abs=0.1)
