"""Exact matching with smooth sensitivity, as printed and as proved.

Its privacy claim is refuted. It draws what the paper prints: one-to-one matching in row order; Laplace noise
2 S / epsilon with a bound S that is not smooth; Laplace noise on the sampling variance; Gaussian noise of the
textbook scale on ln S. Each takes a third of epsilon and of delta. What is false in it is on the page.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import product
from math import exp, log, sqrt
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from counterveil.accounting import Ledger
from counterveil.data import Layout, Study, strata_codes, strata_of_table
from counterveil.errors import ParameterError, refusal
from counterveil.estimators.strata.caveats import caveats
from counterveil.inference.noisy_scale import tail_point, variance_allowance
from counterveil.inference.uncertainty import Uncertainty
from counterveil.numerics.arrays import Floats, Integers
from counterveil.numerics.public_choices import LEAST_SHARE
from counterveil.numerics.strata import RANGE_STEPS, Strata
from counterveil.privacy import Budget, Estimand, Number, Proof, Unit
from counterveil.privacy.caveats import Caveat, Target
from counterveil.published.asking import (
    ClassicalPlan,
    EffectForm,
    PublishedQuestion,
    release_classical,
    release_scaled,
    textbook_constant,
    unproved,
)
from counterveil.published.strata_sensitivity import (
    StratumCounts,
    largest_discounted,
    pooled_change,
    smooth_change,
    smooth_variance_change,
    smooth_weight,
    two_fronts,
)
from counterveil.results.answering import Facts, built
from counterveil.results.effect import noise_with_noisy_scale
from counterveil.results.question import Question
from counterveil.results.result import Result
from counterveil.rows.strata.statistics import (
    ROUNDING,
    effect_sum,
    order_free_variance,
    pooled_squares,
    single_effect_sum,
)
from counterveil.session import BaseSession, BitSource, Gate, Kind, Plan, Released

# Proof: smooth_sensitivity.proof.md


PAGE = "published/smooth_sensitivity.proof.md"
REMARK = (
    "the published claim is false: the printed sensitivity is not smooth (its logarithm moves by up to 1.5 beta "
    "between neighbours), so the release of its logarithm loses more than is said, and so does the effect where "
    "epsilon n is below about 5; the textbook Gaussian scale is proved for epsilon below 1 only; and the order of "
    "rows is taken for public wherever they come from. The ledger is charged the claimed epsilon and delta"
)
# How many numbers in the smaller arm are tried at once.
_CHUNK = 32


@dataclass(frozen=True, slots=True)
class PublishedStrata:
    """The three published statistics and their printed bounds, outcomes in [0, 1]."""

    effect: Fraction
    variance: Fraction
    effect_bound: float
    variance_bound: float
    smoothness: float
    rows: int


def _smooth_matching(session: BaseSession, question: PublishedQuestion) -> Result:
    """Return the effect by exact matching with smooth sensitivity, as in SmoothDPMatching (Koga et al.); refuted."""
    _check(question)
    question.require_acceptance(Proof.REFUTED, REMARK)
    layout = Layout.of(session.study)
    thirds = dict.fromkeys(("effect", "variance", "scale"), Fraction(1, 3))
    plan = ClassicalPlan.of(Plan.split(question.budget, thirds, "laplace"), "scale")
    found = published(session, layout, float(question.budget.epsilon) / 3, float(question.budget.delta) / 3)

    def compute(gate: Gate) -> Facts:
        effect, variance, scale = release(gate, found)
        study, width = session.study, float(session.study.outcome_bounds.width)
        # Unbiased for S, as published: a log-normal's mean is above its median.
        bound = exp(float(scale) - scale.noise.variance / 2)
        known = max(float(variance), 0.0) * width**2
        noise = plan.noise("effect", Fraction(2 * bound * width))
        return Facts(
            estimate=float(effect) * width,
            uncertainty=Uncertainty(noise, known, max(known, width**2)),
            method="exact matching with smooth sensitivity, as published",
            not_covered=caveats(study, Caveat.STRATA_COUNTED_AS_ZERO),
            details={"rows": session.table.rows, "mechanism": "laplace"},
            interval_target=Target.PUBLISHED_ESTIMATE,
            independent_variance=True,
        )

    claim, drawn = (Proof.REFUTED, REMARK), ("laplace", "gaussian")
    return unproved(session, question, plan, compute, PAGE, claim, drawn)


_SMOOTH_MATCHING = EffectForm("smooth_matching", Unit.RECORD, None, _smooth_matching)


def smooth_matching(
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
    """Estimate an average effect by exact matching with smooth sensitivity, as SmoothDPMatching prints it.

    One-to-one matching within strata of equal covariates, in the order of rows; Laplace noise of scale 2 S /
    epsilon at a smooth bound S, Laplace noise on the variance, and Gaussian noise on ln S. Each takes a third
    of epsilon and delta.

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
        A small positive number, below 1: the form draws Gaussian noise.
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
    Claims (epsilon, delta)-DP for whole records; refuted. The printed S is not smooth: between neighbours ln
    S moves by up to 1.49 times the allowed step. With two rows and epsilon 1 the effect's delta is 1.6e-3,
    not 1e-5. Proof:
    ``published/smooth_sensitivity.proof.md``. Instead: `smooth_matching_proved`, or
    ``cv.ate(method="stratified")``.

    References
    ----------
    .. [1] Koga, T., Chaudhuri, K. and Page, D. (2024). Differentially Private Multi-Site Treatment Effect
       Estimation. IEEE SaTML, 472-489. arXiv:2310.06237.

    Examples
    --------
    >>> import counterveil as cv
    >>> data = cv.datasets.synth_strata(n=2000, levels=5)
    >>> result = cv.published.smooth_matching(
    ...     data.frame, data.study, epsilon=2, delta=1e-6, accept="unproved", noise=cv.SeededNoise(1)
    ... )
    >>> result.spent.epsilon >= 2
    True
    """
    return _SMOOTH_MATCHING(
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


def published(session: BaseSession, layout: Layout, epsilon: float, delta: float) -> PublishedStrata:
    """Return the statistics of the attached table; private numbers."""
    table, strata = session.table, strata_of_table(session.table, layout, prefix=True)
    rows, beta = table.rows, printed_smoothness(epsilon, delta)
    counts = StratumCounts.of(strata.treated, strata.control, strata.public)
    partner, uses = match_in_order(strata_codes(table, layout), table.treated)
    total = Fraction(float(published_variance(table.outcome, partner, uses)))
    return PublishedStrata(
        Fraction(single_effect_sum(strata), RANGE_STEPS * rows),
        total / RANGE_STEPS**2 / (2 * rows**2),
        printed_smooth_change(counts, beta) / rows,
        printed_smooth_variance_change(counts, beta) / rows**2,
        beta,
        rows,
    )


def release(gate: Gate, found: PublishedStrata) -> tuple[Fraction, Fraction, Released]:
    """Return the noisy effect, variance and logarithm of the bound, as published."""
    one = Fraction(1, found.rows)
    return (
        release_scaled(gate, "effect", found.effect, 2 * Fraction(found.effect_bound), one),
        release_scaled(gate, "variance", found.variance, 2 * Fraction(found.variance_bound), one**2),
        release_classical(gate, "scale", Fraction(log(found.effect_bound)), Fraction(found.smoothness)),
    )


def _check(question: PublishedQuestion) -> None:
    if question.estimand is not Estimand.ATE or question.budget.pure:
        raise refusal("CV-P366", estimand=question.estimand.value, budget=question.budget)


def match_in_order(stratum: Integers, treated: NDArray[np.bool_]) -> tuple[Integers, Integers]:
    """Return every row's partner (-1 where its stratum lacks the other arm) and how often it is a partner.

    The j-th row of an arm is matched with row (j mod size) of the other arm of its stratum.
    """
    _, place = np.unique(stratum, return_inverse=True)
    cell = 2 * place + treated
    sizes = np.bincount(cell, minlength=2 * (int(place.max(initial=-1)) + 1))
    order = np.argsort(cell, kind="stable")
    start = np.cumsum(sizes) - sizes
    rank = np.empty(len(cell), dtype=np.int64)
    rank[order] = np.arange(len(cell)) - start[cell[order]]
    other = cell ^ 1
    there = sizes[other]
    position = start[other] + rank % np.maximum(there, 1)
    partner = np.where(there > 0, order[np.minimum(position, len(cell) - 1)], -1)
    uses = np.bincount(partner[partner >= 0], minlength=len(cell))
    return partner, uses


def published_variance(outcome: Integers | Floats, partner: Integers, uses: Integers) -> Floats:
    """Return the sum of (1 + L)^2 (y - y of the partner)^2 over matched rows, L a row's uses; a double."""
    matched = partner >= 0
    gap = (outcome[matched] - outcome[partner[matched]]).astype(np.float64)
    return np.asarray(((1.0 + uses[matched]) ** 2 * gap**2).sum())


# The printed sensitivities. Changes of the effect are in units of B / N, those of its variance in units of (B / N)^2.


def printed_smoothness(epsilon: float, delta: float) -> float:
    """Return beta = epsilon / (2 ln(2 / delta)); for the Laplace noise below it is safe to epsilon about 10."""
    return epsilon / (2 * log(2 / delta))


def printed_noise_scale(smooth: float, epsilon: float) -> float:
    """Return the scale 2 S / epsilon of the Laplace noise; false wherever the printed S is not smooth."""
    return 2 * smooth / epsilon


def printed_smooth_change(counts: StratumCounts, smoothness: float) -> float:
    """Return max over k = 0..N of e^(-k beta) A^(k): its logarithm moves by up to 1.5 beta, not beta."""
    smaller, larger = _smaller_larger(counts)

    def value(k: int, floor: float) -> float:
        del floor
        return 4.0 * (1 + _ratio(smaller, larger, k))

    return largest_discounted(value, 8.0 * (counts.rows + 1), counts.rows, smoothness)


def printed_log_sd(smoothness: float, epsilon: float, delta: float) -> float:
    """Return the standard deviation of the Gaussian noise on ln S.

    False: ln S moves by more than beta, and the textbook constant is proved below epsilon 1 only.
    """
    return textbook_constant(delta) * smoothness / epsilon


def printed_smooth_variance_change(counts: StratumCounts, smoothness: float) -> float:
    """Return max over k = 0..N of e^(-k beta) times the printed bound within k replacements.

    Insertion and removal take their largest counts each for itself, as the printed maximum over data sets
    leaves open; that only enlarges it.
    """

    def value(k: int, floor: float) -> float:
        del floor
        return printed_variance_within(counts, k)

    return largest_discounted(value, 64.0 * (counts.rows + 2) ** 2, counts.rows, smoothness)


def _smaller_larger(counts: StratumCounts) -> tuple[Integers, Integers]:
    smaller = np.minimum(counts.treated, counts.control)
    larger = np.maximum(counts.treated, counts.control)
    kept = two_fronts(smaller, larger)
    return smaller[kept], larger[kept]


def _ratio(smaller: Integers, larger: Integers, k: int) -> float:
    left = np.maximum(1, smaller - k)
    return float(np.where(k >= smaller, larger + k, -(-(larger + k + 1) // left)).max(initial=0))


def printed_variance_within(counts: StratumCounts, k: int) -> float:
    """Return the printed bound on the local change of the variance within k replacements.

    Each printed form grows in the larger arm while the smaller stands still, so that for every number in the
    smaller arm only the largest number that any stratum can put beside it has to be tried.
    """
    inserted = removed = 0.0
    one, two = np.append(counts.treated, counts.control), np.append(counts.control, counts.treated)
    most, first = int(one.max()) + k, max(0, int(one.min()) - k)
    while first <= min(most, counts.rows) and (
        first == 0 or _most_from(first, most) > min(inserted, removed)
    ):
        smaller = np.arange(first, min(first + _CHUNK, counts.rows + 1))
        moved = smaller - one[:, None]
        beside = np.where(np.abs(moved) <= k, two[:, None] + k - np.maximum(0, moved), -1).max(axis=0)
        within = beside >= 0
        a = smaller[within].astype(np.float64)
        b = np.minimum(beside, counts.rows - smaller)[within].astype(np.float64)
        inserted = max(inserted, float(_inserted(a, b).max(initial=0)))
        removed = max(removed, float(_removed(a, b).max(initial=0)))
        first += _CHUNK
    return (inserted + removed) / 2


def _most_from(smaller: int, larger: int) -> float:
    """Return what no printed form exceeds where the arms have at least `smaller` and at most `larger` people.

    Every form is a sum of terms 2 (a + i) (2 + (b + j) / a)^2, 2 (b + i) (1 + 3)^2 and (2 + (b + j) / a)^2 with i
    and j up to 2; the bound falls in a = `smaller`.
    """
    ratio = (larger + 2) / smaller
    steep = 8 * (1 + 2 / smaller) * (larger + 2) + 2 * (1 + 2 / smaller) * ratio * (larger + 2)
    return 42.0 * (larger + 4) + steep + (2 + ratio) ** 2


def _inserted(treated: Floats, control: Floats) -> Floats:
    """Return LS_g^+ of the appendix, without B^2, stratum by stratum."""
    single = np.maximum(treated, control)
    both = _either(_one_inserted, np.minimum(treated, control), single)
    return np.where((treated > 0) & (control > 0), both, (1 + single) ** 2 + 4 * single) * (single > 0)


def _one_inserted(t: Floats, c: Floats) -> Floats:
    return 2 * t * _square(c, t) + 2 * c * _square(t + 1, c) + _square(c, t + 1)


def _removed(treated: Floats, control: Floats) -> Floats:
    """Return the appendix's maximum of LS_g^- after one insertion, without B^2, stratum by stratum."""
    single = np.maximum(treated, control)
    return _either(_one_removed, np.minimum(treated, control), single) * (single > 0)


def _one_removed(t: Floats, c: Floats) -> Floats:
    grown = 2 * (1 + c) * _square(1 + t, c) + 2 * (1 + t) * _square(1 + c, 1 + t) + _square(1 + t, c)
    kept = 2 * (2 + t) * _square(c, 1 + t) + 2 * c * _square(2 + t, c) + _square(c, 1 + t)
    return np.maximum(grown, kept)


def _either(form: Callable[[Floats, Floats], Floats], smaller: Floats, larger: Floats) -> Floats:
    """Return the larger of form(smaller, larger) and form(larger, smaller); the first where an arm is empty."""
    empty = smaller == 0
    first = np.append(smaller, np.where(empty, smaller, larger))
    second = np.append(larger, np.where(empty, larger, smaller))
    found = form(first, second)
    return np.maximum(found[: len(smaller)], found[len(smaller) :])


def _square(above: Floats, below: Floats) -> Floats:
    """Return (1 + ceil(above / below))^2; where nobody is below, the caller does not use it."""
    return (1 + np.ceil(above / np.maximum(below, 1))) ** 2


# Exact matching on strata with noise that follows a smooth bound: `published.smooth_matching` as it can be proved.
#
# The noise has the scale that the counts of the strata call for; that scale is private. Released beside the effect
# are the logarithm of a bound M on every person's weight, which the interval is made from, and a variance.
#
# Lineage: smooth sensitivity (Nissim, Raskhodnikova and Smith 2007).


PAGES = (
    "published/smooth_strata.proof.md",
    "published/stratum_counts.proof.md",
    "published/strata_variance.proof.md",
)
# A logarithm taken in doubles is off by less than this.
_LOG_ROUNDING = Fraction(1, 2**44)


@dataclass(frozen=True, slots=True)
class Drawn:
    """The released numbers, in units of the outcome's width where they are effects; shares are of all rows."""

    effect: float
    weight: float  # the released bound on a person's weight
    variance: float  # G / N^2, or Q where that was released instead
    share: float  # of the estimand's people; 1 for ATE


def _proved_smooth_matching(session: BaseSession, question: Question) -> Result:
    """Return the effect by exact matching on all covariates with noise that follows a smooth bound, as proved."""
    if not question.budget.pure:
        raise refusal("CV-P363", budget=question.budget)
    strata = session.strata(Layout.of(session.study))
    design = smooth_design(PublicNumbers(strata.rows, strata.public, question.budget, question.estimand))
    plan = Plan.split(question.budget, dict(design.shares), question.mechanism, design.kinds())

    def compute(gate: Gate) -> dict[str, object]:
        return asdict(release_proved(gate, strata, design, question.estimand))

    # What is known of the error takes quantiles of the noise: it is worked out from what was released.
    stored: dict[str, Any] = session.run(question.request(plan, session.study), compute)
    drawn, rows, width = Drawn(**stored), strata.rows, float(session.study.outcome_bounds.width)
    # A released share of people divides both the estimate and its variance.
    shared = "share" in dict(design.shares)
    found = Facts(
        estimate=drawn.effect * width / drawn.share,
        uncertainty=_uncertainty(question, plan, design, drawn, rows, width),
        guarantee=question.guarantee(session, PAGES, mechanisms=(question.mechanism, "lomax", "laplace")),
        method="exact matching on strata, smooth sensitivity",
        releases=plan.listed,
        not_covered=caveats(session.study, Caveat.STRATA_COUNTED_AS_ZERO),
        details={"rows": rows, "strata": strata.public, "max_weight": drawn.weight, "mechanism": "lomax"},
        independent_variance=not shared,
    )
    return built(Result, session, question, found)


_SMOOTH_MATCHING_PROVED = EffectForm(
    "smooth_matching_proved", Unit.RECORD, None, _proved_smooth_matching, printed=False
)


def smooth_matching_proved(
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
    """Estimate an average effect by exact matching with smooth sensitivity, with a proved guarantee.

    The mean of treated minus the mean of controls in each stratum, weighted by the estimand's people, with
    Lomax noise at a corrected smooth bound. Released beside it are the logarithm of a bound on everyone's
    weight, and a variance.

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
    estimand : {"ATE", "ATT", "ATC"}, default "ATE"
        Average effect on everyone, on the treated, or on the controls.
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
    Protects whole records; pure epsilon-DP. With t and c the people of a stratum in each arm and h = t + c
    (ATE), t (ATT) or c (ATC), the estimate is

        sum over strata with t, c >= 1 of h (mean of treated - mean of controls) / N;

    people in strata without both arms count as zero. Proofs: ``published/smooth_strata.proof.md``,
    ``published/stratum_counts.proof.md``, ``published/strata_variance.proof.md``. Instead:
    ``cv.ate(method="stratified")``.

    References
    ----------
    .. [1] Koga, T., Chaudhuri, K. and Page, D. (2024). Differentially Private Multi-Site Treatment Effect
       Estimation. IEEE SaTML, 472-489. arXiv:2310.06237.

    Examples
    --------
    >>> import counterveil as cv
    >>> data = cv.datasets.synth_strata(n=2000, levels=5)
    >>> result = cv.published.smooth_matching_proved(
    ...     data.frame, data.study, epsilon=2, noise=cv.SeededNoise(1)
    ... )
    >>> result.details["strata"]
    5
    """
    return _SMOOTH_MATCHING_PROVED(
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


def release_proved(gate: Gate, strata: Strata, design: SmoothDesign, estimand: Estimand) -> Drawn:
    """Return the released numbers of one design."""
    rows, word = strata.rows, estimand.value
    counts = StratumCounts.of(strata.treated, strata.control, strata.public)
    smoothness, slack = design.effect, 2 * ROUNDING * rows
    effect = gate.release_smooth(
        "effect",
        effect_sum(strata, word) / RANGE_STEPS / rows,
        smooth_change(counts, smoothness, word, "all", slack) / rows,
        smoothness,
        Fraction(1, rows),
    )
    weight = float(smooth_weight(counts, smoothness, word, slack))
    variance, bound = _release_variance(gate, strata, counts, design, word)
    scale = max(weight, sqrt(bound / float(VARIANCE_PER_WEIGHT)))
    known = gate.release_cells("scale", [Fraction(log(scale))], design.scale_sensitivity + 2 * _LOG_ROUNDING)
    share = _release_share(gate, strata, estimand)
    return Drawn(float(effect), float(np.exp(known.floats()[0])), variance, share)


def _release_variance(
    gate: Gate, strata: Strata, counts: StratumCounts, design: SmoothDesign, word: str
) -> tuple[float, float]:
    """Return the released variance, and the smooth bound of G (0 where pooled squares are released)."""
    rows, square = strata.rows, Fraction(1, RANGE_STEPS**2)
    if design.variance is None:
        pooled = gate.release("variance", pooled_squares(strata) * square, pooled_change(rows))
        return float(pooled), 0.0
    bound = smooth_variance_change(counts, design.variance)
    value = order_free_variance(strata, word) * square / rows**2
    found = gate.release_smooth("variance", value, bound / rows**2, design.variance, Fraction(1, rows**2))
    return float(found), float(bound)


def _release_share(gate: Gate, strata: Strata, estimand: Estimand) -> float:
    """Return the share of the estimand's people; nothing is released where they are everyone."""
    if estimand is Estimand.ATE:
        return 1.0
    people = strata.treated if estimand is Estimand.ATT else strata.control
    share = gate.release("share", Fraction(int(people.sum()), strata.rows), Fraction(1, strata.rows))
    return min(max(float(share), float(LEAST_SHARE)), 1.0)


def _uncertainty(
    question: Question, plan: Plan, design: SmoothDesign, drawn: Drawn, rows: int, width: float
) -> Uncertainty:
    """Return the uncertainty of the effect of the people it speaks for."""
    log_scale = float(design.scale_sensitivity / plan.amount("scale", Kind.CELLS))
    unit = width / drawn.share
    noise = noise_with_noisy_scale(
        plan.smooth_noise("effect", design.effect), 2 * drawn.weight / rows * unit, log_scale
    )
    extra = 0.0
    if "share" in dict(design.shares):
        extra = plan.noise("share", Fraction(1, rows)).variance * (drawn.effect * unit / drawn.share) ** 2
    if design.variance is None:
        factor = variance_allowance(log_scale, 1 - question.level) * (drawn.weight * unit / rows) ** 2
        squares = plan.noise("variance", pooled_change(rows) * Fraction(factor))
        return Uncertainty(noise, factor * drawn.variance, factor * rows / 2, squares, extra)
    scale = float(VARIANCE_PER_WEIGHT) * (drawn.weight * unit / rows) ** 2
    variance = noise_with_noisy_scale(plan.smooth_noise("variance", design.variance), scale, 2 * log_scale)
    return Uncertainty(noise, drawn.variance * unit**2, unit**2 / 2, variance, extra)


# A bound of G that is this many times what equal strata have at least is too loose to be useful.
_LOOSE = 2.0
_FOR_SCALE = [Fraction(k, 20) for k in (1, 2, 4, 6)]
_SMOOTHNESS = [Fraction(1, k) for k in (4, 6, 10, 20, 40)]
# A steeper bound would hardly be lower: at this rate one replacement counts for a seventh.
_STEEPEST = Fraction(2)
# Parts of the budget for the variance and for the share of the estimand's people.
_FOR_VARIANCE = Fraction(3, 20)
_FOR_SHARE = Fraction(1, 10)
# The bound of G against the squared weight, for strata in balance: 6 against 2 squared.
VARIANCE_PER_WEIGHT = Fraction(3, 2)


@dataclass(frozen=True, slots=True)
class SmoothDesign:
    """The split of the budget and the rates of the smooth bounds.

    `variance` is that of G, None where pooled squares are released instead.
    """

    shares: tuple[tuple[str, Fraction], ...]
    effect: Fraction
    variance: Fraction | None

    @property
    def scale_sensitivity(self) -> Fraction:
        """How far the logarithm of the released scale can move."""
        return self.effect if self.variance is None else max(self.effect, self.variance / 2)

    def kinds(self) -> dict[str, Kind]:
        """Return what the releases are planned as."""
        smooth = ("effect",) if self.variance is None else ("effect", "variance")
        return dict.fromkeys(smooth, Kind.SMOOTH) | {"scale": Kind.CELLS}


@dataclass(frozen=True, slots=True)
class PublicNumbers:
    """What the design may look at."""

    rows: int
    strata: int
    budget: Budget
    estimand: Estimand


@lru_cache(maxsize=64)
def smooth_design(numbers: PublicNumbers) -> SmoothDesign:
    """Return the design with the narrowest interval for equal strata with half of everyone treated."""
    # Equal strata in balance, as many as public numbers allow.
    arm = max(1, numbers.rows // (2 * numbers.strata))
    strata = max(1, numbers.rows // (2 * arm))
    counts = np.array([arm], dtype=np.int64)
    found = StratumCounts.of(counts, counts, 1)
    reference = StratumCounts(found.treated, found.control, np.array([strata]), 2 * arm * strata)
    fixed = _fixed_shares(numbers)
    left = 1 - sum(fixed.values(), Fraction(0))
    best: tuple[float, SmoothDesign] | None = None
    for part, rate in product(_FOR_SCALE, _SMOOTHNESS):
        shares = {"effect": left * (1 - part), "scale": left * part} | fixed
        amount = numbers.budget.epsilon * shares["effect"]
        design = SmoothDesign(tuple(shares.items()), min(amount * rate, _STEEPEST), None)
        try:
            plan = Plan.split(numbers.budget, dict(design.shares), "laplace", design.kinds())
            noise = plan.smooth_noise("effect", design.effect)
            weight = smooth_weight(reference, design.effect, numbers.estimand.value)
            log_scale = float(design.scale_sensitivity / plan.amount("scale", Kind.CELLS))
            width = float(weight) * tail_point(noise.distribution(Fraction(1)), log_scale, 0.05)
        except ParameterError:
            continue  # this rate allows no noise
        if best is None or width < best[0]:
            best = width, design
    if best is None:
        raise refusal("CV-P364", budget=numbers.budget)
    return _with_variance(numbers, best[1], reference)


def _fixed_shares(numbers: PublicNumbers) -> dict[str, Fraction]:
    shares = {"variance": _FOR_VARIANCE}
    if numbers.estimand is not Estimand.ATE:
        shares["share"] = _FOR_SHARE
    return shares


def _with_variance(numbers: PublicNumbers, design: SmoothDesign, reference: StratumCounts) -> SmoothDesign:
    """Return the design with a smooth release of G, where its bound is not too loose for that."""
    amount = numbers.budget.epsilon * dict(design.shares)["variance"]
    smoothness = min(amount / 6, 2 * design.effect, _STEEPEST)
    weight = smooth_weight(reference, design.effect, numbers.estimand.value)
    if smooth_variance_change(reference, smoothness) > _LOOSE * VARIANCE_PER_WEIGHT * weight**2:
        return design
    return SmoothDesign(design.shares, design.effect, smoothness)
