"""The list of audited forms: `counterveil audit --all` in the slow run, one form of each unit without samples here."""

import pytest

from counterveil_lab.attacks.command import EVERYTHING, examine
from counterveil_lab.attacks.mechanisms import MECHANISMS

# Mechanisms have a test of their own beside their code.
FORMS = [name for name in EVERYTHING if name not in MECHANISMS]
EACH_UNIT = [
    "ate/weighting/outcome",
    "groups/arms/record",
    "ate/trial/record/people",
    "ate/trial/record/whole clusters",
]


@pytest.mark.parametrize("name", EACH_UNIT)
def test_no_output_costs_more_than_is_claimed_and_nothing_visible_differs(name):
    found = examine(EVERYTHING[name], samples=0)
    assert found.report.passed, str(found.report)


@pytest.mark.slow
@pytest.mark.parametrize("name", FORMS)
def test_a_form_passes_every_tester_with_power(name):
    found = examine(EVERYTHING[name])
    assert found.report.passed, str(found.report)
