"""One-to-one matching in row order, against its definition row by row."""

import numpy as np
import pytest

from counterveil.published.strata import match_in_order


def by_definition(stratum, treated):
    partner = np.full(len(stratum), -1)
    for x in set(stratum.tolist()):
        arms = [[i for i in range(len(stratum)) if stratum[i] == x and treated[i] == arm] for arm in (0, 1)]
        for arm in (0, 1):
            for j, i in enumerate(arms[arm]):
                if arms[1 - arm]:
                    partner[i] = arms[1 - arm][j % len(arms[1 - arm])]
    return partner


@pytest.mark.parametrize("seed", range(40))
def test_partners_and_uses(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 30))
    stratum, treated = rng.integers(0, 4, n), rng.random(n) < rng.random()
    partner, uses = match_in_order(stratum * 7, treated)
    expected = by_definition(stratum, treated)
    assert (partner == expected).all()
    assert (uses == [np.sum(expected == i) for i in range(n)]).all()
