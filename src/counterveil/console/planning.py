"""The page of a plan: how wide intervals would be at every level, by method and epsilon, from simulated studies."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import counterveil.questions.plan as plans
from counterveil.console.studies import StudyLine, fitting
from counterveil.console.visit import Page, Visit
from counterveil.data import Study
from counterveil.errors import CounterveilError, refusal
from counterveil.privacy import Unit
from counterveil.report.numbers import rounded

# A page that somebody waits for: more people or studies belong on the command line.
_MOST_ROWS, _MOST_DRAWS, _MOST_EPSILONS = 200_000, 50, 12
# Of one simulated study, so that it fits into memory: people times columns.
_MOST_CELLS = 20_000_000
_USUAL = "0.1 0.2 0.5 1 2 5"
_FIELDS = ("rows", "epsilons", "delta", "draws", "effect", "sd", "estimand", "data")


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
    terms = {
        "rows": rows,
        "epsilon": words,
        "delta": visit.word("delta") or 0,
        "effect": visit.number("effect", 0.0),
        "sd": visit.number("sd", 0.0) if visit.word("sd") else None,
        "draws": visit.whole("draws", 3, _MOST_DRAWS),
    }
    return _page(visit, _planned(study, visit.word("estimand") or "ATE", terms))


def _planned(study: Study, estimand: str, terms: dict[str, Any]) -> list[plans.Plan]:
    """Return plans of all levels: every method for an average effect, the automatic one for other questions."""
    question = "survival" if study.event is not None else "outcomes" if study.several is not None else "arms"
    if question == "arms" and study.arms is None:
        return [plans.plan(study, method=plans.ALL, estimand=estimand, **terms)]
    found: list[plans.Plan] = []
    refused: list[CounterveilError] = []
    for unit in Unit:
        try:
            found.append(plans.plan(study, question=question, protects=unit.value, **terms))
        except CounterveilError as error:
            refused.append(error)
    if not found:
        raise refused[0]
    return found


def _page(visit: Visit, found: list[plans.Plan] | None) -> Page:
    given = {name: visit.word(name) for name in _FIELDS}
    proposed = "proposed" in visit.form or "proposed" in visit.query
    text = visit.workspace.study(visit.path["name"], proposed)
    line = StudyLine(text.name, proposed, "", 0, frozenset(text.study().read_columns))
    datasets = [each for each in visit.workspace.datasets()[0] if fitting([line], visit, each.source)]
    chosen = next((each for each in datasets if each.key == given["data"]), None)
    loose = visit.workspace.loose() if visit.person.steward else {}
    given["epsilons"] = given["epsilons"] or _USUAL
    facts: dict[str, Any] = {
        "study": text,
        "given": given,
        "datasets": datasets,
        "chosen": chosen,
        "plan": None,
    }
    facts["loose"] = [name for name, source in loose.items() if fitting([line], visit, source)]
    if found is not None:
        left = {} if chosen is None else {unit.value: chosen.account.left(unit) for unit in Unit}
        facts |= _compared([row for each in found for row in each.tidy()], left)
        views = [(each.protects, each.view()) for each in found]
        facts |= {"plan": views[0][1], "views": views, "compared": found[0].protects is None}
    return Page("plan.html", facts)


def _compared(rows: Iterable[dict[str, Any]], left: dict[str, Any]) -> dict[str, Any]:
    """Return a line for each level and method, with what each epsilon gives, and what lines assume by letters."""
    lines: dict[tuple[str, str], dict[str, Any]] = {}
    letters: dict[str, str] = {}
    epsilons: dict[float, None] = {}
    for row in rows:
        epsilons[row["epsilon"]] = None
        line = lines.setdefault(
            (row["protects"], row["method"]), {"cells": {}, "points": [], "assumes": [], "chosen": False}
        )
        half = row["half_width"]
        line["chosen"] |= row["chosen_by_auto"]
        if half is None or half == float("inf"):
            line["cells"][row["epsilon"]] = str(row["refusal"] or "no end").partition(":")[0]
            continue
        mark = " *" * row["chosen_by_auto"]
        line["cells"][row["epsilon"]] = rounded(half, half) + mark
        line["points"].append([row["epsilon"], half])
        letter = letters.setdefault(row["assumes"], chr(ord("a") + len(letters)))
        line["assumes"] += [letter] if letter not in line["assumes"] else []
    budgets = {level: float(budget.epsilon) for level, budget in left.items()}
    return {
        "epsilons": list(epsilons),
        "lines": [
            line | {"protects": level, "method": method, "left": budgets.get(level)}
            for (level, method), line in lines.items()
        ],
        "letters": {letter: text for text, letter in letters.items()},
    }
