"""A study of loose facts, for tests and experiments that vary one of them at a time.

`cv.Study` takes facts that belong together as one part. Here each is an argument of its own, so that a table of cases
can add or replace a single one: `study_of("arm", "score", (0, 10), **case)`.
"""

from __future__ import annotations

from typing import Any

import counterveil as cv

_TREATMENT = ("treated", "control", "arms", "reference", "others")
_CHANGE = ("before", "before_range", "change_range", "time", "after")
_EVENT = ("horizon", "grid", "causes")


def study_of(
    treatment: Any = None,
    outcome: Any = None,
    outcome_range: Any = None,
    covariates: Any = None,
    **facts: Any,
) -> cv.Study:
    """Return the study of loose facts; None is the same as not said."""
    said = {name: value for name, value in facts.items() if value is not None}
    arms = {name: said.pop(name) for name in _TREATMENT if name in said}
    study = cv.Study(
        treatment=cv.Treatment(treatment, **arms) if arms else treatment,
        outcome=_outcome(outcome, outcome_range, said),
        covariates=covariates,
        assignment=_assignment(said),
        **_rows(said),
        **{name: said.pop(name) for name in ("missing", "where", "estimated") if name in said},
    )
    if said:
        raise TypeError(f"facts that belong to nothing: {', '.join(said)}")
    return study


def _outcome(outcome: Any, ends: Any, said: dict[str, Any]) -> Any:
    event, change = ({name: said.pop(name) for name in names if name in said} for names in (_EVENT, _CHANGE))
    if "outcomes" in said:
        return cv.Outcomes(said.pop("outcomes"), baseline=said.pop("baseline", None))
    if "event" in said:
        return cv.TimeToEvent(outcome, said.pop("event"), **event)
    if "denominator" in said:
        return cv.Ratio(outcome, ends, said.pop("denominator"), said.pop("denominator_range", None))
    if change:
        return cv.Change(outcome, ends, **({"before": None} | change))
    return cv.Outcome(outcome, ends) if isinstance(outcome, str) else outcome


def _assignment(said: dict[str, Any]) -> Any:
    randomised, share, score = (said.pop(name, None) for name in ("randomised", "treated_share", "score"))
    if score is not None:
        return cv.Propensity(score)
    if randomised or share is not None:
        return cv.Trial(share=share)
    return None if randomised is None else cv.Observational()


def _rows(said: dict[str, Any]) -> dict[str, Any]:
    names = {"order": "order", "max_rows_per_person": "max_rows"}
    first = {new: said.pop(old) for old, new in names.items() if old in said}
    person, cluster = said.pop("person", None), said.pop("cluster", None)
    of_people, of_clusters = said.pop("per_person", None), said.pop("per_cluster", None)
    whole, assigned = said.pop("protects_cluster", False), said.pop("assigned_by_cluster", False)
    rows: dict[str, Any] = {}
    if person is not None:
        rows["people"] = cv.People(person, rules=of_people, **({} if whole else first))
    if cluster is not None:
        more = first if whole else {}
        rows["clusters"] = cv.Clusters(cluster, protected=whole, assigned=assigned, rules=of_clusters, **more)
    return rows
