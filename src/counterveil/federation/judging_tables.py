"""Whether a site's answer of several effects fits the question: every row is judged as an answer of one effect is.

Names of rows follow from the declaration, numbers of people from the site's rows, noises from the budget. Tables of
times and second moments are judged as they were released.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
from math import isclose, isfinite, sqrt
from typing import Any, cast

import numpy as np

from counterveil.data import Range, Study
from counterveil.data.layout import Layout, MergedLayout
from counterveil.errors import CounterveilError
from counterveil.federation.judging import (
    FEWEST_IN_ARM,
    MOST_ROWS,
    NEAR,
    NO_RESULT,
    OTHER_FACTS,
    OTHER_LIMITS,
    OTHER_QUESTION,
    OUT_OF_REACH,
    SLACK,
    TOO_MANY_ROWS,
    Expected,
    budget_of,
    check_arms,
    check_difference,
    check_place,
    hold,
    judged_by,
    most_mu,
    sensitivity_of,
    undeclared,
)
from counterveil.federation.messages import MOST_SITES, Ask, Head, Reply, SiteRequest
from counterveil.inference.measures import NoisyRatio, RatioDifference
from counterveil.inference.survival import NoisyTables
from counterveil.inference.uncertainty import NoiseDistribution, Uncertainty
from counterveil.numerics.arrays import sqrt_up
from counterveil.numerics.running_sums import SUMS, Form
from counterveil.privacy import Estimand, Unit
from counterveil.privacy.caveats import ClippedOutliers
from counterveil.questions.groups import group_names, layout_of
from counterveil.questions.pooled import rows_of
from counterveil.results.arms import ArmsResult, OutcomesResult
from counterveil.results.effect import Effect, Linear, noise_from_dict, noise_to_dict
from counterveil.results.groups import GroupsResult
from counterveil.results.regression import Moments, parse_formula
from counterveil.results.result import Result
from counterveil.results.survival import SurvivalResult
from counterveil.settings.methods import MOST_BIAS
from counterveil.statistics.moments.regression import Columns, RowPlan

# Methods whose answers can be judged, by question.
_LINEAR = ("difference_in_means", "weighting", "matching")
ESTIMATORS = {
    "arms": _LINEAR,
    "groups": (*_LINEAR, "adjusted", "arms"),
    "outcomes": (*_LINEAR, "trial"),
    "survival": ("kaplan_meier", "stratified", "weighting"),
    "moments": ("moments",),
}
ANSWERS: dict[str, type] = {
    "arms": ArmsResult,
    "groups": GroupsResult,
    "outcomes": OutcomesResult,
    "survival": SurvivalResult,
    "moments": Moments,
}
# No noise is so many of its standard deviations, Laplace's once in a thousand million studies.
_FAR = 16.0
# Numbers that cells are cut into, and the largest condition of a basis of columns that are told apart.
_PARTS, _WORST = (1, 2, 4, 8, 16), 1e9


def options_of(ask: Ask) -> dict[str, Any]:
    """Return the arguments of a question's own, with tuples for lists; no cut points are an empty list in TOML."""
    return {name: _option(value) for name, value in ask.options.items()}


def _option(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: None if one == [] else _option(one) for name, one in value.items()}
    return tuple(value) if isinstance(value, list) else value


def check_declared(declaration: Mapping[str, Any], ask: Ask) -> None:
    """Raise CV-P600 for a declaration whose answers to a question cannot be judged or pooled."""
    if ask.question == "ate":
        Expected.of(declaration)
        return
    try:
        study = Study.from_dict(dict(declaration))
    except (CounterveilError, TypeError, ValueError, LookupError, AttributeError, ArithmeticError):
        raise undeclared("one that describes a study", "something else") from None
    made = [name for name in ("before", "denominator", "cluster") if name in declaration]
    made += ["outcomes with earlier values"] * (study.several is not None and bool(study.several.baseline))
    made += ["outcomes of several arms"] * (study.several is not None and study.arms is not None)
    if made:
        raise undeclared(f"one without what question = {ask.question!r} does not pool", made[0])
    ranges_of(study)


def judged(request: SiteRequest, reply: Reply, max_rows: int | None, known: Head | None) -> Any:
    """Return the result of a reply, or raise the reason for setting the site aside.

    `max_rows` is what the study file says of the site, `known` the last end of its ledger that was seen.
    """
    return judged_by(check_answer, request, reply, max_rows, known)


def check_answer(ask: Ask, declaration: dict[str, Any], answer: Any) -> None:
    """Raise the reason for setting a site aside whose table does not follow from the question."""
    hold(type(answer) is ANSWERS[ask.question], NO_RESULT)
    study = Study.from_dict(declaration)
    # Moments are of single columns; other answers are about all outcomes.
    hold(
        answer.outcome == (study.outcome if ask.question == "moments" else study.outcome_name), OTHER_QUESTION
    )
    if isinstance(answer, ArmsResult):
        _check_arms(ask, study, answer)
    elif isinstance(answer, GroupsResult):
        _check_groups(ask, study, answer)
    elif isinstance(answer, OutcomesResult):
        _check_outcomes(ask, study, answer)
    elif isinstance(answer, SurvivalResult):
        _check_times(ask, study, answer)
    else:
        _check_moments(ask, study, answer)


def ranges_of(study: Study) -> dict[str, Expected]:
    """Return what every outcome of a study allows its effects to be; none for times to events."""
    if study.event is not None:
        return {}
    declared = Expected.of(
        study.to_dict() | {"outcome": study.outcome, "outcome_range": [*study.outcome_range]}
    )
    if study.several is None:
        return {study.outcome: declared}
    return {
        name: replace(declared, outcome=name, low=low, high=high)
        for name, (low, high) in study.several.ranges
    }


def _check_arms(ask: Ask, study: Study, answer: ArmsResult) -> None:
    """Check the means of all arms: one outcome is in one of them, which has the whole budget."""
    (declared,) = ranges_of(study).values()
    hold(tuple(mean.name for mean in answer.means) == study.treatment_labels, OTHER_QUESTION)
    known = [_linear(mean) for mean in answer.means]
    hold(all(one.limits == (float(declared.low), float(declared.high)) for one in known), OTHER_LIMITS)
    sizes = [_size(mean) for mean in answer.means]
    numbers = [(one.estimate, one.uncertainty) for one in known]
    plain = ask.method == "difference_in_means"
    check_arms(ask, declared, numbers, sizes, rows_of(answer) or 1, plain, rare=True)  # type: ignore[arg-type]


def _check_groups(ask: Ask, study: Study, answer: GroupsResult) -> None:
    """Check every group as the only one: an outcome, or a pair, is in one of them, which has the whole budget."""
    (declared,) = ranges_of(study).values()
    layout = layout_of(study, options_of(ask).get("by", ()))
    names, rows = group_names(layout), rows_of(answer) or 1
    found = [str(one.name) for one in answer.groups]
    hold(answer.by == layout.names and found == [one for one in names if one in found], OTHER_QUESTION)
    hold(answer.left_out == tuple(one for one in names if one not in found), OTHER_QUESTION)
    if Unit(ask.protects) is Unit.RECORD:
        hold(not answer.left_out, OTHER_QUESTION)
        for one in answer.groups:
            _check_ratio(ask, declared, one, rows)
        return
    hold(sum(_size(one) for one in answer.groups) <= rows, TOO_MANY_ROWS)
    # Groups whose covariates are all the same are not weighted.
    left = [
        name
        for name, domain in study.covariates.items()
        if name not in layout.names or isinstance(domain, Range)
    ]
    own = replace(ask, method="difference_in_means") if ask.method in _LINEAR and not left else ask
    for one in answer.groups:
        known, size = _linear(one), int(_size(one))
        arms = {"rows": size}
        if own.method == "difference_in_means":
            # The smaller arm gives the sensitivity; a group is judged by the arms that it must have.
            smaller = declared.width / sensitivity_of(known.uncertainty.noise)
            hold(smaller.denominator == 1 and 2 * smaller <= size)
            arms |= {"treated": int(smaller), "control": size - int(smaller)}
        _check_row(own, declared, answer, known, arms)


def _check_outcomes(ask: Ask, study: Study, answer: OutcomesResult) -> None:
    """Check every outcome as the only one, after its noise was taken for that of one number: all of them may move."""
    ranges = ranges_of(study)
    hold([one.outcome for one in answer.released] == [*ranges], OTHER_QUESTION)
    said = (answer.measure, answer.estimand.value)
    hold(said == (ask.measure, ask.estimand), OTHER_QUESTION)
    hold(all(one.arm is None for one in answer.released), NO_RESULT)
    for one in answer.released:
        known = _sole(one.numbers)
        error = cast("Uncertainty", known.uncertainty)
        alone = replace(
            error,
            noise=_alone(error.noise, len(ranges)),
            variance_noise=_alone(error.variance_noise, len(ranges)),
        )
        own = replace(known, uncertainty=alone)
        _check_row(ask, ranges[one.outcome], answer, own, answer.details)


def _alone(noise: NoiseDistribution | None, several: int) -> Any:
    """Return the noise that one number would have in place of one of so many, for the same change and budget."""
    facts = noise_to_dict(noise)
    if facts.get("mechanism") == "box":
        hold(facts.get("dimension") == str(several))
        return noise_from_dict(
            {"mechanism": "staircase"} | {name: facts[name] for name in ("sensitivity", "epsilon")}
        )
    if facts.get("mechanism") == "gaussian":
        alone = sensitivity_of(noise) / sqrt_up(Fraction(several))
        return noise_from_dict(facts | {"sensitivity": str(alone)})
    hold(not facts)
    return None


def _check_row(ask: Ask, declared: Expected, answer: Any, known: Linear, details: dict[str, Any]) -> None:
    """Check one row as the answer of one effect."""
    hold(known.limits == declared.limits, OTHER_LIMITS)
    row = Result(
        **answer.provenance() | {"details": answer.details | details},
        estimate=known.estimate,
        uncertainty=known.uncertainty,  # type: ignore[arg-type]
        estimand=Estimand(ask.estimand),
        limits=known.limits,
        independent_variance=True,
    )
    check_difference(ask, declared, row)


def _check_ratio(ask: Ask, declared: Expected, one: Effect, rows: int) -> None:
    """Check a group of private records: its noises are no less than one record's part of a sum at the whole budget."""
    known = one.known
    ratios = [known.one, known.other] if isinstance(known, RatioDifference) else [known]
    width = float(declared.width)
    hold((len(ratios) == 2) == (ask.method == "arms"))
    for ratio in ratios:
        hold(isinstance(ratio, NoisyRatio), NO_RESULT)
        assert isinstance(ratio, NoisyRatio)
        hold(isclose(ratio.limit, width / len(ratios), rel_tol=NEAR), OTHER_LIMITS)
        least, mu = sqrt(2) / float(budget_of(ask).epsilon), most_mu(ask)
        # The part of a count: no release has a smaller part of the budget, or of what a score may be.
        least = least if mu is None else min(least, 1 / float(mu))
        hold(
            ratio.size_sd >= least * (1 - NEAR) and ratio.total_sd >= least * width / 100 and ratio.least == 1
        )
        hold(ratio.row_variance >= 0 and ratio.extra >= 0 and 0 <= ratio.bias <= 2 * width)
        hold(-_FAR * ratio.size_sd <= ratio.size <= rows + _FAR * ratio.size_sd, TOO_MANY_ROWS)
        hold(abs(ratio.offset) <= width, OUT_OF_REACH)
    hold(one.size is not None and one.size_sd > 0)


def _linear(one: Effect) -> Linear:
    return _sole(one.known)


def _sole(known: object) -> Linear:
    """Return a number with the error of one site."""
    hold(isinstance(known, Linear) and type(known.uncertainty) is Uncertainty, NO_RESULT)
    assert isinstance(known, Linear)
    return known


def _size(one: Effect) -> float:
    """Return the public number of people behind a row."""
    size = one.size
    hold(size is not None and one.size_sd == 0 and FEWEST_IN_ARM <= size <= MOST_ROWS and size == int(size))
    assert size is not None
    return size


def _check_times(ask: Ask, study: Study, answer: SurvivalResult) -> None:
    """Check tables of times: cells and strata follow from the declaration, the noise from these and the budget."""
    tables, event, rows = answer.tables, study.event, rows_of(answer) or 1
    hold(event is not None and tables.cut in _PARTS and tables.causes == event.causes, OTHER_QUESTION)
    assert event is not None
    hold(tables.edges == event.cut(tables.cut).edges, OTHER_QUESTION)
    hold(tables.convention == ask.settings.get("censoring", "middle"), OTHER_QUESTION)
    form, mu = Form(tables.form, event.cells * tables.cut, event.kinds), most_mu(ask)
    named = None if ask.summed else ask.mechanism
    allowed = {None: (True, mu is not None), "gaussian": (False, True)}.get(named, (True, False))
    hold(allowed[0] if tables.heavy else allowed[1])
    if tables.heavy:
        wanted = sqrt(2) * float(form.l1 / budget_of(ask).epsilon)
    else:
        wanted = float(form.l2 / (mu or 1))
    if ask.summed:
        # Of one noise and at most as many again as there are sites.
        hold(wanted * (1 - NEAR) <= tables.noise_sd <= wanted * (1 + NEAR) * sqrt(MOST_SITES))
    else:
        hold(isclose(tables.noise_sd, wanted, rel_tol=NEAR))
    _check_blocks(ask, study, answer, rows)
    # Running sums are taken with coefficients up to one; their root has no larger number than the sum of a block.
    far = _FAR * tables.noise_sd
    for block in tables.numbers:
        for number in block:
            check_place(number, (0.0, float(rows) * (2 if tables.form == SUMS else 1)), far)


def _check_blocks(ask: Ask, study: Study, answer: SurvivalResult, rows: int) -> None:
    """Check strata, numbers of people and weights of tables."""
    tables: NoisyTables = answer.tables
    strata = ask.settings.get("strata") or tuple(study.covariates)
    layout = Layout.of(study, tuple(strata) if ask.method == "stratified" else ())
    merged = [MergedLayout.of(layout, most) for most in range(1, layout.public + 1)]
    fitting = [one for one in merged if 2 * one.public == len(tables.numbers)]
    hold(any(dict(answer.merged_strata) == one.groups() for one in fitting), OTHER_FACTS)
    people = Unit(ask.protects) is Unit.OUTCOME
    hold(len(tables.totals) == (len(tables.numbers) if people else 1))
    hold(len(tables.shares) == (len(tables.numbers) // 2 if people else 0))
    weighted = ask.method == "weighting"
    if weighted:
        hold(all(0 < total <= rows for total in tables.totals), TOO_MANY_ROWS)
        hold(all(0 < one <= 1 + NEAR for one in tables.design) and 1 <= tables.inflation <= 1 + MOST_BIAS**2)
    else:
        hold(sum(tables.totals) == rows and min(tables.totals) >= 0, TOO_MANY_ROWS)
        hold({*tables.design} == {1.0} and tables.inflation == 1.0)
    hold(
        min(tables.shares, default=0.0) >= 0 and (not people or isclose(sum(tables.shares), 1, rel_tol=NEAR))
    )


def _check_moments(ask: Ask, study: Study, answer: Moments) -> None:
    """Check second moments: columns and their squares follow from the declaration, noises from the budget."""
    columns = Columns.of(study, *(options_of(ask).get(name, ()) for name in ("outcomes", "terms")))
    hold(answer.columns == columns.names and answer.groups == columns.groups, OTHER_QUESTION)
    clipped = [one for one in answer.not_covered if isinstance(one, ClippedOutliers)]
    hold(all({*one.columns} <= {*columns.names} for one in clipped), OTHER_FACTS)
    basis, noisy = np.array(answer.basis), answer._noisy()
    hold(bool((np.abs(basis[0] - np.eye(len(basis))[0]) <= NEAR).all()))
    scale = np.abs(basis[1:, 1:]).max(axis=1)
    hold(bool((scale > 0).all()) and float(np.linalg.cond(basis[1:, 1:] / scale[:, None])) <= _WORST)
    _check_noise(ask, columns, answer)
    _check_middles(ask, columns, answer)
    middles, halves = _ends(columns)
    for own, middle, half in zip(basis[1:], middles, halves, strict=True):
        column = (own - middle * basis[0]) / half
        far = _FAR * sqrt(max(float(column @ noisy.crossed(column, column) @ column), 0.0))
        # Rows are weighted by one at most.
        check_place(float(column @ noisy.matrix @ column), (0.0, 1.0 + NEAR), far)
    check_place(noisy.weight, (0.0, 1.0 + NEAR), _FAR * float(noisy.noise[0, 0]))


def _check_middles(ask: Ask, columns: Columns, answer: Moments) -> None:
    """Check what HC1 errors are made of: one middle for each regression that was asked for, of its size."""
    asked = tuple(options_of(ask).get("robust", ()))
    hold(tuple(one.formula for one in answer.robust) == asked, OTHER_QUESTION)
    for one in answer.robust:
        formula = parse_formula(one.formula, columns.names, dict(columns.groups))
        size = formula.constant + len(formula.regressors) + len(formula.absorbed)
        sides = (len(own) for matrix in (one.turn, one.matrix) for own in (matrix, *matrix))
        hold({*sides} == {size} and one.noise_sd > 0, NO_RESULT)


def _ends(columns: Columns) -> tuple[list[float], list[float]]:
    """Return middle and half width of every column; those of products are about zero."""
    ends = [*columns.ends]
    most = [abs(middle) + half for middle, half in ends]
    ends += [(0.0, most[i] * most[j]) for i, j in columns.products]
    return [middle for middle, _ in ends], [half for _, half in ends]


def _check_noise(ask: Ask, columns: Columns, answer: Moments) -> None:
    """Check that noises are no less than those of the shortest rows; those of public columns are none."""
    noise = np.array(answer.noise_sd)
    chosen = ask.mechanism is None or ask.summed
    gaussian = ask.mechanism == "gaussian" or (chosen and most_mu(ask) is not None)
    robust = len(options_of(ask).get("robust", ()))
    design = RowPlan(answer.rows, columns, budget_of(ask), "gaussian" if gaussian else "staircase", robust)
    hold(bool((noise == noise.T).all()) and isfinite(float(noise.max())))
    if Unit(ask.protects) is Unit.RECORD:
        hold(float(noise.min()) >= design.shortest_noise / SLACK)
    else:
        # What is left of the outcome is the last working column; it alone is private.
        hold(bool((noise[:-1, :-1] == 0).all()) and float(noise[-1].min()) > 0)
