"""The choice of a method for effects as functions, from public numbers alone."""

from __future__ import annotations

from counterveil.curator import Custody
from counterveil.estimators.cate.arms import arms
from counterveil.estimators.cate.design import choose_design, strength
from counterveil.estimators.cate.interacted import interacted
from counterveil.estimators.cate.model import CateModel
from counterveil.estimators.cate.question import CateQuestion
from counterveil.estimators.cate.settings import CateSettings

# Rows times mu a function from which the doubly robust regression loses nothing beside two regressions by arm.
_STRONG = 150.0


def automatic(custody: Custody, question: CateQuestion) -> CateModel:
    """Return two regressions by arm where rows or budget are few, the interacted regression where there are many.

    Either says itself where effects that differ are not affordable, and then gives one number.
    """
    settings = question.settings or CateSettings()
    rows, budget = custody.table.rows, question.budget
    design = choose_design(custody.study, rows, budget, settings)
    strong = not budget.pure and strength(rows, budget, design.basis.size) >= _STRONG
    return (interacted if strong and design.affordable else arms)(custody, question)
