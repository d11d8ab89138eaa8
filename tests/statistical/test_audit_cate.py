"""Every release behind a function under the auditor, white box, on its worst neighbours.

Every sample runs the estimator's own release code through a real gate and the attacker sees the whole vector; the
weakened copy sees a gate that draws a third of every noise and must be caught. Many samples are drawn all at once.
"""

import numpy as np
import pytest
from tests.statistical.released_alone import ReleasedAlone, check
from tests.thinned import thinned
from tests.unit.statistics.moments.small_cates import TINY, arm_rows, interacted_rows

from counterveil.privacy import Budget
from counterveil.statistics.moments.functions import release_gradient, release_size, release_statistics

# A length at which the record at x = 0 is exactly as long as rows may be.
LENGTH = float(np.linalg.norm(TINY.features({"x": np.zeros(1)})))
STEP = np.zeros((2, TINY.size))
INTERACTED_STEP = np.zeros((1, 2 * TINY.size))


def worst_interacted(record, clip=np.inf):
    """Return interacted rows of which the one at x = 0 is as long as rows may be, in either arm."""
    return interacted_rows(record, clip, LENGTH * np.sqrt(2), TINY, 0.0)


# What is released, and the two values of the first record (x, c, t, y) that move it far.
CASES = {
    "moments by arm": (
        lambda gate, record: release_statistics(gate, "r", arm_rows(record, LENGTH, TINY)),
        ((0.0, "u", 1, 1.0), (0.0, "u", 1, -1.0)),
    ),
    "moments, another arm": (
        lambda gate, record: release_statistics(gate, "r", arm_rows(record, LENGTH, TINY)),
        ((0.0, "u", 1, 1.0), (0.0, "u", 0, 0.0)),
    ),
    "interacted moments": (
        lambda gate, record: release_statistics(gate, "r", worst_interacted(record, 0.3)),
        ((0.0, "u", 1, 1.0), (0.0, "u", 1, -1.0)),
    ),
    "gradient step": (
        lambda gate, record: release_gradient(gate, "r", arm_rows(record, LENGTH, TINY), STEP, 0.2),
        ((0.0, "u", 1, 1.0), (0.0, "u", 1, -1.0)),
    ),
    "interacted gradient step": (
        lambda gate, record: release_gradient(gate, "r", worst_interacted(record), INTERACTED_STEP, 0.1),
        ((0.0, "u", 1, 1.0), (0.0, "u", 1, -1.0)),
    ),
    "quantile": (
        lambda gate, record: release_size(gate, "r", arm_rows(record, LENGTH, TINY), STEP),
        ((0.0, "u", 1, 0.02), (0.0, "u", 1, 1.0)),
    ),
}


# Where a third of the noise is told from all of it with fewest samples.
GAUSSIAN = Budget("3/2", "1e-2")


def released(name, claim, at_once=False):
    release, pair = CASES[name]
    return ReleasedAlone("r", lambda gate, one, pure: release(gate, one), pair, claim, at_once=at_once)


# The gate is the same for every release: what it draws is looked at for one, and all have many samples below.
@pytest.mark.parametrize("name", thinned(CASES, "moments by arm"))
def test_keeps_its_claim_and_a_third_of_the_noise_does_not(name):
    check(released(name, GAUSSIAN), 900, 1)


@pytest.mark.parametrize("name", list(CASES))
def test_no_release_breaks_its_claim_over_many_samples(name):
    check(released(name, GAUSSIAN, at_once=True), 20_000, 4)
