"""Matching where the whole record is private (PrivATE's sample level), with calibrations that are proved.

Weights of the propensity model, everyone's score and everyone's treatment are released with noise; the
matching works on what was released, and one weighted sum of outcomes is released in the end.

What comes out is an effect that randomized response has shrunk. No interval for the effect itself is
valid: the result says so first.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import ceil

import numpy as np

from counterveil.data import Table
from counterveil.data.features import UnitFeatures, require_covariates
from counterveil.errors import ParameterError
from counterveil.inference import Uncertainty
from counterveil.numerics.arrays import Floats
from counterveil.numerics.linear_form import linear_form
from counterveil.numerics.matching import Matching, adaptive_limit, arm_limits, matching_coefficients
from counterveil.numerics.newton import checked_tolerance
from counterveil.numerics.propensity import fit_propensity, logistic_scores
from counterveil.numerics.public_choices import LEAST_SHARE
from counterveil.privacy import Estimand, caveats
from counterveil.privacy.caveats import Caveat, Fact, Target
from counterveil.results.question import Question
from counterveil.results.result import Result
from counterveil.session import Gate, Kind, KnownSensitivityMechanism, Plan, Released, Responses, Session
from counterveil.settings import RecordMatching
from counterveil.statistics.moments.matching_sensitivity import SCORE_STEPS, MatchedSum, ScoreRange
from counterveil.statistics.moments.sensitivity import PenalisedFit


def record_matching_plan(question: Question, settings: RecordMatching, weights: Kind, mechanism: str) -> Plan:
    """Return the plan of the four releases, or refuse an estimand that randomized treatments mix up."""
    if question.estimand is not Estimand.ATE:
        raise ParameterError(
            "CV-P242",
            "record-level matching estimates the ATE only",
            expected="estimand='ATE'",
            got=f"estimand={question.estimand.value!r}",
            fix="leave estimand out: after randomized response both arms hold treated and untreated people, "
            "so effects on the treated and on the others cannot be told apart",
        )
    kinds = {"weights": weights, "scores": Kind.ROWS, "treatments": Kind.RESPONSE}
    return Plan.split(question.budget, settings.shares(), mechanism, kinds)


PAGE = "statistics/moments/record_matching.proof.md"
PAGES = (
    PAGE,
    "statistics/moments/penalised_fit.proof.md",
    "mechanisms/ball.proof.md",
    "mechanisms/laplace.proof.md",
    "mechanisms/response.proof.md",
)


@dataclass(frozen=True, slots=True)
class Shrinkage:
    """What randomized response does to a contrast: `factor` multiplies it; `share` is the share treated."""

    truth: float
    share: float
    factor: float


def record_matching(session: Session, question: Question) -> Result:
    """Return the matched contrast of randomized treatments; everything about a person is private."""
    require_covariates(session.study, "matching")
    settings = question.settings or RecordMatching()
    plan = record_matching_plan(question, settings, Kind.VECTOR, question.mechanism)
    features = UnitFeatures.of(session.study)
    # Asked here, where nothing is spent yet; the fit itself asks again and cannot fail.
    checked_tolerance(session.table.rows, features.columns + 1, 2, settings.penalty, None)

    def compute(gate: Gate) -> dict[str, object]:
        z = features.values(session.table)
        fitted = fit_propensity(z, session.table.treated, settings.penalty).weights
        scores, responses = release_scores(gate, session.table, features, z, fitted, settings.penalty)
        matched = match(scores, responses, settings, float(plan.amount("effect")))
        effect, sensitivity = release_sum(gate, session.table, matched)
        shrinkage = shrinkage_of(responses)
        scaled = plan.noise("effect", sensitivity.estimate / Fraction(shrinkage.factor))
        return _result(session, question, settings, effect, sensitivity, shrinkage, scaled).stored()

    return Result.from_dict(session.run(question.request(plan, session.study), compute))


def fit_sensitivity(rows: int, features: UnitFeatures, penalty: float) -> PenalisedFit:
    """Return how far one record can move the weights of the model, intercept included."""
    tolerance = checked_tolerance(rows, features.columns + 1, 2, penalty, None)
    return PenalisedFit(rows, features.squared_reach + 1, Fraction(penalty), Fraction(tolerance))


def release_scores(
    gate: Gate, table: Table, features: UnitFeatures, z: Floats, fitted: Floats, penalty: float
) -> tuple[Floats, Responses]:
    """Return everyone's noisy score, in steps, and randomized treatment.

    z are the table's features, `fitted` the weights of the propensity model under `penalty`.
    """
    sensitivity = fit_sensitivity(table.rows, features, penalty)
    weights = gate.release_vector("weights", [Fraction(w) for w in fitted], sensitivity.weights).floats()
    low, high = features.index_range(weights[:-1])
    within = ScoreRange.of_logits(low + weights[-1], high + weights[-1])
    steps = np.floor(np.nan_to_num(logistic_scores(z, weights)) * SCORE_STEPS).astype(np.int64)
    scores = gate.release_rows("scores", steps, within.low, within.high, within.step)
    return scores, gate.respond("treatments", table.treated)


def match(scores: Floats, responses: Responses, settings: RecordMatching, epsilon: float) -> Matching:
    """Return the matching of released scores and treatments, under a limit at which everyone can be matched."""
    treated = int(np.count_nonzero(responses.values))
    control = len(scores) - treated
    if min(treated, control) == 0:
        return matching_coefficients(responses.values, scores, settings.neighbours)
    free = matching_coefficients(responses.values, scores, settings.neighbours)
    most = float(free.uses.max()) / settings.neighbours
    small, large = sorted((treated, control))
    limit = adaptive_limit(epsilon, settings.h, large, most, capped=False)
    limits = arm_limits(max(limit, ceil(large / small)), treated, control)
    first, second = (k * settings.neighbours for k in limits)
    return matching_coefficients(responses.values, scores, settings.neighbours, first, second)


def release_sum(gate: Gate, table: Table, matched: Matching) -> tuple[Released, MatchedSum]:
    """Return the released sum of c_i y_i and its sensitivity, the matching being made of released numbers."""
    form = linear_form(matched.coefficients)
    lo, hi = table.study.outcome_range
    # Without a match every coefficient is zero; the noise is then that of a plain mean.
    sensitivity = MatchedSum(hi - lo, max(form.largest, Fraction(1, table.rows)), form.squares)
    value = form.total(table.outcome) * table.outcome_unit
    return gate.release("effect", value, sensitivity.estimate), sensitivity


def shrinkage_of(responses: Responses) -> Shrinkage:
    """Return the factor by which randomized response shrinks a contrast, from the released treatments."""
    p = responses.truth
    recovered = (float(responses.values.mean()) - (1 - p)) / (2 * p - 1)
    q = min(max(recovered, float(LEAST_SHARE)), 1 - float(LEAST_SHARE))
    s = p * q + (1 - p) * (1 - q)
    return Shrinkage(p, q, (2 * p - 1) * q * (1 - q) / (s * (1 - s)))


def _result(
    session: Session,
    question: Question,
    settings: RecordMatching,
    effect: Released,
    sensitivity: MatchedSum,
    shrinkage: Shrinkage,
    scaled: KnownSensitivityMechanism,
) -> Result:
    study, cap = session.study, float(sensitivity.variance_cap)
    shrunk = Uncertainty(effect.noise, cap, cap)
    debiased = Uncertainty(scaled, cap / shrinkage.factor**2, cap / shrinkage.factor**2)
    lifted = float(effect) / shrinkage.factor
    return Result(
        estimate=lifted if settings.debias else float(effect),
        uncertainty=debiased if settings.debias else shrunk,
        guarantee=question.guarantee(session, PAGES),
        method="matching on released scores" + (", shrinkage divided out" if settings.debias else ""),
        **question.effect_terms(study),
        releases=record_releases(sensitivity, shrinkage),
        not_covered=not_covered(shrinkage, settings.debias),
        details={
            "rows": session.table.rows,
            "mechanism": question.mechanism,
            "shrinkage": shrinkage.factor,
            "randomized_share": shrinkage.share,
            "shrunk_estimate": float(effect),
            "se_shrunk": shrunk.total_sd,
            "debiased_estimate": lifted,
            "se_debiased": debiased.total_sd,
        },
        interval_of=Target.DIVIDED_CONTRAST if settings.debias else Target.SHRUNK_CONTRAST,
    )


def record_releases(sensitivity: MatchedSum, shrinkage: Shrinkage) -> tuple[tuple[str, str], ...]:
    """Return what was released, in words."""
    return (
        ("weights of the propensity model", "noise on the whole vector"),
        ("everyone's score", "noise on each"),
        ("everyone's treatment", f"randomized response, true with probability {shrinkage.truth:.3g}"),
        ("matched contrast", f"sensitivity {float(sensitivity.estimate):.6g}"),
    )


def not_covered(shrinkage: Shrinkage, debias: bool) -> tuple[Fact, ...]:
    """Return what the interval does not cover, the worst first."""
    shrunk = Caveat.SHRINKAGE_DIVIDED if debias else caveats.Shrinkage(shrinkage.factor)
    return shrunk, Caveat.CONFOUNDING_BEHIND_NOISY_SCORES, Caveat.CLAMPING
