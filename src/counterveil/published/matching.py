"""Matching with outcome privacy as it was published (PrivATE, label level): two Laplace draws at (k+1)B.

Whether the published claim is true for a study depends on its covariates and treatments alone, which are
public here: it is decided exactly, before anything is spent.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction

from counterveil.data import Table
from counterveil.data.features import require_covariates
from counterveil.errors import ParameterError, shown
from counterveil.inference import Uncertainty
from counterveil.numerics.linear_form import LinearForm, linear_form
from counterveil.privacy import Budget, Estimand, Proof, show
from counterveil.results.question import Question
from counterveil.results.result import Result
from counterveil.session import Custody, Gate, Plan, Released
from counterveil.statistics.linear.diagnostics import design_diagnostics
from counterveil.statistics.linear.matching import caveats, matching_details
from counterveil.statistics.linear.matching_design import (
    ADAPTIVE,
    AUTO,
    BEST,
    Limits,
    Matched,
    MatchingSettings,
    Scored,
    match,
    published_limits,
    scored,
)
from counterveil.statistics.linear.sensitivity import LinearEstimate

# What the published noise of limited matching hides, against what one outcome can move.


# Proof: capacity_matching.proof.md


@dataclass(frozen=True, slots=True)
class CapacityMatching:
    """Two draws, calibrated to (k+1) width / rows in each arm, on sum c_i y_i with public c.

    `limits`: k of the treated and of the control units, in units of neighbours. `largest`: max |c_i|.
    """

    width: Fraction
    rows: int
    limits: tuple[int, int]
    largest: Fraction

    @property
    def estimate(self) -> Fraction:
        """Largest change of the estimate."""
        return self.width * self.largest

    def scales(self, epsilon: Fraction) -> tuple[Fraction, Fraction]:
        """Return the published scales of the wider and of the narrower draw."""
        wide, narrow = max(self.limits) + 1, min(self.limits) + 1
        unit = self.width / (self.rows * epsilon)
        return wide * unit, narrow * unit

    def loss(self, epsilon: Fraction) -> Fraction:
        """Return the epsilon that the two draws really give; at most `epsilon` where the claim is true."""
        return self.estimate / self.scales(epsilon)[0]


PAGE = "published/capacity_matching.proof.md"


def matching_paper(custody: Custody, question: Question) -> Result:
    """Return the published form of the matching estimate, marked as refuted where its claim is false."""
    _check(question)
    require_covariates(custody.study, "matching")
    question = replace(question, law="laplace_pair")
    settings = replace(question.settings or MatchingSettings(), limit=_limit(question))
    table = custody.table
    design = scored(table, settings.penalty)
    epsilon = question.budget.epsilon
    limits = published_limits(design, settings, float(epsilon), feasible=False)
    matched = match(design, settings.neighbours, limits, Estimand.ATE.value)
    form = linear_form(matched.matching.coefficients)
    sensitivity = published_noise(table, form, limits, settings.neighbours)
    loss = sensitivity.loss(epsilon)
    proof = Proof.FINITE_SAMPLE if loss <= epsilon else Proof.REFUTED
    remark = _remark(proof, sensitivity, question)
    question.require_acceptance(proof, remark)
    # What is spent is what is lost, not what is claimed.
    spent = Budget(max(loss, epsilon))
    plan = Plan(spent, "laplace", (("effect", loss),))

    def compute(gate: Gate) -> dict[str, object]:
        released = release(gate, table, form, sensitivity, question.budget)
        cap = float(LinearEstimate(sensitivity.width, form.largest, form.squares, form.largest).variance_cap)
        return Result(
            estimate=float(released),
            uncertainty=Uncertainty(released.noise, cap, cap),
            guarantee=question.guarantee(custody, PAGE, (remark,), proof),
            spent=spent,
            estimand=question.estimand,
            method="matching on the propensity score, as published",
            treatment=table.study.treatment,
            outcome=table.study.outcome,
            level=question.level,
            releases=(("effect", f"sensitivity {float(sensitivity.estimate):.6g}, two Laplace draws"),),
            not_covered=caveats(table.study, matched),
            details=_details(design, matched, settings, float(loss)),
            diagnostics=design_diagnostics(
                design.features, design.treated, design.score, matched.matching.coefficients
            ),
            variance_apart=True,
        ).stored()

    return Result.from_dict(custody.run(question.request(plan, table.study), compute))


def published_noise(table: Table, form: LinearForm, limits: Limits, neighbours: int) -> CapacityMatching:
    """Return the published calibration beside the exact sensitivity."""
    lo, hi = table.study.outcome_range
    per_arm = [limit // neighbours for limit in limits if limit is not None]
    return CapacityMatching(hi - lo, table.rows, (per_arm[0], per_arm[1]), form.largest)


def release(
    gate: Gate, table: Table, form: LinearForm, sensitivity: CapacityMatching, claim: Budget
) -> Released:
    """Return the estimate plus a draw for each arm, of the published scales."""
    value = form.total(table.outcome) * table.outcome_unit
    _, narrow = sensitivity.scales(claim.epsilon)
    return gate.release_twice("effect", value, sensitivity.estimate, narrow)


def _remark(proof: Proof, sensitivity: CapacityMatching, question: Question) -> str:
    claim = show(question.budget.epsilon)
    reach = float(sensitivity.largest * sensitivity.rows)
    if proof is Proof.FINITE_SAMPLE:
        return (
            f"the published noise suffices for this study: one outcome moves n times the estimate by {reach:.4g} "
            f"of the range at most, and the noise is made for {max(sensitivity.limits) + 1}"
        )
    return (
        f"the published claim, epsilon = {claim}, is false for this study: where units ran out, one outcome moves "
        f"n times the estimate by {reach:.4g} of the range and the noise is made for "
        f"{max(sensitivity.limits) + 1}; the true epsilon is "
        f"{float(sensitivity.loss(question.budget.epsilon)):.4g}, and that is what is charged"
    )


def _details(
    design: Scored, matched: Matched, settings: MatchingSettings, loss: float
) -> dict[str, float | str]:
    return matching_details(design, matched, settings) | {"law": "two Laplace draws", "true_epsilon": loss}


def _limit(question: Question) -> int | str:
    settings = question.settings or MatchingSettings()
    if settings.limit in (None, BEST):
        raise ParameterError(
            "CV-P202",
            "the published form has no such limit",
            expected=f"limit={ADAPTIVE!r} or a whole number of at least 1",
            got=f"limit={shown(settings.limit)}",
            fix="leave the limit out, or leave variant out",
        )
    return ADAPTIVE if settings.limit == AUTO else settings.limit


def _check(question: Question) -> None:
    if question.estimand is not Estimand.ATE or not question.budget.pure:
        raise ParameterError(
            "CV-P203",
            "the published form of matching does not answer this question",
            expected="estimand='ATE' and delta=0",
            got=f"estimand={question.estimand.value!r}, {question.budget}",
            fix="leave variant out: the proved form takes every estimand and budget",
        )
