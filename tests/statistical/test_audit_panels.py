"""Releases of changes by period and of ratios under the auditor, on their worst neighbours.

The estimator's own release code hands over its numbers and their sensitivities, with what was released before held
fixed; the plan's own noise is added to all of them, many times at once. The weakened copy has noise for a third of
every sensitivity and must be caught.
"""

from dataclasses import replace
from fractions import Fraction

import pytest
from tests.statistical.chains import check_chain
from tests.unit.statistics.moments.fixed_outputs import FixedGate

import counterveil as cv
from counterveil.data import Table
from counterveil.data.panels import change_unit, period_totals
from counterveil.privacy import Budget
from counterveil.results.question import Question
from counterveil.session import Session
from counterveil.statistics.linear import event_study as outcome_level
from counterveil.statistics.moments import contrast, ratio
from counterveil.statistics.moments import event_study as record_level

CLAIM = Budget(2)
PANEL = cv.Study("t", "y", (0, 1), control=0, before=("a", "b"))
RATIO = cv.Study("t", "n", (0, 1), control=0, randomised=True, per="d", per_range=(0, 1))


def question(protects):
    asked = {"epsilon": CLAIM.epsilon, "delta": 0, "mechanism": "laplace", "request_id": None}
    return Question.ask(protects=protects, estimand="ATE", method="difference_in_means", level=0.95, **asked)


def attached(study, rows):
    names = ("t", "a", "b", "y") if study is PANEL else ("t", "n", "d")
    return Table.attach(dict(zip(names, map(list, zip(*rows, strict=True)), strict=True)), study)


# What each case hands over for release.


def periods_of_outcomes(rows):
    # A share of its own for the variances, whatever would be chosen for so few people.
    made = replace(
        outcome_level.mean_changes(attached(PANEL, rows), question("outcome")), share=Fraction(1, 4)
    )
    plan = outcome_level.periods_plan(question("outcome"), 3, 1, made.share, by_change=False)
    gate = FixedGate(plan, {})
    outcome_level.release(gate, made, PANEL.before, 1)
    return gate


def periods_of_records(rows):
    table = attached(PANEL, rows)
    plan = record_level.periods_plan(question("record"), table.rows, [0, 2])
    gate = FixedGate(plan, dict.fromkeys(("share", "centre 0", "centre 2"), Fraction(1, 2)))
    _, since = period_totals(table, 1)
    share = contrast.release_share(gate, since[1], None)
    for period in (0, 2):
        record_level.release(gate, plan, since[period], change_unit(PANEL), share, period)
    return gate


def sums_of(protects):
    def handed_over(rows):
        table, asked = attached(RATIO, rows), question(protects)
        with Session(table, RATIO, budget=CLAIM) as session:
            design = ratio.Design.of(session, asked)
        chosen = (table.treated, ~table.treated)
        arms = [ratio.arm_sums(table.outcome[part], table.measures[0][part]) for part in chosen]
        answers = {"sums of both arms": [1, 2, 1, 2], "sums of treated": [1, 2], "sums of control": [1, 2]}
        gate = FixedGate(ratio.ratio_plan(asked), answers)
        ratio.release(gate, design, arms, table.rows)
        return gate

    return handed_over


# What is handed over, the two values of the first record that move it furthest, and the other records.
CASES = {
    "periods, outcomes": (
        periods_of_outcomes,
        ((1, 0, 0, 0), (1, 1, 1, 1)),
        [(1, 0, 0, 0), (0, 0, 0, 0), (0, 1, 1, 1)],
    ),
    "periods, records": (
        periods_of_records,
        ((1, 0, 1, 0), (1, 1, 0, 1)),
        [(1, 0, 0, 0), (0, 1, 1, 1), (0, 0, 0, 0)],
    ),
    "ratio, outcomes": (sums_of("outcome"), ((1, 0, 0), (1, 1, 1)), [(1, 0, 0), (0, 1, 1), (0, 0, 1)]),
    "ratio, records": (
        sums_of("record"),
        ((1, 1, 1), (0, 1, 1)),
        [(1, 0, 0), (1, 0, 1), (0, 0, 0), (0, 1, 0)],
    ),
}


def check(case, samples):
    handed_over, first, rest = CASES[case]
    check_chain(CLAIM, handed_over, tuple((one, *rest) for one in first), samples, 5)


@pytest.mark.parametrize("case", CASES)
def test_keeps_its_claim_and_a_third_of_the_noise_does_not(case):
    # 1,000 samples tell a third of the noise from all of it in three cases of four.
    check(case, 4000)


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES)
def test_no_release_breaks_its_claim_over_more_samples(case):
    check(case, 200_000)
