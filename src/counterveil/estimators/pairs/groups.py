"""Effects of public groups where a row's treatment and outcome are private together, covariates being public.

    effect of group g = average of doubly robust scores (`scores.py`) over the rows of g,

with models that are fitted to all rows. In: the group of every row, which follows from public covariates, and
released sums. Out: effects in units of the outcome, with the number of people in each group.

A pair enters the score of one group alone, and a replaced pair stays in its group, so that the effects of all
groups cost what one does. Proof: "Groups" of `rows/pairs/pair_scores.proof.md`; models:
`rows/pairs/pair_moments.proof.md`. Groups of fewer than `MIN_GROUP_ROWS` people are left out, as means of
fewer scores are not near normal; privacy does not depend on that.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from counterveil.errors import refusal
from counterveil.estimators.method import Prepared
from counterveil.estimators.outcome_groups import Answer, Shape
from counterveil.estimators.pairs.budget import chosen
from counterveil.estimators.pairs.effect import pair_effects
from counterveil.estimators.pairs.provenance import proved, provenance, with_covariates
from counterveil.numerics.arrays import Integers
from counterveil.privacy import Estimand
from counterveil.results.answering import Facts
from counterveil.results.effect import Effect, Linear
from counterveil.results.question import Question
from counterveil.rows.public import PublicData
from counterveil.session import Gate

# Rows of a group that has an effect: means of fewer scores are not near normal.
MIN_GROUP_ROWS = 30


def pair_groups(
    public: PublicData,
    question: Question,
    *,
    names: Sequence[str],
    codes: Integers,
    shape: Shape[Answer],
    by: tuple[str, ...] = (),
) -> Prepared[Answer]:
    """Return the effects of the groups that have enough rows; `codes` are the places of rows' groups in `names`.

    Raises CV-S110 where too few have.
    """
    columns = public.columns
    sizes = np.bincount(codes, minlength=len(names))
    places = np.flatnonzero(sizes >= MIN_GROUP_ROWS)
    if len(places) < (len(names) if shape.every else 1):
        code = "CV-S110c" if shape.every else "CV-S110b"
        raise refusal(code, layout=", ".join(names), fewest=f"{MIN_GROUP_ROWS} people")
    rows = [np.flatnonzero(codes == place) for place in places]
    question = with_covariates(columns.study, replace(question, method="adjusted"))
    choice = chosen(columns, question.budget, effects=len(places))
    width = float(public.width)

    def estimate(gate: Gate) -> Facts:
        effects = tuple(
            Effect(
                names[int(place)],
                Linear(effect.estimate, effect.uncertainty, (-width, width)),
                question.level,
                len(places),
                float(sizes[place]),
            )
            for place, effect in zip(
                places, pair_effects(gate, columns, choice, Estimand.ATE, rows), strict=True
            )
        )
        facts = Facts(
            provenance(columns.study, choice, {}),
            groups=effects,
            by=by,
            left_out=tuple(name for place, name in enumerate(names) if place not in places),
        )
        return shape.made(facts)

    return Prepared(
        question=question,
        plan=choice.plan,
        estimate=estimate,
        answer=shape.kind,
        description={"question": shape.question, **shape.said},
        **proved(choice),
    )
