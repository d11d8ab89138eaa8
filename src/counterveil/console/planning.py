"""The page of a plan: how long intervals would be at every epsilon, from simulated studies."""

from __future__ import annotations

from typing import Any

import counterveil.questions.plan as plans
from counterveil.console.visit import Page, Visit
from counterveil.console.workspace import DataSet
from counterveil.errors import refusal
from counterveil.report import plan_plot

# A page that somebody waits for: more people or studies belong on the command line.
_MOST_ROWS, _MOST_DRAWS, _MOST_EPSILONS = 200_000, 50, 12
# Of one simulated study, so that it fits into memory: people times columns.
_MOST_CELLS = 20_000_000
_USUAL = "0.1 0.2 0.5 1 2 5"
_FIELDS = (
    "rows",
    "epsilons",
    "draws",
    "effect",
    "sd",
    "protects",
    "method",
    "estimand",
    "data",
    "half_width",
)


def plan_form(visit: Visit) -> Page:
    """Return the form of a plan with nothing planned yet."""
    return _page(visit, None)


def plan(visit: Visit) -> Page:
    """Return what simulated studies would answer; no private row is read and nothing is spent."""
    study = visit.workspace.study(visit.path["name"], "proposed" in visit.form).study()
    words = (visit.word("epsilons") or _USUAL).replace(",", " ").split()
    if len(words) > _MOST_EPSILONS:
        raise refusal("CV-W004", expected=f"at most {_MOST_EPSILONS} values of epsilon", got=f"{len(words)}")
    rows, columns = visit.whole("rows", 1000, _MOST_ROWS), len(study.columns)
    if rows * columns > _MOST_CELLS:
        raise refusal(
            "CV-W004",
            expected=f"rows: at most {_MOST_CELLS // columns:,} with {columns} columns",
            got=f"{rows:,}",
        )
    half, sd, method = visit.word("half_width"), visit.word("sd"), visit.word("method") or "auto"
    found = plans.plan(
        study,
        rows=rows,
        protects=None if method == plans.ALL else visit.word("protects") or "outcome",
        epsilon=words,
        method=method,
        estimand=visit.word("estimand") or "ATE",
        effect=visit.number("effect", 0.0),
        sd=visit.number("sd", 0.0) if sd else None,
        draws=visit.whole("draws", 5, _MOST_DRAWS),
        half_width=visit.number("half_width", 0.0) if half else None,
    )
    return _page(visit, found)


def _page(visit: Visit, found: Any) -> Page:
    given = {name: visit.word(name) for name in _FIELDS}
    proposed = "proposed" in visit.form or "proposed" in visit.query
    datasets = visit.workspace.datasets()[0]
    facts: dict[str, Any] = {
        "study": visit.workspace.study(visit.path["name"], proposed),
        "given": given | {"epsilons": given["epsilons"] or _USUAL},
        "datasets": datasets,
        "plan": None,
    }
    if found is not None:
        facts |= _planned(found, datasets, given["data"])
    return Page("plan.html", facts)


def _planned(found: Any, datasets: list[DataSet], data: str) -> dict[str, Any]:
    """Return what a page shows of a plan: table, curves, and what each epsilon is of the budget that is left."""
    left = next((each for each in datasets if each.key == data), None)
    remaining = None if left is None or found.protects is None else left.account.left(found.protects)
    # Epsilon is chosen along one line.
    points = [
        one
        | {
            "share": None
            if remaining is None or not remaining.epsilon
            else one["epsilon"] / float(remaining.epsilon),
        }
        for one in found.points
        if not found.public
    ]
    return {
        "plan": found.view(full=True),
        "curves": plan_plot(found.points, found.without_privacy, found.beside),
        "points": points,
        "remaining": None if remaining is None else str(remaining),
    }
