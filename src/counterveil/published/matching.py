"""Matching as it was published (PrivATE), with private outcomes and with private records.

Private outcomes (label level): two Laplace draws at (k+1)B. Whether the published claim is true for a study depends
on its covariates and treatments alone, which are public here: it is decided exactly, before anything is spent.

Private records (sample level): the claim is refuted. It draws what the paper prints: Laplace noise on weights without
intercept, calibrated for an exact minimiser; scores with the width of [0, 1]; randomized response; the limit of
equation 12, which may leave too little capacity; two Laplace draws at (k+1)B.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from math import ceil, exp, floor
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from counterveil.accounting import Ledger
from counterveil.data import Study, Table
from counterveil.data.features import UnitFeatures, require_covariates
from counterveil.errors import refusal
from counterveil.estimators.linear.diagnostics import design_diagnostics
from counterveil.estimators.linear.matching import matching_caveats, matching_details
from counterveil.estimators.linear.matching_design import Limits, match, published_limits, scored
from counterveil.inference.uncertainty import Uncertainty
from counterveil.numerics.arrays import Floats
from counterveil.numerics.matching import MatchedUnits, SortedArms, adaptive_limit, arm_limits
from counterveil.numerics.products import MirroredRows
from counterveil.numerics.propensity import checked_tolerance, fit_propensity, logistic_scores
from counterveil.numerics.public_choices import LEAST_SHARE
from counterveil.privacy import Budget, Estimand, Number, Proof, Unit, caveats, exact, show
from counterveil.privacy.caveats import Caveat, Fact, Target
from counterveil.published.asking import EffectForm, PublishedQuestion, release_twice, unproved
from counterveil.results.answering import Facts, answer_request
from counterveil.results.question import Question
from counterveil.results.result import Result
from counterveil.rows.linear.sensitivity import LinearEstimate
from counterveil.rows.linear.weighted_sum import LinearForm, linear_form
from counterveil.rows.moments.penalised_fit import penalised_fit
from counterveil.rows.public import PublicRows
from counterveil.session import BaseSession, BitSource, Gate, Kind, Plan, Released, Responses
from counterveil.settings import Matching
from counterveil.settings.methods import ADAPTIVE, AUTO, BEST

# Matching where the whole record is private (PrivATE's sample level): `published.record_matching` as it can be proved.
#
# Weights of the propensity model, everyone's score and everyone's treatment are released with noise; the
# matching works on what was released, and one weighted sum of outcomes is released in the end.
#
# What comes out is an effect that randomized response has shrunk. No interval for the effect itself is
# valid: the result says so first.


# Proof: record_matching.proof.md


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


DEFAULTS = PaperNumbers()


def record_matching_plan(question: Question, weights: Kind, mechanism: str) -> Plan:
    """Return the plan of the four releases, or refuse an estimand that randomized treatments mix up."""
    if question.estimand is not Estimand.ATE:
        raise refusal("CV-P242", estimand=question.estimand.value)
    kinds = {"weights": weights, "scores": Kind.ROWS, "treatments": Kind.RESPONSE}
    return Plan.split(question.budget, DEFAULTS.shares(), mechanism, kinds)


PAGE = "published/record_matching.proof.md"
PAGES = (
    PAGE,
    "rows/moments/penalised_fit.proof.md",
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


def _proved_record_matching(session: BaseSession, question: Question) -> Result:
    """Return the matched contrast of randomized treatments, as in PrivATE (sample level), as proved."""
    require_covariates(session.study, "record_matching_proved")
    plan = record_matching_plan(question, Kind.VECTOR, question.mechanism)
    features = UnitFeatures.of(session.study)
    # Asked here, where nothing is spent yet; the fit itself asks again and cannot fail.
    checked_tolerance(session.table.rows, features.columns + 1, 2, DEFAULTS.penalty, None)

    def compute(gate: Gate) -> Facts:
        z = features.values(session.table)
        fitted = fit_propensity(z, session.table.treated, DEFAULTS.penalty).weights
        scores, responses = release_proved_scores(gate, session.table, features, z, fitted)
        matched = match_released(scores, responses, float(plan.amount("effect")))
        effect, sensitivity = release_sum(gate, session.table, matched)
        shrinkage = shrinkage_of(responses)
        cap = float(sensitivity.variance_cap)
        return Facts(
            estimate=float(effect),
            uncertainty=Uncertainty(effect.noise, cap, cap),
            method="matching on released scores",
            not_covered=not_covered(shrinkage),
            details={
                "rows": session.table.rows,
                "mechanism": question.mechanism,
                "shrinkage": shrinkage.factor,
                "debiased_estimate": float(effect) / shrinkage.factor,
            },
            interval_target=Target.SHRUNK_CONTRAST,
        )

    return answer_request(Result, session, question, plan, compute, pages=PAGES)


_RECORD_MATCHING_PROVED = EffectForm(
    "record_matching_proved", Unit.RECORD, None, _proved_record_matching, printed=False
)


def record_matching_proved(
    data: object,
    study: Study | None = None,
    *,
    epsilon: Number,
    delta: Number = 0,
    estimand: str = "ATE",
    level: float = 0.95,
    settings: None = None,
    accept: str | None = None,
    ledger: str | Path | Ledger | None = None,
    dataset: str | None = None,
    request_id: str | None = None,
    noise: BitSource | None = None,
) -> Result:
    """Estimate a matched contrast with private records (PrivATE, sample level), with a proved guarantee.

    Released are, in turn, the coefficients of a penalised propensity model, everyone's score with Laplace
    noise, everyone's treatment through randomised response, and one weighted sum of outcomes under the
    matching of what was released.

    Parameters
    ----------
    data : object
        The rows: a DataFrame (pandas, Polars, PyArrow, DuckDB, Ibis, Spark), a mapping of names to arrays, or
        the path of a CSV or Parquet file; or an open `Session`, which brings its study, ledger, account and
        noise.
    study : Study, optional
        Roles of the columns, with public ranges and labels. Left out with a session.
    epsilon : number
        Privacy loss, above 0.
    delta : number, default 0
        0: the form is pure.
    estimand : {"ATE"}, default "ATE"
        Average effect on everyone.
    level : float, default 0.95
        Confidence level, above 0 and below 1.
    settings : None
        The form has none.
    accept : "unproved", optional
        Without meaning here: the form is proved.
    ledger : Ledger or path-like, optional
        Charge an account of this ledger. Default: a ledger for this call alone.
    dataset : str, optional
        Account in the ledger. Default: the only one.
    request_id : str, optional
        Name of the request; asked again under it, the stored answer comes back, free of charge. Default: a
        new request.
    noise : SeededNoise, optional
        Reproducible noise, for tests alone: it protects nobody. Default: noise of the operating system.

    Returns
    -------
    Result
        Estimate, standard error, interval, guarantee with what is true of the claim, and what was spent.

    Raises
    ------
    CounterveilError
        Before anything is spent: arguments (CV-P), study (CV-S), data (CV-D), ledger (CV-L), budget (CV-B).

    Notes
    -----
    Protects whole records; pure epsilon-DP, the sum of the four parts. Randomised response shrinks the
    effect: with p the probability of the true treatment, q the share treated and s = p q + (1 - p)(1 - q),
    the estimate is about

        (2p - 1) q (1 - q) / (s (1 - s))

    times the effect. The interval is for that contrast; ``details["debiased_estimate"]`` is divided by the
    factor. Proof:
    ``published/record_matching.proof.md``. Instead: ``cv.ate(method="doubly_robust")``.

    References
    ----------
    .. [1] Yuan, Q. et al. PrivATE: Differentially Private Average Treatment Effect Estimation for
       Observational Data.

    Examples
    --------
    >>> import counterveil as cv
    >>> data = cv.datasets.synth(n=300, covariates=3)
    >>> result = cv.published.record_matching_proved(
    ...     data.frame, data.study, epsilon=2, noise=cv.SeededNoise(1)
    ... )
    >>> 0 < result.details["shrinkage"] < 1
    True
    """
    return _RECORD_MATCHING_PROVED(
        data,
        study,
        epsilon=epsilon,
        delta=delta,
        estimand=estimand,
        level=level,
        settings=settings,
        accept=accept,
        ledger=ledger,
        dataset=dataset,
        request_id=request_id,
        noise=noise,
    )


def fit_sensitivity(rows: int, columns: int, squared_max_norm: Fraction, penalty: float) -> Fraction:
    """Return how far one record can move the weights of the model; intercept and constant are counted in."""
    tolerance = checked_tolerance(rows, columns, 2, penalty, None)
    return penalised_fit(rows, squared_max_norm, Fraction(penalty), Fraction(tolerance))


def release_proved_scores(
    gate: Gate, table: Table, features: UnitFeatures, z: Floats, fitted: Floats
) -> tuple[Floats, Responses]:
    """Return everyone's noisy score, in steps, and randomized treatment.

    z are the table's features, `fitted` the weights of the propensity model.
    """
    bound = fit_sensitivity(table.rows, features.columns + 1, features.squared_max_norm + 1, DEFAULTS.penalty)
    weights = gate.release_vector("weights", [Fraction(w) for w in fitted], bound).floats()
    low, high = features.index_range(weights[:-1])
    within = ScoreRange.of_logits(low + weights[-1], high + weights[-1])
    steps = np.floor(np.nan_to_num(logistic_scores(z, weights)) * SCORE_STEPS).astype(np.int64)
    scores = gate.release_rows("scores", steps, within.low, within.high, within.step)
    return scores, gate.respond("treatments", table.treated)


def match_released(scores: Floats, responses: Responses, epsilon: float) -> MatchedUnits:
    """Return the matching of released scores and treatments, under a limit at which everyone can be matched."""
    treated = int(np.count_nonzero(responses.values))
    control = len(scores) - treated
    arms = SortedArms(responses.values, scores)
    if min(treated, control) == 0:
        return arms.match(DEFAULTS.neighbours)
    most = arms.most_uses(DEFAULTS.neighbours, Estimand.ATE.value) / DEFAULTS.neighbours
    small, large = sorted((treated, control))
    limit = adaptive_limit(epsilon, DEFAULTS.h, large, most, capped=False)
    limits = arm_limits(max(limit, ceil(large / small)), treated, control)
    first, second = (k * DEFAULTS.neighbours for k in limits)
    return arms.match(DEFAULTS.neighbours, first, second)


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


# Proof: capacity_matching.proof.md


OUTCOME_PAGE = "published/capacity_matching.proof.md"
RECORD_REMARK = (
    "the published claim is false: it is stated for adding or removing a person, where no finite epsilon holds; "
    "its weights are taken for an exact minimum; and where units run out one outcome moves the sums by more "
    "than (k+1)B. The ledger is charged the claimed epsilon; details give what this draw lost at least"
)


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


def _outcome_matching(session: BaseSession, question: PublishedQuestion) -> Result:
    """Return the effect by matching with private outcomes, as in PrivATE (label level)."""
    _check_outcome(question)
    require_covariates(session.study, "matching")
    question = replace(question, mechanism="laplace_pair")
    settings = replace(question.settings or Matching(), limit=_limit(question))
    table = session.table
    design = scored(PublicRows(table, Unit.OUTCOME))
    epsilon = question.budget.epsilon
    limits = published_limits(design, settings, float(epsilon), feasible=False)
    matched = match(design, settings.neighbours, limits, Estimand.ATE.value)
    form = linear_form(matched.matching.coefficients)
    sensitivity = published_noise(table, form, limits, settings.neighbours)
    loss = sensitivity.loss(epsilon)
    proof = Proof.FINITE_SAMPLE if loss <= epsilon else Proof.REFUTED
    remark = _outcome_remark(proof, sensitivity, question)
    question.require_acceptance(proof, remark)
    # What is spent is what is lost, not what is claimed.
    spent = Budget(max(loss, epsilon))
    plan = Plan(spent, "laplace", (("effect", loss),))

    def compute(gate: Gate) -> Facts:
        released = release_estimate(gate, table, form, sensitivity, question.budget)
        cap = float(LinearEstimate(sensitivity.width, form.largest, form.squares, form.largest).variance_cap)
        return Facts(
            estimate=float(released),
            uncertainty=Uncertainty(released.noise, cap, cap),
            spent=spent,
            limits=None,
            outcome=table.study.outcome,
            method="matching on the propensity score, as published",
            not_covered=matching_caveats(table.study, matched),
            details=matching_details(design, matched, settings)
            | {"mechanism": "two Laplace draws", "true_epsilon": float(loss)},
            diagnostics=design_diagnostics(
                design.features, design.treated, design.score, matched.matching.coefficients
            ),
            independent_variance=True,
        )

    return unproved(session, question, plan, compute, OUTCOME_PAGE, (proof, remark))


_OUTCOME_MATCHING = EffectForm("outcome_matching", Unit.OUTCOME, Matching, _outcome_matching)


def outcome_matching(
    data: object,
    study: Study | None = None,
    *,
    epsilon: Number,
    delta: Number = 0,
    estimand: str = "ATE",
    level: float = 0.95,
    settings: Matching | None = None,
    accept: str | None = None,
    ledger: str | Path | Ledger | None = None,
    dataset: str | None = None,
    request_id: str | None = None,
    noise: BitSource | None = None,
) -> Result:
    """Estimate an average effect by matching with private outcomes, as PrivATE (label level) prints it.

    Everyone is matched to `neighbours` people of the other arm by the propensity score, nobody being used
    more than k times `neighbours`; two Laplace draws are calibrated to (k + 1) times the outcome's range.

    Parameters
    ----------
    data : object
        The rows: a DataFrame (pandas, Polars, PyArrow, DuckDB, Ibis, Spark), a mapping of names to arrays, or
        the path of a CSV or Parquet file; or an open `Session`, which brings its study, ledger, account and
        noise.
    study : Study, optional
        Roles of the columns, with public ranges and labels. Left out with a session.
    epsilon : number
        Privacy loss that the paper claims, above 0.
    delta : number, default 0
        0: the form is claimed to be pure.
    estimand : {"ATE"}, default "ATE"
        Average effect on everyone.
    level : float, default 0.95
        Confidence level, above 0 and below 1.
    settings : Matching, optional
        Neighbours, limit on reuse and its constant. Default: ``cv.settings.Matching()``, with the limit
        "adaptive".
    accept : "unproved", optional
        Needed where the claim is false for this study. A ledger on disk takes such a request only if the
        account's access policy has ``unproved = true``.
    ledger : Ledger or path-like, optional
        Charge an account of this ledger. Default: a ledger for this call alone.
    dataset : str, optional
        Account in the ledger. Default: the only one.
    request_id : str, optional
        Name of the request; asked again under it, the stored answer comes back, free of charge. Default: a
        new request.
    noise : SeededNoise, optional
        Reproducible noise, for tests alone: it protects nobody. Default: noise of the operating system.

    Returns
    -------
    Result
        Estimate, standard error, interval, guarantee with what is true of the claim, and what was spent.

    Raises
    ------
    CounterveilError
        Before anything is spent: arguments (CV-P), missing acceptance (CV-C001), study (CV-S), data (CV-D),
        ledger (CV-L), budget (CV-B).

    Notes
    -----
    Protects the outcome of each row. The claim of epsilon holds if and only if n max|c_i| <= k + 1, with c_i
    the coefficient of outcome i in the estimate sum c_i y_i. Coefficients are public, so the true epsilon,

        n max|c_i| epsilon / (1 + max(k0, k1)),

    is computed before anything is spent, reported as ``details["true_epsilon"]``, and charged where it is
    larger. With seven people and two neighbours it is 1.5 times the claim. Proof:
    ``published/capacity_matching.proof.md``. Instead: ``cv.ate(method="matching")`` or
    ``cv.ate(method="weighting")``.

    References
    ----------
    .. [1] Yuan, Q. et al. PrivATE: Differentially Private Average Treatment Effect Estimation for
       Observational Data.

    Examples
    --------
    >>> import counterveil as cv
    >>> data = cv.datasets.synth(n=300, covariates=3)
    >>> result = cv.published.outcome_matching(
    ...     data.frame, data.study, epsilon=1, accept="unproved", noise=cv.SeededNoise(1)
    ... )
    >>> result.details["true_epsilon"] > 0
    True
    """
    return _OUTCOME_MATCHING(
        data,
        study,
        epsilon=epsilon,
        delta=delta,
        estimand=estimand,
        level=level,
        settings=settings,
        accept=accept,
        ledger=ledger,
        dataset=dataset,
        request_id=request_id,
        noise=noise,
    )


def published_noise(table: Table, form: LinearForm, limits: Limits, neighbours: int) -> CapacityMatching:
    """Return the published calibration beside the exact sensitivity."""
    lo, hi = table.study.outcome_range
    per_arm = [limit // neighbours for limit in limits if limit is not None]
    return CapacityMatching(hi - lo, table.rows, (per_arm[0], per_arm[1]), form.largest)


def release_estimate(
    gate: Gate, table: Table, form: LinearForm, sensitivity: CapacityMatching, claim: Budget
) -> Released:
    """Return the estimate plus a draw for each arm, of the published scales."""
    value = form.total(table.outcome) * table.outcome_unit
    _, narrow = sensitivity.scales(claim.epsilon)
    return release_twice(gate, "effect", value, sensitivity.estimate, narrow)


def _outcome_remark(proof: Proof, sensitivity: CapacityMatching, question: PublishedQuestion) -> str:
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


def _limit(question: PublishedQuestion) -> int | str:
    settings = question.settings or Matching()
    if settings.limit in (None, BEST):
        raise refusal("CV-P202", adaptive=ADAPTIVE, limit=settings.limit)
    return ADAPTIVE if settings.limit == AUTO else settings.limit


def _check_outcome(question: PublishedQuestion) -> None:
    if question.estimand is not Estimand.ATE or not question.budget.pure:
        raise refusal("CV-P203", estimand=question.estimand.value, budget=question.budget)


@dataclass(frozen=True, slots=True)
class PublishedMatch:
    """The coefficients, the published limits (k_1, k_2), and what the last step loses per unit of its claim."""

    form: LinearForm
    limits: tuple[int, int]
    excess: float


def _record_matching(session: BaseSession, question: PublishedQuestion) -> Result:
    """Return the effect by matching with private records, as in PrivATE (sample level); refuted."""
    require_covariates(session.study, "matching")
    plan = record_matching_plan(question, Kind.CELLS, "laplace")
    question.require_acceptance(Proof.REFUTED, RECORD_REMARK)

    def compute(gate: Gate) -> Facts:
        features = UnitFeatures.of(session.study)
        z = features.values(session.table)
        z += features.middle
        fitted = fit_without_intercept(z, session.table.treated, DEFAULTS.penalty)
        scores, responses = release_scores(gate, session.table, z, fitted, DEFAULTS.penalty)
        matched = match_records(scores, responses, DEFAULTS, float(plan.amount("effect")))
        effect = release_sums(gate, plan, session.table, matched)
        shrinkage, (lo, hi) = shrinkage_of(responses), session.study.outcome_range
        cap = float((hi - lo) ** 2 * matched.form.squares / 4)
        lost = float(question.budget.epsilon) + (matched.excess - 1) * float(plan.amount("effect"))
        return Facts(
            estimate=float(effect),
            uncertainty=Uncertainty(effect.noise, cap, cap),
            method="matching on released scores, as published",
            not_covered=not_covered(shrinkage),
            details={
                "rows": session.table.rows,
                "mechanism": "laplace",
                "shrinkage": shrinkage.factor,
                "debiased_estimate": float(effect) / shrinkage.factor,
                "min_epsilon_loss": lost,
            },
            interval_target=Target.SHRUNK_CONTRAST,
        )

    claim, drawn = (Proof.REFUTED, RECORD_REMARK), ("laplace_pair", "response")
    return unproved(session, question, plan, compute, PAGE, claim, drawn)


_RECORD_MATCHING = EffectForm("record_matching", Unit.RECORD, None, _record_matching)


def record_matching(
    data: object,
    study: Study | None = None,
    *,
    epsilon: Number,
    delta: Number = 0,
    estimand: str = "ATE",
    level: float = 0.95,
    settings: None = None,
    accept: str | None = None,
    ledger: str | Path | Ledger | None = None,
    dataset: str | None = None,
    request_id: str | None = None,
    noise: BitSource | None = None,
) -> Result:
    """Estimate an average effect by matching with private records, as PrivATE (sample level) prints it.

    Released are, in turn, the coefficients of a propensity model without intercept, everyone's score with
    Laplace noise, everyone's treatment through randomised response, and the matched sum of outcomes with two
    Laplace draws.

    Parameters
    ----------
    data : object
        The rows: a DataFrame (pandas, Polars, PyArrow, DuckDB, Ibis, Spark), a mapping of names to arrays, or
        the path of a CSV or Parquet file; or an open `Session`, which brings its study, ledger, account and
        noise.
    study : Study, optional
        Roles of the columns, with public ranges and labels. Left out with a session.
    epsilon : number
        Privacy loss that the paper claims, above 0.
    delta : number, default 0
        0: the form is claimed to be pure.
    estimand : {"ATE"}, default "ATE"
        Average effect on everyone.
    level : float, default 0.95
        Confidence level, above 0 and below 1.
    settings : None
        The form has none.
    accept : "unproved", optional
        Needed, from an analyst who knows that the claim is not proved in finite samples. A ledger on disk
        takes such a request only if the account's access policy has ``unproved = true``.
    ledger : Ledger or path-like, optional
        Charge an account of this ledger. Default: a ledger for this call alone.
    dataset : str, optional
        Account in the ledger. Default: the only one.
    request_id : str, optional
        Name of the request; asked again under it, the stored answer comes back, free of charge. Default: a
        new request.
    noise : SeededNoise, optional
        Reproducible noise, for tests alone: it protects nobody. Default: noise of the operating system.

    Returns
    -------
    Result
        Estimate, standard error, interval, guarantee with what is true of the claim, and what was spent.

    Raises
    ------
    CounterveilError
        Before anything is spent: arguments (CV-P), missing acceptance (CV-C001), study (CV-S), data (CV-D),
        ledger (CV-L), budget (CV-B).

    Notes
    -----
    Claims epsilon-DP for whole records; refuted. For adding or removing a person no finite epsilon holds.
    With one record replaced, the noise of the coefficients assumes an exact minimum, and the last step has
    the fault of `outcome_matching`. The effect is also shrunk, so no interval is valid. Proof:
    ``published/record_matching.proof.md``. Instead: `record_matching_proved`, or
    ``cv.ate(method="doubly_robust")``.

    References
    ----------
    .. [1] Yuan, Q. et al. PrivATE: Differentially Private Average Treatment Effect Estimation for
       Observational Data.

    Examples
    --------
    >>> import counterveil as cv
    >>> data = cv.datasets.synth(n=300, covariates=3)
    >>> result = cv.published.record_matching(
    ...     data.frame, data.study, epsilon=2, accept="unproved", noise=cv.SeededNoise(1)
    ... )
    >>> result.spent.epsilon >= 2
    True
    """
    return _RECORD_MATCHING(
        data,
        study,
        epsilon=epsilon,
        delta=delta,
        estimand=estimand,
        level=level,
        settings=settings,
        accept=accept,
        ledger=ledger,
        dataset=dataset,
        request_id=request_id,
        noise=noise,
    )


def fit_without_intercept(z: Floats, treated: NDArray[np.bool_], penalty: float) -> Floats:
    """Return the weights of the model that the paper prints, which has no intercept."""
    # Every row and its mirror image: the intercept of such a fit is zero, as if there were none.
    return fit_propensity(MirroredRows(z, z), np.concatenate([treated, ~treated]), penalty).weights[:-1]


def release_scores(
    gate: Gate, table: Table, z: Floats, fitted: Floats, penalty: float
) -> tuple[Floats, Responses]:
    """Return scores in steps and treatments, with the published noise; z are features in [0, 1]."""
    claimed = Fraction(2 * z.shape[1], table.rows) / Fraction(penalty)
    weights = gate.release_cells("weights", [Fraction(w) for w in fitted], claimed).floats()
    steps = np.floor(np.nan_to_num(logistic_scores(z, np.append(weights, 0.0))) * SCORE_STEPS).astype(
        np.int64
    )
    scores = gate.release_rows("scores", steps, 0, SCORE_STEPS, ScoreRange(0, SCORE_STEPS).step)
    return scores, gate.respond("treatments", table.treated)


def match_records(
    scores: Floats, responses: Responses, settings: PaperNumbers, epsilon: float, limit: int | None = None
) -> PublishedMatch:
    """Return the matching under equation 12 or a fixed limit, whether or not that leaves enough capacity."""
    treated = int(np.count_nonzero(responses.values))
    arms = SortedArms(responses.values, scores)
    most = arms.most_uses(settings.neighbours, Estimand.ATE.value) / settings.neighbours
    larger = max(treated, len(scores) - treated)
    k = limit or adaptive_limit(epsilon, settings.h, larger, most, capped=False)
    limits = arm_limits(k, treated, len(scores) - treated)
    first, second = (k * settings.neighbours for k in limits)
    found = arms.match(settings.neighbours, first, second)
    allowed = np.where(responses.values, limits[0] + 1, limits[1] + 1) / len(scores)
    excess = float((np.abs(found.coefficients) / allowed).max(initial=0.0))
    return PublishedMatch(linear_form(found.coefficients), limits, max(1.0, excess))


def release_sums(gate: Gate, plan: Plan, table: Table, matched: PublishedMatch) -> Released:
    """Return the difference of the two sums divided by n, each with its published Laplace draw."""
    lo, hi = table.study.outcome_range
    narrow, wide = (Fraction(k + 1, table.rows) * (hi - lo) for k in sorted(matched.limits))
    value = matched.form.total(table.outcome) * table.outcome_unit
    return release_twice(gate, "effect", value, wide, narrow / plan.amount("effect"))
