"""Further numbers of made-up people: several outcomes, earlier values, periods, denominators, receipts and times."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from math import sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri

from counterveil.data import Binary, Study
from counterveil.data.outcomes import Before
from counterveil.numerics.arrays import Floats
from counterveil.questions.plan.assumptions import Assumptions, out_of_range
from counterveil.questions.plan.simulated_study import (
    People,
    both_outcomes,
    luck_of,
    simulate,
    simulate_around,
)

# How near to certain a chance is taken at most.
_UNCERTAIN = 1e-12


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
    return _with_times(study, assumed, rows, generator)


def _with_outcomes(study: Study, assumed: Assumptions, rows: int, generator: np.random.Generator) -> People:
    """Return people with all outcomes of a study, and what was measured of them before."""
    assert study.several is not None
    people, index, luck = simulate_around(study, rows, assumed, generator)
    ranges, earlier, left = dict(study.several.ranges), dict(study.several.earlier), _left(assumed)
    first = _normal(luck, assumed)
    # All outcomes lean on one number alike, so that any two of them go together as far.
    shared, frame = _like(first, sqrt(left), generator), dict(people.frame)
    others: dict[str, tuple[Floats, Floats]] = {}
    for name in study.several.names:
        own, mine, ends = assumed, first, (float(ranges[name][0]), float(ranges[name][1]))
        if name in assumed.others:
            own, mine = replace(assumed, **assumed.others[name]), _like(shared, sqrt(left), generator)
            without, treated = both_outcomes(ends, index, own, _luck(own, mine))
            frame[name] = np.where(people.treated, treated, without)
            others[name] = frame[name], treated - without
        if name in earlier:
            before = _luck(own, _like(mine, left, generator))
            frame[earlier[name]] = both_outcomes(ends, index, own, before)[0]
    return replace(people, frame=frame, others=others)


def _left(assumed: Assumptions) -> float:
    """Return the correlation of what covariates do not explain: what they explain is in all numbers alike."""
    left = max((assumed.together or 0.0) - assumed.explained, 0.0) / max(1 - assumed.explained, _UNCERTAIN)
    return min(left, 1.0)


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
    people, index, luck = simulate_around(study, rows, assumed, generator)
    (mean, sd), ends = assumed.denominator, study.per.range
    along = _like(_normal(luck, assumed), _left(assumed), generator)
    # Covariates explain as much of them as of numerators, and treatment does not move them.
    alike = replace(assumed, mean=mean, sd=sd, effect=0.0, binary=False)
    below = both_outcomes((float(ends[0]), float(ends[1])), index, alike, along)[0]
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


def at_the_horizon(study: Study) -> Study:
    """Return the study whose outcome is being free of the event at the horizon; one without times as it is."""
    if study.event is None:
        return study
    return study.changed(event=None, outcome_range=(Fraction(0), Fraction(1)))


def _with_times(study: Study, assumed: Assumptions, rows: int, generator: np.random.Generator) -> People:
    """Return people with times to an event where a study declares them.

    Events lie evenly between 0 and the horizon. Those who are lost from sight are so at an even time as well.
    """
    people = simulate(at_the_horizon(study), rows, assumed, generator)
    event = study.event
    if event is None:
        return people
    horizon = float(event.horizon)
    happens = np.where(people.outcome > 0, np.inf, horizon * generator.random(rows))
    leaves = np.where(
        generator.random(rows) < (assumed.lost or 0.0), horizon * generator.random(rows), np.inf
    )
    # Beyond the horizon nobody is looked at.
    time = np.minimum(np.minimum(happens, leaves), 2 * horizon)
    columns = {study.outcome: time, event.column: (happens <= np.minimum(leaves, horizon)).astype(np.int64)}
    return replace(people, frame=people.frame | columns)
