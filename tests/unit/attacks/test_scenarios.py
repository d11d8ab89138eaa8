"""Replay over several questions finds nothing, and finds faults that an attack once found, planted again."""

import pytest

from counterveil.accounting import accounts, ledger
from counterveil.attacks.command import examine
from counterveil.attacks.scenarios import SCENARIOS
from counterveil.federation import messages, site
from counterveil.questions.typed_settings import settings_from_values


@pytest.mark.parametrize("name", SCENARIOS)
def test_nothing_differs_and_without_the_rule_something_does(name):
    found = examine(SCENARIOS[name])
    assert found.report.passed, str(found.report)
    assert found.report.rows[0].ours.found == 0 < found.report.rows[0].weakened.found


def without_charters(monkeypatch):
    for module in (accounts, ledger):
        monkeypatch.setattr(module, "check_study", lambda *_, **__: None)


def test_an_account_that_is_bound_to_no_study_shows_what_it_protected(monkeypatch):
    """Finding B4: a second study made the outcome of the first a covariate, and its groups were counted."""
    without_charters(monkeypatch)
    found = examine(SCENARIOS["account/two studies"])
    assert found.verdict.value == "violated"
    assert "relapse" in found.report.rows[0].ours.witness


def test_a_setting_that_is_parsed_from_text_tells_whether_a_column_is_complete(monkeypatch):
    """Finding E14: names of settings were compared, then written as text and parsed again."""

    def parsed_again(method, values):
        text = ", ".join(f"{name}={value!r}" for name, value in values.items())
        return settings_from_values(method, eval(f"dict({text}\n)", {}))

    def compared_by_name(settings, name, default=None):
        return None if name == "order" else getattr(settings, name, default)

    # Charters refuse a private order since, so that they are left out as they were then.
    without_charters(monkeypatch)
    monkeypatch.setattr(messages, "_settings", lambda values: values)
    monkeypatch.setattr(site, "settings_from_values", parsed_again)
    monkeypatch.setattr(site, "getattr", compared_by_name, raising=False)
    found = examine(SCENARIOS["federation/hostile settings"])
    assert found.verdict.value == "violated", str(found.report)
    assert "reply 1" in found.report.rows[0].ours.witness
