"""Groups of rows that treatment follows beyond its score: which are found, and what is returned of them."""

import numpy as np
from scipy.special import expit

from counterveil.statistics.linear.kernels import balancing as kernel
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


def test_the_first_split_is_the_best_of_all_cuts(monkeypatch):
    for name, value in {"_TREES": 1, "_DEPTH": 1, "_LEAST_OFF": 0.0}.items():
        monkeypatch.setattr(kernel, name, value)
    x = columns(3, 600)
    treated, score = drawn(x, 2.0 * (x[1] > -0.2)), np.full(600, 0.6)
    off, held = treated - 0.6, np.full(600, 0.24)

    def fit(rows):
        return off[rows].sum() ** 2 / (held[rows].sum() + 1.0)

    tried = {(line.tobytes(), cut): line > cut for line in x for cut in np.sort(line)[40:-40]}
    gains = {rows.tobytes(): fit(rows) + fit(~rows) for rows in tried.values()}
    leaves = treatment_leaves(x, treated, score)
    assert len(leaves) == 2
    # Sixteen parts of the rows hold fewer cuts than all rows do: close to the best, and on its column.
    found = fit(leaves[0]) + fit(leaves[1])
    assert 0.8 * max(gains.values()) <= found <= max(gains.values()) * (1 + 1e-9)
    assert max(np.corrcoef(leaves[1], x[1] > -0.2)[0, 1], np.corrcoef(leaves[0], x[1] > -0.2)[0, 1]) > 0.8


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
