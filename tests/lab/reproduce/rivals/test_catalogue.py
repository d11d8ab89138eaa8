"""Rivals agree with what they estimate where noise is small, and the catalogue says what is true of them."""

import numpy as np
import pytest

from counterveil.errors import MissingExtraError
from counterveil_lab.attacks.gallery import GALLERY
from counterveil_lab.reproduce.rivals import environment, simple
from counterveil_lab.reproduce.rivals.catalogue import RIVALS
from counterveil_lab.reproduce.rivals.encoding import Budget, Records
from counterveil_lab.reproduce.rivals.ours import matched_effect

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
    "difference in means, Laplace": simple.difference,
    "OLS, Laplace": simple.ols,
    "OLS, noisy Gram": simple.ols,
    "ours, difference in means (outcome)": simple.difference,
    "ours, difference in means, value alone (outcome)": simple.difference,
    "IPW, Laplace": simple.aipw,
    "PrivSyn": simple.aipw,
    "k-anonymity, Mondrian": simple.aipw,
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
    assert found == pytest.approx(simple.aipw(records, HUGE, 1).value, abs=0.02)


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
