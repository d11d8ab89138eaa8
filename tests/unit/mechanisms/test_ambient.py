"""Global generators start alike for every piece of work and go on afterwards as if nothing had been."""

import random

import numpy as np
import pytest

from counterveil.mechanisms import fixed_ambient_generators


def _draw(many):
    with fixed_ambient_generators():
        first = (random.random(), np.random.rand())
        for _ in range(many):
            random.random()
            np.random.rand()
        return first


def test_what_ran_before_does_not_matter():
    assert _draw(1000) == _draw(3) == _draw(0)


def test_the_state_outside_is_kept_also_after_an_error():
    random.seed(5)
    np.random.seed(5)
    expected = (random.random(), np.random.rand())
    random.seed(5)
    np.random.seed(5)
    with pytest.raises(ValueError, match="inside"), fixed_ambient_generators():
        raise ValueError("inside")
    assert (random.random(), np.random.rand()) == expected
