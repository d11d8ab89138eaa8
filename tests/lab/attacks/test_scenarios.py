"""Replay over several questions finds nothing, and finds faults that an attack once found, planted again."""

import pytest

from counterveil.accounting import accounts, ledger
from counterveil_lab.attacks.command import examine
from counterveil_lab.attacks.gallery import SCENARIOS


@pytest.mark.parametrize("name", SCENARIOS)
def test_nothing_differs_and_without_the_rule_something_does(name):
    found = examine(SCENARIOS[name])
    assert found.report.passed, str(found.report)
    assert found.report.rows[0].ours.found == 0 < found.report.rows[0].weakened.found


def without_access_policies(monkeypatch):
    for module in (accounts, ledger):
        monkeypatch.setattr(module, "check_study", lambda *_, **__: None)


def test_an_account_that_is_bound_to_no_study_shows_what_it_protected(monkeypatch):
    """Finding B4: a second study made the outcome of the first a covariate, and its groups were counted."""
    without_access_policies(monkeypatch)
    found = examine(SCENARIOS["account/two studies"])
    assert found.verdict.value == "violated"
    assert "relapse" in found.report.rows[0].ours.witness
