"""What a site may say of tables of times and of second moments, which are judged as they were released.

A table of times is one release at the whole budget, so that the standard deviation of its noise is known:
sqrt(2) l1 / epsilon for Laplace noise, or l2 / mu for normal noise, where l1 and l2 are how far one record
moves the table, in absolute changes and in Euclidean length (`TimeTables`). Its numbers are counts of people,
or running sums of them, between 0 and about the number of rows, with that noise; they may lie beyond by 16
standard deviations (`FAR`). Second moments have noise that is no less than that of rows of length one. With z
= (x - middle) / half width of a column, in [-1, 1] and in half ranges, the mean of z^2 lies in [0, 1] apart
from noise.

In come public numbers (`SiteQuestion`, the declared study and columns) and a site's answer, out come bounds
in people for tables and in half ranges for moments. A coordinator checks answers with them: they are limits
on released figures, and privacy does not depend on them. Proofs of the sensitivities:
`rows/time_tables.proof.md` and `rows/moments/regression_moments.proof.md`. `_WORST_CONDITION` is what a
coordinator still accepts of a basis.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import isfinite, sqrt

import numpy as np

from counterveil.data import Study
from counterveil.data.follow_up import PARTS
from counterveil.data.layout import Layout, MergedLayout
from counterveil.estimators.moments.regression_plan import RowPlan
from counterveil.estimators.site_bounds.noise import SLACK, within_reach
from counterveil.estimators.site_bounds.records import FAR
from counterveil.estimators.site_bounds.site_question import SiteQuestion
from counterveil.inference.survival.tables import NoisyTables
from counterveil.numerics.running_sums import SUMS, Form
from counterveil.privacy import Unit
from counterveil.results.regression import Moments
from counterveil.results.site_bounds import NEAR, Above, Bound, Breach, Equal, Near, OneOf, Sum, Within
from counterveil.results.survival import SurvivalResult
from counterveil.rows.moments.regression_columns import Columns
from counterveil.rows.time_tables import TimeTables
from counterveil.settings.methods import MOST_BIAS

# Into how many parts time cells may be cut.
CELL_PARTS = tuple(parts for parts in range(1, PARTS + 1) if PARTS % parts == 0)
# The largest condition of a basis of columns that are told apart.
_WORST_CONDITION = 1e9


def times(question: SiteQuestion, study: Study, answer: SurvivalResult) -> Iterator[Bound]:
    """Yield the bounds of released tables of times: noise, strata, numbers of people and every released number."""
    tables = answer.tables
    event = study.event
    assert event is not None
    form = Form(tables.form, event.cells * tables.cut, event.kinds)
    yield from _table_noise(question, tables, form)
    yield from _strata(question, study, answer)
    yield from _people(question, tables)
    # Running sums are taken with coefficients up to one; their root has no larger number than the sum of a block.
    largest = float(question.rows) * (2 if tables.form == SUMS else 1)
    margin = FAR * tables.noise_sd
    for block in tables.numbers:
        for number in block:
            yield within_reach("number of a table", number, (0.0, largest), margin)


def second_moments(question: SiteQuestion, columns: Columns, answer: Moments) -> Iterator[Bound]:
    """Yield the bounds of second moments: basis, noise, matrices of robust errors, and every column's mean square."""
    basis = np.array(answer.basis)
    noisy = answer._noisy()
    first = np.eye(len(basis))[0]
    yield Within("distance of the constant from one", float(np.abs(basis[0] - first).max()), high=NEAR)
    scale = np.abs(basis[1:, 1:]).max(axis=1)
    yield Above("scale of a column", float(scale.min()))
    condition = float(np.linalg.cond(basis[1:, 1:] / scale[:, None]))
    yield Within("condition of the columns", condition, high=_WORST_CONDITION)
    yield from _moment_noise(question, columns, answer)
    for middle in answer.robust:
        yield Above("noise of robust errors", middle.noise_sd, 0, breach=Breach.KIND)
    centres, halves = _centres_and_halves(columns)
    for working, centre, half in zip(basis[1:], centres, halves, strict=True):
        column = (working - centre * basis[0]) / half
        noise_sd = sqrt(max(float(column @ noisy.crossed(column, column) @ column), 0.0))
        # Rows are weighted by one at most.
        mean_square = float(column @ noisy.matrix @ column)
        yield within_reach("mean square of a column", mean_square, (0.0, 1.0 + NEAR), FAR * noise_sd)
    yield within_reach("mean weight of rows", noisy.weight, (0.0, 1.0 + NEAR), FAR * float(noisy.noise[0, 0]))


def _table_noise(question: SiteQuestion, tables: NoisyTables, form: Form) -> Iterator[Bound]:
    """Yield that the noise is that of one release at the whole budget, by a mechanism that was asked for."""
    normal = [name.endswith("gaussian") for name in question.mechanisms]
    yield OneOf("whether noise is Laplace's", tables.heavy, [not is_normal for is_normal in normal])
    if tables.heavy:
        wanted = sqrt(2) * float(TimeTables(form).l1 / question.budget.epsilon)
    else:
        wanted = float(TimeTables(form).l2 / (question.mu or 1))
    if question.most_sites > 1:
        # Of one noise and at most as many again as there are sites.
        most = wanted * (1 + NEAR) * sqrt(question.most_sites)
        yield Within("noise of a number", tables.noise_sd, wanted * (1 - NEAR), most)
    else:
        yield Near("noise of a number", tables.noise_sd, wanted)


def _strata(question: SiteQuestion, study: Study, answer: SurvivalResult) -> Iterator[Bound]:
    """Yield that strata are those of the declaration, merged until they have so many blocks."""
    names = question.settings.get("strata") or tuple(study.covariates)
    layout = Layout.of(study, tuple(names) if question.method == "stratified" else ())
    merged = [MergedLayout.of(layout, most) for most in range(1, layout.public + 1)]
    blocks = len(answer.tables.numbers)
    fitting = [strata.groups() for strata in merged if 2 * strata.public == blocks]
    yield OneOf("merged strata", dict(answer.merged_strata), fitting, breach=Breach.STATEMENT)
    public = question.unit is Unit.OUTCOME
    yield Equal("number of totals", len(answer.tables.totals), blocks if public else 1)
    yield Equal("number of shares", len(answer.tables.shares), blocks // 2 if public else 0)


def _people(question: SiteQuestion, tables: NoisyTables) -> Iterator[Bound]:
    """Yield bounds of numbers of people, of the weights of blocks and of the shares of strata."""
    rows = question.rows
    if question.method == "weighting":
        for total in tables.totals:
            yield Above("people in a block", total, 0, breach=Breach.ROWS)
            yield Within("people in a block", total, high=rows, breach=Breach.ROWS)
        # Imbalance that weights leave makes them worth fewer people, which takes weight off the site.
        for design in tables.design:
            yield Above("squared weights of a block", design, 0)
            yield Within("squared weights of a block", design, high=rows**2)
        yield Within("inflation of the variance", tables.inflation, 1, 1 + MOST_BIAS**2)
    else:
        yield Sum("people by block", tables.totals, rows, breach=Breach.ROWS)
        yield Within("people in a block", min(tables.totals), low=0, breach=Breach.ROWS)
        yield Equal("squared weights of blocks", {*tables.design}, {1.0})
        yield Equal("inflation of the variance", tables.inflation, 1.0)
    yield Within("share of a stratum", min(tables.shares, default=0.0), low=0)
    if question.unit is Unit.OUTCOME:
        yield Sum("shares of strata", tables.shares, 1, part=NEAR)


def _moment_noise(question: SiteQuestion, columns: Columns, answer: Moments) -> Iterator[Bound]:
    """Yield that noises are no less than those of the shortest rows; those of public columns are none."""
    noise = np.array(answer.noise_sd)
    mechanism = "gaussian" if question.mechanisms[-1].endswith("gaussian") else "staircase"
    plan = RowPlan(
        rows=answer.rows,
        columns=columns,
        budget=question.budget,
        mechanism=mechanism,
        robust=len(answer.robust),
    )
    yield Equal("whether noises of u v and v u are one", bool((noise == noise.T).all()), True)
    yield Equal("whether noises are finite", isfinite(float(noise.max())), True)
    if question.unit is Unit.RECORD:
        yield Within("noise of a moment", float(noise.min()), low=plan.shortest_noise / SLACK)
    else:
        # What is left of the outcome is the last working column; it alone is private.
        yield Equal("noise of public moments", float(np.abs(noise[:-1, :-1]).max()), 0.0)
        yield Above("noise of moments with the outcome", float(noise[-1].min()))


def _centres_and_halves(columns: Columns) -> tuple[list[float], list[float]]:
    """Return middle and half width of every column; those of products are about zero."""
    ends = [*columns.ends]
    largest = [abs(middle) + half for middle, half in ends]
    ends += [(0.0, largest[i] * largest[j]) for i, j in columns.products]
    return [middle for middle, _ in ends], [half for _, half in ends]
