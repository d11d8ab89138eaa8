"""Every mechanism under the auditor: it must pass, and a copy with a third of its noise must be caught."""

import pytest
from tests.thinned import thinned

from counterveil_lab.attacks.command import examine_mechanism
from counterveil_lab.attacks.mechanisms import MECHANISMS

# Noise of published forms alone, two answers beside four, and laws whose own tests find the largest loss, of all of
# the noise and of a third, are left to `make test-all`.
SHARES = "shares of laplace", "shares of gaussian", "shares of ball"
RARE = {
    f"mechanism/{name}"
    for name in ("lomax", "student", "smooth laplace", "response of 2", "ball", "box", *SHARES)
}


@pytest.mark.parametrize("name", thinned(MECHANISMS, *(MECHANISMS.keys() - RARE)))
def test_passes_and_a_third_of_the_noise_is_caught(name):
    report = examine_mechanism(MECHANISMS[name], seed=1)
    assert report.passed, str(report)
