"""Second moments of several sites, added up, so that regressions over all sites are free.

    M = sum_j w_j M_j,    w_j = n_j / sum n where no limit on weights is asked for,

with M_j the released matrix of means of products of columns at site j and n_j its public number of rows.
Among the columns is an indicator of each site but the first, so that a regression may compare people within
sites. In: released moments with their noise. Out: moments of all sites, with the standard deviation of their
noise, in products of the columns' units.

Columns of sites are first brought to those of the first site (a linear map, `_summed`); means of products
over all rows are then exactly this average, whatever sites differ in; noise is independent between sites. All
of it is post-processing: `inference/pooling.proof.md`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from counterveil.errors import refusal
from counterveil.inference.linear_fit import LinearFit
from counterveil.inference.moments import NoisyMoments, SummedMoments
from counterveil.numerics.arrays import Floats
from counterveil.questions.pooling.agreement import pooled_caveats, shared_details, shared_provenance
from counterveil.questions.pooling.averages import limited_weights
from counterveil.questions.pooling.reading import no_result
from counterveil.results.regression import Formula, Matrix, Moments
from counterveil.settings import WeightLimits

# Columns of moments that say which site a row is of.
_SITE = "site"


@dataclass(frozen=True, slots=True)
class MomentsPart:
    """One site's moments and their weight in the sum.

    Attributes
    ----------
    name : str
        Name of the site.
    weight : float
        Weight in the sum.
    result : Moments
        Its released moments.
    """

    name: str
    weight: float
    result: Moments


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class PooledMoments(Moments):
    """Second moments of several sites, added up: what `counterveil.pool` returns for moments.

    Regressions over all sites are free. ``site`` in a formula is which site a row is of: ``"y ~ treat + age |
    site"`` compares people within sites.

    Attributes
    ----------
    answers : tuple of MomentsPart
        The sites' moments, with their weights.
    weight_limits : WeightLimits or None
        Limits on weights that were asked for.
    treatment, outcome : str
        Columns of the study.
    columns : tuple of str
        All columns, the constant left out, and indicators of the sites.
    groups : tuple of (str, tuple of str)
        Covariates, or treatments, that are several columns, with these.
    basis : tuple of tuple of float
        The constant and every column as a combination of working columns.
    matrix : tuple of tuple of float
        Means of products of working columns, the constant first.
    noise_sd : tuple of tuple of float
        Standard deviation of the noise of each.
    rows : int
        Number of rows of one site that would be as precise: all of them where no weight is held.
    level : float
        Default confidence level of intervals, in (0, 1).
    guarantee : Guarantee
        What is protected, how strongly, and where that is proved.
    spent : Budget
        The most that any one person's data have spent.
    releases : tuple of (str, str)
        Every number that noise was drawn for: its name, and its sensitivity or scale.
    not_covered : tuple of Caveat or Detail
        What intervals do not cover, the worst first.
    details : dict of str to float or str
        Further public or released numbers.
    robust : tuple of RobustMiddle
        Empty: errors are classical.
    """

    _DERIVED: ClassVar[tuple[str, ...]] = ("basis", "matrix", "noise_sd")

    answers: tuple[MomentsPart, ...]
    weight_limits: WeightLimits | None = None

    def _noisy(self) -> NoisyMoments:
        return _summed(self.answers)[1]

    def _farthest(self, formula: Formula, fit: LinearFit) -> float | None:  # noqa: ARG002 - sites have other units
        return None

    @classmethod
    def _made(
        cls, level: float, answers: tuple[MomentsPart, ...], weight_limits: WeightLimits | None, **_: Any
    ) -> PooledMoments:
        return added_up([(site.name, site.result) for site in answers], "all", level, weight_limits)


def added_up(
    sites: list[tuple[str, Any]], method: str, level: float, bounds: WeightLimits | None
) -> PooledMoments:
    """Return the sum of sites' moments, by numbers of rows; no weight is above its limit."""
    if method not in ("all", "mvagg"):
        raise refusal("CV-P508", methods="'all'", method=method)
    sizes = np.array([float(moments.rows) for _, moments in sites])
    weights = limited_weights(sites, 1 / sizes, sizes, method="all", bounds=bounds)
    weighted = tuple(
        MomentsPart(name, float(weight), result)
        for (name, result), weight in zip(sites, weights, strict=True)
    )
    try:
        basis, moments = _summed(weighted)
    except np.linalg.LinAlgError:
        raise no_result(sites[0][0], "moments in columns that depend on each other") from None
    first = sites[0][1]
    indicators = tuple(f"{_SITE}={name}" for name, _ in sites[1:])
    noise = [moments.crossed(unit, unit).diagonal() for unit in np.eye(len(basis))]
    return PooledMoments(
        answers=weighted,
        weight_limits=bounds,
        columns=(*first.columns, *indicators),
        groups=(*first.groups, *(((_SITE, indicators),) if _SITE not in first.columns else ())),
        basis=_tuples(basis),
        matrix=_tuples(moments.matrix),
        noise_sd=_tuples(np.sqrt(np.maximum(np.array(noise), 0.0))),
        rows=moments.rows,
        level=level,
        **shared_provenance(sites, method),
        not_covered=pooled_caveats(sites, []),
        details=shared_details(sizes, {f"weight_{site.name}": site.weight for site in weighted}),
    )


def _summed(sites: Sequence[MomentsPart]) -> tuple[Floats, SummedMoments]:
    """Return the basis of the columns, sites' indicators last, and the moments of all sites in working columns.

    Working columns are those of the first site, whose first is the constant, and the indicators. With B_j the
    basis of site j, T_j = B_1^-1 B_j turns its working columns into those of the first; moments M_j add up as
    sum_j w_j T_j M_j T_j'.
    """
    bases = [np.array(site.result.basis) for site in sites]
    size = len(bases[0])
    indicators = len(sites) - 1
    turned = []
    for number, (site, basis_of_site) in enumerate(zip(sites, bases, strict=True)):
        turn = np.zeros((size + indicators, size))
        turn[:size] = np.linalg.solve(bases[0], basis_of_site)
        if number:
            turn[size + number - 1] = basis_of_site[0]  # the constant
        turned.append((site.weight, turn, site.result._noisy()))
    matrix = np.sum([weight * turn @ noisy.matrix @ turn.T for weight, turn, noisy in turned], axis=0)
    effective_rows = 1 / sum(weight**2 / noisy.rows for weight, _, noisy in turned)
    basis = np.eye(size + indicators)
    basis[:size, :size] = bases[0]
    matrix = (matrix + matrix.T) / 2
    # A whole number of rows that rounding made a little less is that number.
    rows = max(int(effective_rows + 1e-6), 1)
    return basis, SummedMoments(matrix, np.zeros_like(matrix), rows, tuple(turned))


def _tuples(matrix: Floats) -> Matrix:
    return tuple(tuple(float(value) for value in row) for row in matrix)
