"""Matching where the whole record is private (PrivATE's sample level): `published.record_matching` as it can be proved.

Weights of the propensity model, everyone's score and everyone's treatment are released with noise; the
matching works on what was released, and one weighted sum of outcomes is released in the end.

What comes out is an effect that randomized response has shrunk. No interval for the effect itself is
valid: the result says so first.
"""

from __future__ import annotations

# Proof: record_matching.proof.md
from dataclasses import dataclass
from fractions import Fraction
from math import ceil, exp, floor

import numpy as np

from counterveil.data import Table
from counterveil.data.features import UnitFeatures, require_covariates
from counterveil.errors import refusal
from counterveil.inference.uncertainty import Uncertainty
from counterveil.numerics.arrays import Floats
from counterveil.numerics.matching import MatchedUnits, adaptive_limit, arm_limits, matching_coefficients
from counterveil.numerics.products import linear_form
from counterveil.numerics.propensity import checked_tolerance, fit_propensity, logistic_scores
from counterveil.numerics.public_choices import LEAST_SHARE
from counterveil.privacy import Estimand, Unit, caveats, exact
from counterveil.privacy.caveats import Caveat, Fact, Target
from counterveil.published.asking import EffectForm
from counterveil.results.answering import Facts, settled
from counterveil.results.question import Question
from counterveil.results.result import Result
from counterveil.session import BaseSession, Gate, Kind, Plan, Released, Responses
from counterveil.statistics.linear.sensitivity import LinearEstimate
from counterveil.statistics.moments.sensitivity import penalised_fit


@dataclass(frozen=True, slots=True)
class PaperNumbers:
    """The numbers of the paper: neighbours, penalty (0.1 is customary), h of equation 11, and parts of the budget."""

    neighbours: int = 5
    penalty: float = 0.1
    h: float = 0.001
    weights: float = 0.05
    scores: float = 0.05
    treatments: float = 0.7
    effect: float = 0.2

    def shares(self) -> dict[str, Fraction]:
        """Return the parts of the budget; only their proportions count."""
        return {
            name: exact(getattr(self, name), name) for name in ("weights", "scores", "treatments", "effect")
        }


USUAL = PaperNumbers()


def record_matching_plan(question: Question, weights: Kind, mechanism: str) -> Plan:
    """Return the plan of the four releases, or refuse an estimand that randomized treatments mix up."""
    if question.estimand is not Estimand.ATE:
        raise refusal("CV-P242", estimand=question.estimand.value)
    kinds = {"weights": weights, "scores": Kind.ROWS, "treatments": Kind.RESPONSE}
    return Plan.split(question.budget, USUAL.shares(), mechanism, kinds)


PAGE = "published/record_matching.proof.md"
PAGES = (
    PAGE,
    "statistics/moments/penalised_fit.proof.md",
    "mechanisms/ball.proof.md",
    "mechanisms/laplace.proof.md",
    "mechanisms/response.proof.md",
)


@dataclass(frozen=True, slots=True)
class ResponseShrinkage:
    """What randomized response does to a contrast: `factor` multiplies it; `share` is the share treated."""

    truth: float
    share: float
    factor: float


def _record_matching(session: BaseSession, question: Question) -> Result:
    """Return the matched contrast of randomized treatments, as in PrivATE (sample level), as proved."""
    require_covariates(session.study, "record_matching_proved")
    plan = record_matching_plan(question, Kind.VECTOR, question.mechanism)
    features = UnitFeatures.of(session.study)
    # Asked here, where nothing is spent yet; the fit itself asks again and cannot fail.
    checked_tolerance(session.table.rows, features.columns + 1, 2, USUAL.penalty, None)

    def compute(gate: Gate) -> Facts:
        z = features.values(session.table)
        fitted = fit_propensity(z, session.table.treated, USUAL.penalty).weights
        scores, responses = release_scores(gate, session.table, features, z, fitted)
        matched = match(scores, responses, float(plan.amount("effect")))
        effect, sensitivity = release_sum(gate, session.table, matched)
        shrinkage = shrinkage_of(responses)
        cap = float(sensitivity.variance_cap)
        shrunk = Uncertainty(effect.noise, cap, cap)
        return Facts(
            estimate=float(effect),
            uncertainty=shrunk,
            method="matching on released scores",
            releases=(
                ("weights of the propensity model", "noise on the whole vector"),
                ("everyone's score", "noise on each"),
                ("everyone's treatment", f"randomized response, true with probability {shrinkage.truth:.3g}"),
                ("matched contrast", f"sensitivity {float(sensitivity.estimate):.6g}"),
            ),
            not_covered=not_covered(shrinkage),
            details={
                "rows": session.table.rows,
                "mechanism": question.mechanism,
                "shrinkage": shrinkage.factor,
                "randomized_share": shrinkage.share,
                "debiased_estimate": float(effect) / shrinkage.factor,
                "se_debiased": shrunk.total_sd / shrinkage.factor,
            },
            interval_target=Target.SHRUNK_CONTRAST,
        )

    return settled(Result, session, question, plan, compute, pages=PAGES)


# What analysts call.
record_matching_proved = EffectForm(
    "record_matching_proved", Unit.RECORD, None, _record_matching, printed=False
)


def fit_sensitivity(rows: int, columns: int, squared_reach: Fraction, penalty: float) -> Fraction:
    """Return how far one record can move the weights of the model; intercept and constant are counted in."""
    tolerance = checked_tolerance(rows, columns, 2, penalty, None)
    return penalised_fit(rows, squared_reach, Fraction(penalty), Fraction(tolerance))


def release_scores(
    gate: Gate, table: Table, features: UnitFeatures, z: Floats, fitted: Floats
) -> tuple[Floats, Responses]:
    """Return everyone's noisy score, in steps, and randomized treatment.

    z are the table's features, `fitted` the weights of the propensity model.
    """
    bound = fit_sensitivity(table.rows, features.columns + 1, features.squared_reach + 1, USUAL.penalty)
    weights = gate.release_vector("weights", [Fraction(w) for w in fitted], bound).floats()
    low, high = features.index_range(weights[:-1])
    within = ScoreRange.of_logits(low + weights[-1], high + weights[-1])
    steps = np.floor(np.nan_to_num(logistic_scores(z, weights)) * SCORE_STEPS).astype(np.int64)
    scores = gate.release_rows("scores", steps, within.low, within.high, within.step)
    return scores, gate.respond("treatments", table.treated)


def match(scores: Floats, responses: Responses, epsilon: float) -> MatchedUnits:
    """Return the matching of released scores and treatments, under a limit at which everyone can be matched."""
    treated = int(np.count_nonzero(responses.values))
    control = len(scores) - treated
    free = matching_coefficients(responses.values, scores, USUAL.neighbours)
    if min(treated, control) == 0:
        return free
    most = float(free.uses.max()) / USUAL.neighbours
    small, large = sorted((treated, control))
    limit = adaptive_limit(epsilon, USUAL.h, large, most, capped=False)
    limits = arm_limits(max(limit, ceil(large / small)), treated, control)
    first, second = (k * USUAL.neighbours for k in limits)
    return matching_coefficients(responses.values, scores, USUAL.neighbours, first, second)


def release_sum(gate: Gate, table: Table, matched: MatchedUnits) -> tuple[Released, LinearEstimate]:
    """Return the released sum of c_i y_i and its sensitivity, the matching being made of released numbers."""
    form = linear_form(matched.coefficients)
    lo, hi = table.study.outcome_range
    # Without a match every coefficient is zero; the noise is then that of a plain mean.
    largest = max(form.largest, Fraction(1, table.rows))
    sensitivity = LinearEstimate(hi - lo, largest, form.squares, Fraction(0))
    value = form.total(table.outcome) * table.outcome_unit
    return gate.release("effect", value, sensitivity.estimate), sensitivity


def shrinkage_of(responses: Responses) -> ResponseShrinkage:
    """Return the factor by which randomized response shrinks a contrast, from the released treatments."""
    p = responses.truth
    recovered = (float(responses.values.mean()) - (1 - p)) / (2 * p - 1)
    q = min(max(recovered, float(LEAST_SHARE)), 1 - float(LEAST_SHARE))
    s = p * q + (1 - p) * (1 - q)
    return ResponseShrinkage(p, q, (2 * p - 1) * q * (1 - q) / (s * (1 - s)))


def not_covered(shrinkage: ResponseShrinkage) -> tuple[Fact, ...]:
    """Return what the interval does not cover, the worst first."""
    return caveats.Shrinkage(shrinkage.factor), Caveat.CONFOUNDING_BEHIND_NOISY_SCORES, Caveat.CLAMPING


# Scores are whole multiples of this step.
SCORE_STEPS = 2**24


@dataclass(frozen=True, slots=True)
class ScoreRange:
    """The steps that a score can lie on, released weights being given: `low` to `high`."""

    low: int
    high: int

    @classmethod
    def of_logits(cls, low: float, high: float) -> ScoreRange:
        """Return the steps between the scores of two logits, one step wider at each end."""
        return cls(floor(_logistic(low) * SCORE_STEPS) - 1, ceil(_logistic(high) * SCORE_STEPS) + 1)

    @property
    def step(self) -> Fraction:
        """The width of one step."""
        return Fraction(1, SCORE_STEPS)

    @property
    def width(self) -> Fraction:
        """Largest change of one row's score."""
        return (self.high - self.low) * self.step


def _logistic(x: float) -> float:
    # Written so that neither form overflows.
    return 1 / (1 + exp(-x)) if x >= 0 else exp(x) / (1 + exp(x))
