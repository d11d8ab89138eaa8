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
    found = []
    for seed in (1, 2, 3):
        random.seed(seed)
        np.random.seed(seed)
        found.append(_draw(seed))
    assert found[0] == found[1] == found[2]


def test_every_piece_of_a_block_starts_alike():
    with fixed_ambient_generators() as start_again:
        pieces = []
        for many in (1, 5, 2):
            start_again()
            pieces.append((random.random(), np.random.rand(many)[0]))
    assert pieces[0] == pieces[1] == pieces[2]


def test_the_state_outside_is_kept_also_after_an_error():
    random.seed(5)
    np.random.seed(5)
    expected = (random.random(), np.random.rand())
    random.seed(5)
    np.random.seed(5)
    with pytest.raises(ValueError, match="inside"), fixed_ambient_generators():
        raise ValueError("inside")
    assert (random.random(), np.random.rand()) == expected
