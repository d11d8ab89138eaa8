"""The noise of a curve from flat counts, from running sums and from a binary tree, by the number of cells."""

from __future__ import annotations

from itertools import product

import numpy as np

from counterveil.estimators.time_tables import default_table, expected_variance, table_release
from counterveil.inference.survival.blocks import Blocks
from counterveil.inference.survival.table_noise import TableNoise
from counterveil.numerics.running_sums import FLAT, SUMS
from counterveil.privacy import Budget
from experiments.runner import Row, Table

BUDGETS = (("laplace", Budget(1)), ("gaussian", Budget(1, "1e-6")))


def forms(cells: int, mechanism: str, budget: Budget, *, seeds: range) -> Row:
    """Return the root mean variance of a curve's noise over its cells, times the people of an arm; nothing is drawn."""
    own = [
        np.sqrt(expected_variance(table_release([mechanism], budget, cells, form))) for form in (FLAT, SUMS)
    ]
    flat = table_release([mechanism], budget, cells, FLAT)
    unit = flat.noise_sd / float(flat.tables.bound)
    return [cells, mechanism, *own, np.sqrt(tree_variance(cells, mechanism == "gaussian")) * unit]


def tree_variance(cells: int, gaussian: bool) -> float:
    """Return the same for sums over the nodes of a binary tree, joined by least squares, at a noise of 1 a unit."""
    size = 2 * cells + 1
    depth = int(np.ceil(np.log2(cells + 1))) + 1
    nodes = []
    # A tree over the events, and one over the censorings and those followed to the horizon.
    for first, last in ((0, cells), (cells, size)):
        for width in 2 ** np.arange(depth):
            for start in range(first, last, width):
                row = np.zeros(size)
                row[start : min(start + width, last)] = 1.0
                nodes.append(row)
    rows = np.array(nodes)
    spread = 2 * depth if gaussian else (2 * depth) ** 2
    covariance = np.linalg.inv(rows.T @ rows)
    noise = TableNoise(1e-12 * covariance, ())
    blocks = Blocks(default_table(cells), noise, "middle", np.ones(1))
    found = np.diag(noise.of(blocks.gradients[0][:, None, :]))[1:]
    return float(np.mean(found)) * 1e12 * spread


TABLE = Table(
    columns="cells | noise | flat counts :.1f | running sums :.1f | binary tree :.1f",
    cells=[(cells, *budget) for cells, budget in product((6, 12, 25, 50, 100, 200), BUDGETS)],
    row=forms,
)
