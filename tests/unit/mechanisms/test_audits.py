"""Every mechanism under the auditor: it must pass, and a copy with a third of its noise must be caught."""

import pytest

from counterveil_lab.attacks.command import examine_mechanism
from counterveil_lab.attacks.mechanisms import MECHANISMS


@pytest.mark.parametrize("name", MECHANISMS)
def test_passes_and_a_third_of_the_noise_is_caught(name):
    report = examine_mechanism(MECHANISMS[name], seed=1)
    assert report.passed, str(report)
