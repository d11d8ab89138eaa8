"""The list of audited forms: exact losses of each here, `counterveil audit --all` with its samples in the slow run."""

import pytest
from tests.thinned import thinned

from counterveil_lab.attacks.command import EVERYTHING, examine
from counterveil_lab.attacks.mechanisms import MECHANISMS

# Mechanisms have a test of their own beside their code.
FORMS = [name for name in EVERYTHING if name not in MECHANISMS]


# `counterveil audit --all` examines all of them.
@pytest.mark.parametrize("name", thinned(FORMS, *FORMS[::10]))
def test_no_output_costs_more_than_is_claimed_and_a_third_of_the_noise_is_caught(name):
    found = examine(EVERYTHING[name], samples=0)
    assert found.report.passed, str(found.report)


@pytest.mark.slow
@pytest.mark.parametrize("name", FORMS)
def test_a_form_passes_every_tester_with_power(name):
    found = examine(EVERYTHING[name])
    assert found.report.passed, str(found.report)
