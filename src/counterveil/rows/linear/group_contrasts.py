"""Released differences of two arms' means in public groups, each group with the whole privacy budget.

    effect_k = mean_k1 - mean_k0,    variance_k = s_k1^2 / n_k1 + s_k0^2 / n_k0,

with n_ka, means and unbiased variances s_ka^2 of the rows of group k in arm a (1 the treated).

In: private outcomes in whole steps of a range of width B, added up exactly by group and arm. Out: effect_k in
units of the outcome and variance_k in squared ones, with noise. `rows_of_groups` returns every group's rows
for methods that need more than means.

Why it is right: who is in which group and arm is public, so that one outcome moves the numbers of one group
alone, by at most B / min(n_k1, n_k0) and the square of that. Releases about disjoint rows need not share the
budget (`session/branches.proof.md`).

Proof: `rows/linear/difference_in_means.proof.md`.
"""

# Proof: difference_in_means.proof.md

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from counterveil.data import Layout, Sums, Table, strata_codes
from counterveil.data.domains import outcome_unit
from counterveil.numerics.arm_totals import Arm, TwoArms, cell_totals
from counterveil.rows.linear.arm_contrast import release_contrast
from counterveil.rows.linear.sensitivity import MeanContrast
from counterveil.rows.public import PublicRows, private_table
from counterveil.session import Gate, Released


@dataclass(frozen=True, slots=True)
class GroupContrast:
    """What is released of one group: under these names, with this bound, and whether its variance is.

    Attributes
    ----------
    bounds : MeanContrast
        How far one outcome moves the difference of means.
    with_variance : bool
        Whether the variance is released.
    names : tuple of str
        What the effect and its variance are called in the plan.
    """

    bounds: MeanContrast
    with_variance: bool
    names: tuple[str, str]


def release_group_contrasts(
    gate: Gate, layout: Layout, groups: Mapping[int, GroupContrast]
) -> list[tuple[Released, Released | None]]:
    """Return the released difference of means of every group that is named by its place, and its variance."""
    source = gate.rows.batches
    step = outcome_unit(source.study.outcome_bounds)
    (sums,) = source.run(partial(group_sums, layout=layout))
    return [
        release_contrast(
            gate,
            TwoArms(Arm(*sums[2 * place + 1]), Arm(*sums[2 * place])),
            step,
            group.bounds,
            with_variance=group.with_variance,
            names=group.names,
        )
        for place, group in groups.items()
    ]


def group_sums(block: Table, layout: Layout) -> Sums:
    """Return rows, sums and sums of squares of outcomes of every group in either arm, those without treatment first."""
    cells = 2 * strata_codes(block, layout) + block.treated
    return (cell_totals(cells, 2 * layout.public, block.outcome),)


def rows_of_groups(rows: PublicRows, layout: Layout, kept: list[str]) -> list[PublicRows]:
    """Return every group's rows with the covariates `kept`: the others are the same for all of a group.

    Groups are chosen by covariates alone, which are public; private columns go along unseen.
    """
    table = private_table(rows)
    codes = strata_codes(table, layout)
    order = np.argsort(codes, kind="stable")
    ends = np.searchsorted(codes[order], np.arange(1, layout.public))
    return [PublicRows(_rows_of(table, places, kept), rows.unit) for places in np.split(order, ends)]


def _rows_of(table: Table, rows: NDArray[np.intp], kept: list[str]) -> Table:
    study = table.study
    rules = {
        name: rule for name, rule in study.missing.items() if name not in set(study.covariates) - set(kept)
    }
    smaller = study._changed(covariates={name: study.covariates[name] for name in kept}, missing=rules)
    return replace(
        table,
        study=smaller,
        arm=table.arm[rows],
        treated=table.treated[rows],
        outcome=table.outcome[rows],
        covariates={name: table.covariates[name][rows] for name in kept},
        measures=(),
        cluster=None if table.cluster is None else table.cluster[rows],
    )
