"""Groups of rows that treatment follows beyond its score: which are found, and what is returned of them."""

import numpy as np
from scipy.special import expit

from counterveil.statistics.linear.kernels.balancing import treatment_leaves

N = 4000


def columns(d=8, n=N, seed=0):
    return np.random.default_rng(seed).uniform(-1, 1, (d, n)).astype(np.float32)


def drawn(x, logit, seed=1):
    return np.random.default_rng(seed).uniform(size=x.shape[1]) < expit(logit)


def test_a_group_between_two_jumps_is_found():
    x = columns()
    group = (x[2] > 0.25) & (x[5] < 0.0)
    leaves = treatment_leaves(x, drawn(x, 1.5 * group - 0.5), np.full(N, 0.4))
    # Cuts lie at sixteenths of the rows, so that a neighbouring leaf stands in for the group.
    assert max(np.corrcoef(leaf, group)[0, 1] for leaf in leaves) > 0.75


def test_treatment_is_off_its_scores_in_every_leaf():
    x = columns()
    treated, score = drawn(x, x[0] + (x[1] > 0.5) * x[3]), np.full(N, 0.5)
    leaves = treatment_leaves(x, treated, score)
    errors = [(treated[leaf].mean() - 0.5) / np.sqrt(0.25 / leaf.sum()) for leaf in leaves]
    assert len(leaves) >= 4
    assert np.abs(errors).min() > 1.9
    # Scores that hold all there is leave fewer groups, those that chance makes.
    assert len(treatment_leaves(x, treated, expit(x[0] + (x[1] > 0.5) * x[3]))) < 0.6 * len(leaves)


def test_labels_and_constants():
    codes = np.random.default_rng(3).integers(0, 2, (3, N)).astype(np.float32)
    leaves = treatment_leaves(codes, drawn(codes, 2.0 * codes[0] * codes[1] - 1.0), np.full(N, 0.4))
    both = codes[0] * codes[1]
    assert any(not (leaf & (both == 0)).any() for leaf in leaves)
    assert treatment_leaves(np.zeros((2, N), np.float32), codes[0] > 0, np.full(N, 0.5)).shape == (0, N)
    few = treatment_leaves(codes[:, :60], codes[0, :60] > 0, np.full(60, 0.5))
    assert few.shape == (0, 60)
