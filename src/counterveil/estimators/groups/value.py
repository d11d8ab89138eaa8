"""The value of a public rule: what treating whom it names gains over treating nobody and over treating everybody."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from counterveil.accounting import Ledger
from counterveil.curator import BitSource, Custody, Gate
from counterveil.data import Study, silence
from counterveil.estimators.ate.doubly_robust_releases import Part
from counterveil.estimators.groups.form_choice import chosen_form
from counterveil.estimators.groups.policy import Policy
from counterveil.estimators.groups.question import ask_records
from counterveil.estimators.groups.result import GroupEffect
from counterveil.estimators.groups.rowwise import RowNumbers
from counterveil.estimators.groups.scoring import Codes, Scoring, scoring
from counterveil.estimators.groups.settings import GroupsSettings
from counterveil.estimators.groups.sums import EffectSums, released_sums
from counterveil.estimators.groups.value_result import PolicyValue
from counterveil.estimators.groups.wording import LEARNED, caveats, record_details, release_words
from counterveil.estimators.question import Question
from counterveil.privacy import Number


def policy_value(
    data: object,
    study: Study,
    *,
    policy: Any,
    cost: Number | None = None,
    protects: str = "record",
    epsilon: Number,
    delta: Number = 0,
    method: str = "auto",
    level: float = 0.95,
    settings: GroupsSettings | None = None,
    ledger: str | Path | Ledger | None = None,
    dataset: str | None = None,
    request_id: str | None = None,
    noise: BitSource | None = None,
) -> PolicyValue:
    """Return what a public rule gains over treating nobody and over treating everybody, per person.

    Args:
        data: as for `counterveil.ate`.
        study: column roles, public bounds and categories.
        policy: a `Policy`, or a function of one row's covariates (a mapping to arrays of length one).
        cost: cost of treating one person, in units of the outcome; None takes the policy's own, or 0.
        protects: "record", everything about a person.
        epsilon: privacy loss to spend.
        method: "auto", "scores" (trials) or "adjusted" (covariates).
        level: confidence level of the intervals, which include the privacy noise.
        settings: `GroupsSettings`.
        delta, ledger, dataset, request_id, noise: as for `counterveil.ate`.
    """
    question = ask_records(
        study,
        "policy_value",
        method,
        protects=protects,
        epsilon=epsilon,
        delta=delta,
        level=level,
        settings=settings,
        request_id=request_id,
    )
    rule = checked_policy(policy, study)
    price = rule.price(cost)
    budget = None if ledger is not None else question.budget
    with Custody(data, study, budget=budget, ledger=ledger, dataset=dataset, noise=noise) as custody:
        return answer_policy(custody, question, rule, price)


def checked_policy(policy: Any, study: Study) -> Policy:
    """Return the rule, or refuse what is none for this study."""
    rule = Policy.of(policy)
    rule.check(study)
    return rule


@silence()
def answer_policy(custody: Custody, question: Question, rule: Policy, cost: float) -> PolicyValue:
    """Return the value of a checked rule."""
    custody.admit(question.uses(custody.study, "policy_value"))
    custody.attach_batches()
    question = chosen_form(custody.study, question, custody.batches.rows, None, 1)
    found = scoring(custody.study, custody.batches, question)
    flags = RowNumbers(lambda columns: rule.decide(columns).astype(np.float64))

    def place(part: Part) -> Codes:
        return flags(part).astype(np.int64)

    def compute(gate: Gate) -> dict[str, object]:
        sums = released_sums(found, gate, place, 2, cost)
        return _result(custody, question, rule, found, sums, cost).stored()

    request = question.request(
        found.plan,
        custody.study,
        question="policy_value",
        policy=rule.described(question.request_id),
        cost=cost,
    )
    return PolicyValue.from_dict(custody.run(request, compute))


def _result(
    custody: Custody, question: Question, rule: Policy, found: Scoring, sums: EffectSums, cost: float
) -> PolicyValue:
    study = custody.study
    wanted = {
        "policy - nobody": np.array([0.0, 1.0]),
        "policy - everybody": np.array([-1.0, 0.0]),
        "everybody - nobody": np.array([1.0, 1.0]),
    }
    share = float(np.clip(sums.sizes[1] / sums.rows, 0.0, 1.0))
    gains = tuple(
        GroupEffect(name, sums.rows, 0.0, sums.sum(weights), question.level, len(wanted))
        for name, weights in wanted.items()
    )
    return PolicyValue(
        gains=gains,
        policy=rule.name,
        cost=cost,
        share=share,
        guarantee=question.guarantee(custody, found.pages, rule.remarks, laws=()),
        method=f"mean {'doubly robust ' if question.method == 'adjusted' else ''}score of those treated",
        **question.terms(study),
        releases=release_words(found),
        not_covered=(*caveats(study, question.method), *(() if rule.conditions is not None else (LEARNED,))),
        details=record_details(found),
    )
