"""What is kept between matchings is what is found afresh."""

from __future__ import annotations

import numpy as np
import pytest

from counterveil.numerics.matching import SortedArms


@pytest.mark.parametrize("seed", range(6))
def test_a_matching_after_a_free_one_is_the_same(seed: int) -> None:
    rng = np.random.default_rng(seed)
    treated, score = rng.random(300) < 0.3, rng.random(300).round(2 if seed % 2 else 9)
    kept = SortedArms(treated, score)
    free = kept.match(3)
    for limit in range(1, int(free.uses.max()) + 2):
        one, other = kept.match(3, limit, limit), SortedArms(treated, score).match(3, limit, limit)
        assert np.array_equal(one.coefficients, other.coefficients)
        assert np.array_equal(one.uses, other.uses)
        assert np.array_equal(one.sizes, other.sizes)
        assert one.at_limit == other.at_limit
