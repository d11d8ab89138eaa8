"""More numbers of made-up people: several outcomes, what was measured before, periods, denominators and receipts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from math import sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri

from counterveil.data import Binary, Study
from counterveil.data.outcomes import Before
from counterveil.numerics.arrays import Floats
from counterveil.questions.plan.assumptions import Assumptions, between, out_of_range
from counterveil.questions.plan.simulated_study import People, both_outcomes, luck_of, simulate_around
from counterveil.questions.plan.times import simulated
from counterveil.settings.ranges import is_number

# Without better knowledge: how far a person's numbers go together, and how many receive what they are assigned.
_TOGETHER, _COMPLYING = 0.5, 0.7
# What may be given for every outcome by its name.
_BY_OUTCOME = ("mean", "sd", "effect", "binary")
# The declared range is taken as six standard deviations wide, as that of outcomes is.
_RANGE_IN_SDS = 6
_UNCERTAIN = 1e-12


def assumed_of(
    study: Study,
    given: Mapping[str, Any],
    together: float | None,
    denominator: Any,
    complying: float | None,
    received: str | None,
) -> Assumptions:
    """Return the assumptions of a study whose people have further numbers; raises CV-P700.

    Of a study of several outcomes, `given` may hold numbers by outcome, and its own are those of the first.
    """
    names = (study.outcome,) if study.several is None else study.several.names
    first, *others = ({name: _of(given, name, one, names) for name in given} for one in names)
    found = Assumptions.of(study, **first)
    more: dict[str, Any] = {}
    if study.several is not None:
        ranges = dict(study.several.ranges)
        for name, own in zip(names[1:], others, strict=True):
            one = Assumptions.of(study.changed(several=None, outcome=name, outcome_range=ranges[name]), **own)
            more[name] = {field: getattr(one, field) for field in _BY_OUTCOME}
    several = study.several is not None or study.per is not None
    return replace(
        found,
        others=more,
        together=_share("together", together, _TOGETHER, several, "a study with outcomes= or per="),
        denominator=_denominator(study, denominator),
        complying=_share("complying", complying, _COMPLYING, received is not None, "question='compliance'"),
    )


def _of(given: Mapping[str, Any], name: str, outcome: str, names: tuple[str, ...]) -> Any:
    """Return what is given for one outcome: its own number, or one that holds for all of them."""
    value = given[name]
    if name not in _BY_OUTCOME or not isinstance(value, Mapping):
        return value
    wrong = [key for key in value if key not in names]
    if wrong:
        raise out_of_range(name, f"numbers of {', '.join(map(repr, names))}", wrong[0])
    return value.get(outcome, 0.0 if name == "effect" else None)


def _share(name: str, given: float | None, usual: float, meant: bool, where: str) -> float | None:
    """Return a share that is of use, None where it is none; raises CV-P700."""
    if not meant:
        if given is not None:
            raise out_of_range(name, f"{name}= with {where} alone", given)
        return None
    return between(name, usual if given is None else given, 0.0, 1.0)


def _denominator(study: Study, given: Any) -> list[float] | None:
    """Return mean and standard deviation of denominators, None where there are none; raises CV-P700."""
    if study.per is None:
        if given is not None:
            raise out_of_range("denominator", "denominator= in a study with per= alone", given)
        return None
    low, high = map(float, study.per.range)
    numbers = [(low + high) / 2, (high - low) / _RANGE_IN_SDS] if given is None else given
    if (
        not isinstance(numbers, list | tuple)
        or len(numbers) != 2
        or not is_number(numbers[0], low, high)
        or not is_number(numbers[1], 0, (high - low) / 2)
    ):
        raise out_of_range("denominator", f"(mean, standard deviation) inside [{low:g}, {high:g}]", given)
    return [float(number) for number in numbers]


def people_of_question(
    study: Study,
    assumed: Assumptions,
    by_period: bool,
    received: str | None,
    rows: int,
    generator: np.random.Generator,
) -> People:
    """Return made-up people with all numbers that a question is about."""
    if received is not None:
        return _receiving(study, assumed, received, rows, generator)
    if study.several is not None:
        return _with_outcomes(study, assumed, rows, generator)
    if study.per is not None:
        return _with_denominators(study, assumed, rows, generator)
    if by_period and study.before is not None:
        return _by_period(study, study.before, assumed, rows, generator)
    return simulated(study, assumed, rows, generator)


def _with_outcomes(study: Study, assumed: Assumptions, rows: int, generator: np.random.Generator) -> People:
    """Return people with all outcomes of a study, and what was measured of them before."""
    assert study.several is not None
    people, index, luck = simulate_around(study, rows, assumed, generator)
    ranges, earlier = dict(study.several.ranges), dict(study.several.earlier)
    normal = _normal(luck, assumed)
    kept, frame = people, dict(people.frame)
    others: dict[str, tuple[Floats, Floats]] = {}
    for name in study.several.names:
        own, ends = assumed, (float(ranges[name][0]), float(ranges[name][1]))
        if name in assumed.others:
            own = replace(assumed, **assumed.others[name])
            found = _luck(own, _like(normal, assumed.together or 0.0, generator))
            without, treated = both_outcomes(ends, index, own, found)
            frame[name] = np.where(kept.treated, treated, without)
            others[name] = frame[name], treated - without
        if name in earlier:
            mine = normal if name == study.outcome else _normal(found, own)
            # What covariates explain is in both numbers, and the rest goes together by what is left.
            left = max((assumed.together or 0.0) - own.explained, 0.0) / max(1 - own.explained, _UNCERTAIN)
            before = _luck(own, _like(mine, min(left, 1.0), generator))
            frame[earlier[name]] = both_outcomes(ends, index, own, before)[0]
    return replace(people, frame=frame, others=others)


def _normal(luck: Floats, assumed: Assumptions) -> Floats:
    return np.asarray(ndtri(np.clip(luck, _UNCERTAIN, 1 - _UNCERTAIN))) if assumed.binary else luck


def _luck(assumed: Assumptions, normal: Floats) -> Floats:
    return np.asarray(ndtr(normal)) if assumed.binary else normal


def _like(normal: Floats, correlation: float, generator: np.random.Generator) -> Floats:
    """Return normal numbers of this correlation with others."""
    own = generator.standard_normal(len(normal))
    return np.asarray(correlation * normal + sqrt(1 - correlation**2) * own)


def _with_denominators(
    study: Study, assumed: Assumptions, rows: int, generator: np.random.Generator
) -> People:
    """Return people with numerators, as outcomes are, and denominators that go together with them."""
    assert study.per is not None
    assert assumed.denominator is not None
    people, _, luck = simulate_around(study, rows, assumed, generator)
    (mean, sd), (low, high) = assumed.denominator, map(float, study.per.range)
    along = _like(_normal(luck, assumed), assumed.together or 0.0, generator)
    below = np.clip(mean + sd * along, low, high)
    # An effect is one on sums over sums.
    return replace(
        people,
        frame=people.frame | {study.per.column: below},
        gain=people.gain / float(below.mean()),
        outcome=people.outcome / float(below.mean()),
    )


def _by_period(
    study: Study, before: Before, assumed: Assumptions, rows: int, generator: np.random.Generator
) -> People:
    """Return people with a measurement in each period, whose changes from any to any vary as assumed."""
    people, index, _ = simulate_around(study, rows, assumed, generator)
    half = replace(assumed, sd=assumed.sd / sqrt(2), explained=min(2 * assumed.explained, 0.99))
    low, high = map(float, before.levels)
    labels, measured = before.labels(study.outcome), []
    for place in range(len(labels)):
        if place < before.earlier:
            change = half.sd * generator.standard_normal(rows)
        else:
            ends = study.outcome_bounds.floats()
            none, treated = both_outcomes(ends, index, half, luck_of(half, rows, generator))
            change = np.where(people.treated, treated, none)
        middle = sum(map(float, before.range)) / 2
        measured.append(np.clip(middle + change, low, high))
    frame: dict[str, NDArray[Any]] = dict(people.frame)
    if before.time is None:
        frame |= dict(zip(before.columns, measured, strict=False)) | {study.outcome: measured[-1]}
    else:
        frame[study.outcome] = np.concatenate(measured)
    return replace(people, frame=frame)


def _receiving(
    study: Study, assumed: Assumptions, received: str, rows: int, generator: np.random.Generator
) -> People:
    """Return people of whom some receive what they are assigned, and the others alike in both arms.

    The effect is that of receiving, and compliers are those whom assignment moves.
    """
    domain = study.covariates.get(received)
    if not isinstance(domain, Binary):
        raise out_of_range("received", "a covariate declared with cv.Binary(...)", received)
    others = {name: kind for name, kind in study.covariates.items() if name != received}
    people, _, _ = simulate_around(study.changed(covariates=others), rows, assumed, generator)
    fate = generator.random(rows)
    share = assumed.complying or 0.0
    complies, always = fate < share, fate > (1 + share) / 2
    takes = np.where(complies, people.treated, always)
    without = people.outcome - people.gain * people.treated
    outcome = without + people.gain * takes
    labels = np.empty(2, dtype=object)
    labels[:] = domain.labels
    frame = people.frame | {study.outcome: outcome, received: labels[takes.astype(np.intp)]}
    # What is estimated is the effect on compliers.
    gain = np.full(rows, float(people.gain[complies].mean()) if complies.any() else 0.0)
    return replace(people, frame=frame, outcome=outcome, gain=gain)
