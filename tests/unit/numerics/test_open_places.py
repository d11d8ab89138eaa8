import numpy as np
import pytest

from counterveil.numerics.arrays import compiled
from counterveil.numerics.match_walk import (
    all_open,
    close,
    highest_bit,
    lowest_bit,
    open_at_or_above,
    open_at_or_below,
)


@pytest.mark.parametrize("places", [2, 3, 31, 32, 33, 64, 1023, 1024, 1025, 40_000])
def test_the_nearest_open_place_is_found_on_both_sides(places):
    rng = np.random.default_rng(places)
    words, levels = all_open(places)
    is_open = np.ones(places, bool)
    for place in 1 + rng.permutation(places - 2):
        close(words, levels, place)
        is_open[place] = False
        if places > 100 and rng.random() > 200 / places:
            continue
        left = np.flatnonzero(is_open)
        for at in rng.integers(0, places, 20):
            assert open_at_or_below(words, levels, at) == left[left <= at][-1]
            assert open_at_or_above(words, levels, at) == left[left >= at][0]
    assert open_at_or_below(words, levels, places - 2) == 0
    assert open_at_or_above(words, levels, 1) == places - 1


@compiled
def both_ends(bits):
    return highest_bit(bits), lowest_bit(bits)


@pytest.mark.parametrize("bits", [1, 2, 3, 40, 2**31, 2**32 - 1, 2**62 + 8])
def test_bits_are_found_from_both_ends(bits):
    assert both_ends(bits) == (bits.bit_length() - 1, bin(bits)[::-1].index("1"))
