"""Made-up times to an event: from who is free of it at the horizon, and who is lost from sight before."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np

from counterveil.data import Study
from counterveil.questions.plan.assumptions import Assumptions, out_of_range
from counterveil.questions.plan.simulated_study import People, simulate
from counterveil.settings.ranges import is_number

# Part of the people who are lost from sight before the horizon, where nothing is said.
_LOST = 0.2


def at_the_horizon(study: Study) -> Study:
    """Return the study whose outcome is being free of the event at the horizon; one without times as it is."""
    if study.event is None:
        return study
    return study.changed(event=None, outcome_range=(Fraction(0), Fraction(1)))


def lost_share(study: Study, given: float | None) -> float | None:
    """Return the share of people who are lost from sight, None for outcomes that are no times; raises CV-P700."""
    if study.event is None:
        if given is not None:
            raise out_of_range("lost", "lost= with question='survival' alone", given)
        return None
    lost = _LOST if given is None else given
    if not is_number(lost, 0.0, 1.0):
        raise out_of_range("lost", "a number from 0 to 1", given)
    return float(lost)


def simulated(study: Study, assumed: Assumptions, rows: int, generator: np.random.Generator) -> People:
    """Return made-up people of a study, with times where it declares them.

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
