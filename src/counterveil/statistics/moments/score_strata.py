"""A contrast stratified by a private score; everything about a person is private.

The direction in which treated and untreated people differ is released, people are cut into strata along
it, and one number, the contrast weighted by strata, is released with its second moment. It adjusts for
what that direction catches and for nothing else.

Lineage: subclassification on a score (Rosenbaum and Rubin 1984); the score is the difference of the arms' means.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from itertools import product
from math import sqrt

import numpy as np
from numpy.typing import NDArray

from counterveil.data import Carrier, Sums, Table
from counterveil.data.encoding import outcome_unit
from counterveil.data.features import UnitFeatures, require_covariates
from counterveil.inference import Uncertainty
from counterveil.numerics.arms import Arm, Arms, cell_totals
from counterveil.numerics.arrays import Floats
from counterveil.numerics.products import BLOCK, LENGTH_ERROR, clipped_sum, projected_steps
from counterveil.privacy import Budget, Estimand
from counterveil.privacy.caveats import Caveat, NotAdjusted, Target
from counterveil.results.question import Question
from counterveil.results.result import Result
from counterveil.session import Gate, Kind, Plan, Released, Session
from counterveil.settings import ScoreStrata
from counterveil.statistics.histogram import release_counts
from counterveil.statistics.moments.contrast import release_means, release_share
from counterveil.statistics.moments.doubly_robust_plan import bounded, inner_share
from counterveil.statistics.moments.matching_sensitivity import (
    ClippedDirection,
    ScoreMoments,
    StratifiedContrast,
)

# How the cells of a stratified contrast are weighted: post-processing of released numbers.


Integers = NDArray[np.intp]

# What stratifying is supposed to change, as a part of the range: more noise than this is not worth it.
_GAP = 0.03
# How far cell means are supposed to lie from their arm's mean, as a part of the range.
_CELL_SD = 0.1
# An arm's count in a stratum is taken as at least this part of what its share of everyone gives, and at
# most as that divided by this part.
LEAST_PART = 0.4
# A stratum is taken to hold at least this part of everyone.
_LEAST_STRATUM = 0.02
# A true count exceeds its released one by less than this many standard deviations of the noise.
_COUNT_MARGIN = 4.0
_BLENDS = [k / 10 for k in range(11)]
_MOVES = [k / 4 for k in range(5)]


@dataclass(frozen=True, slots=True)
class Cells:
    """Released facts: rows, share treated, counts (2, K) with the treated first, means of both arms, width."""

    rows: int
    share: float
    share_variance: float
    counts: Floats
    count_variance: float
    means: tuple[Fraction, Fraction]
    width: Fraction


@dataclass(frozen=True, slots=True)
class Weighting:
    """The chosen contrast; `blend` is 1 for full stratification and 0 for the plain contrast.

    `inflation` times the second moment bounds the variance that errors of counts and share add;
    `variance_cap` bounds the sampling variance of the sum, the strata being given.
    """

    contrast: StratifiedContrast
    blend: float
    share: float
    inflation: float
    variance_cap: float


def choose_weighting(cells: Cells, unit_variance: float, estimand: str) -> Weighting:
    """Return the weights and centres with the least expected error; `unit_variance`: noise of sensitivity 1."""
    full, floors = _stratified(cells, estimand)
    arm_sizes = cells.rows * np.array([[cells.share], [1 - cells.share]])
    plain = np.ones_like(full) / arm_sizes
    width, means = float(cells.width), [float(mean) for mean in cells.means]
    middle = width / 2

    def moved(part: float) -> list[float]:
        return [mean + part * (middle - mean) for mean in means]

    def expected(choice: tuple[float, float]) -> float:
        blend, part = choice
        weights, centres = _blended(full, plain, blend), moved(part)
        off = np.array([[(c - m) ** 2] for c, m in zip(centres, means, strict=True)])
        counts = blend**2 * cells.count_variance * float((full**2 * (off + (_CELL_SD * width) ** 2)).sum())
        share = (
            (1 - blend) ** 2
            * cells.share_variance
            * float((off[:, 0] * (cells.rows / arm_sizes[:, 0]) ** 2).sum())
        )
        noise = unit_variance * _reach(width, weights, centres) ** 2
        return noise + counts + share + ((1 - blend) * _GAP * width) ** 2

    blend, part = min(product(_BLENDS, _MOVES), key=expected)
    inflation = blend**2 * cells.count_variance / float(floors.min())
    inflation += (1 - blend) ** 2 * cells.share_variance * cells.rows / min(cells.share, 1 - cells.share)
    weights = _blended(full, plain, blend)
    contrast = _contrast(cells.width, weights, moved(part))
    # An outcome's variance is at most a quarter of the squared width; counts are known up to their noise.
    most = np.clip(cells.counts + _COUNT_MARGIN * cells.count_variance**0.5, 0.0, cells.rows)
    cap = width**2 / 4 * float((weights**2 * most).sum())
    return Weighting(contrast, blend, cells.share, inflation, cap)


def _stratified(cells: Cells, estimand: str) -> tuple[Floats, Floats]:
    """Return the weights (2, K) of full stratification and the counts that they divide by."""
    sizes = np.maximum(cells.counts.sum(axis=0), _LEAST_STRATUM * cells.rows)
    # The number of rows is public, so that the strata can be made to hold all of them and no more.
    sizes *= cells.rows / sizes.sum()
    usual = sizes * np.array([[cells.share], [1 - cells.share]])
    counts = np.clip(cells.counts, LEAST_PART * usual, usual / LEAST_PART)
    target = {"ATE": sizes, "ATT": counts[0], "ATC": counts[1]}[estimand]
    return target / target.sum() / counts, counts


def _blended(full: Floats, plain: Floats, blend: float) -> Floats:
    return blend * full + (1 - blend) * plain


def _reach(width: float, weights: Floats, centres: list[float]) -> float:
    """Return the sensitivity of the contrast in floats: enough for a choice."""
    (a, b), (first, second) = weights.max(axis=1), centres
    low, high = min(-a * first, -b * (width - second)), max(a * (width - first), b * second)
    return float(high - low)


def _contrast(width: Fraction, weights: Floats, centres: list[float]) -> StratifiedContrast:
    treated, control = (tuple(Fraction(float(w)) for w in row) for row in weights)
    inside = [min(max(Fraction(centre), Fraction(0)), width) for centre in centres]
    return StratifiedContrast(width, treated, control, *inside)


PAGES = (
    "statistics/moments/score_strata.proof.md",
    "statistics/moments/arm_sums.proof.md",
    "statistics/moments/centred_contrast.proof.md",
    "mechanisms/ball.proof.md",
    "mechanisms/laplace.proof.md",
)
# Binary places of a row of the direction's sum and of a projection.
_BITS = 20
# Projections beyond this count as this; features are scaled to width one.
_LIMIT = 1
# A row of the direction's sum is shortened to this part of the longest possible row.
_LENGTH = 0.6
_KINDS = {"direction": Kind.VECTOR, "counts": Kind.CELLS, "centres": Kind.CELLS}


def strata_plan(rows: int, budget: Budget, mechanism: str) -> Plan:
    """Return the split of the budget; reads public numbers only."""
    size = rows * budget.epsilon
    shares = {
        "share": Fraction(15 if size < 600 else 10 if size < 2500 else 6, 100),
        "direction": Fraction(1, 4),
        "location": Fraction(3, 200),
        "deviation": Fraction(3, 200),
        "counts": Fraction(3, 25),
        "centres": Fraction(2, 25),
        "moment": Fraction(1, 20),
    }
    shares["contrast"] = 1 - sum(shares.values(), Fraction(0))
    return Plan.split(budget, shares, mechanism, _KINDS)


def score_strata(session: Session, question: Question) -> Result:
    """Return the contrast stratified by a private score; n is public and nothing else is."""
    require_covariates(session.study, "score_strata")
    settings = question.settings or ScoreStrata()
    features = UnitFeatures.of(session.study)
    source = session.batches
    plan = strata_plan(source.rows, question.budget, question.mechanism)

    def compute(gate: Gate) -> dict[str, object]:
        weighting, effect, square = release(
            gate, plan, source, features, settings.strata, question.estimand.value
        )
        return _result(session, question, settings, weighting, effect, square).stored()

    found = Result.from_dict(session.run(question.request(plan, session.study), compute))
    if settings.kappa is None:
        return found
    lo, hi = session.study.outcome_range
    return _bounded(found, settings.kappa, float(hi - lo))


def release(
    gate: Gate, plan: Plan, source: Carrier, features: UnitFeatures, strata: int, estimand: str
) -> tuple[Weighting, Released, Released]:
    """Return the weighting, the released contrast (less the centres) and its released second moment."""
    (lo, hi), unit = source.study.outcome_range, outcome_unit(source.study.outcome_bounds)
    (arms,) = strata_arms(source, None)
    share, share_variance = release_share(gate, arms, None)
    per_stratum = strata_arms(source, release_strata(gate, source, features, share, strata))
    counts = [a.count for arm in per_stratum for a in (arm.treated, arm.control)]
    noisy = release_counts(gate, "counts", counts, pure=True)
    means, _ = release_means(gate, arms, unit, hi - lo, share)
    cells = Cells(
        source.rows,
        float(share),
        share_variance,
        noisy.floats().reshape(strata, 2).T,
        noisy.variance,
        means,
        hi - lo,
    )
    weighting = choose_weighting(cells, plan.noise("contrast", Fraction(1)).variance, estimand)
    first, second = moments(per_stratum, unit, weighting.contrast)
    effect = gate.release("contrast", first, weighting.contrast.total)
    return weighting, effect, gate.release("moment", second, weighting.contrast.squares)


@dataclass(frozen=True, slots=True)
class Score:
    """Projections of rows on a released direction, in whole steps, and the released points at which they are cut."""

    features: UnitFeatures
    direction: Floats
    cuts: Floats

    def steps(self, block: Table) -> Integers:
        """Return the projection of every row."""
        parts = (z for _, z in self.features.blocks(block, BLOCK))
        return np.concatenate([projected_steps(z, self.direction, float(_LIMIT), _BITS) for z in parts])

    def strata(self, block: Table) -> Integers:
        """Return the stratum of every row."""
        return np.searchsorted(self.cuts, self.steps(block))


def release_strata(
    gate: Gate, source: Carrier, features: UnitFeatures, share: Fraction, strata: int
) -> Score:
    """Return what decides about everyone's stratum: a released direction, cut at released points."""
    q, one = float(share), Fraction(1, 2**_BITS)
    length = float(features.squared_reach) ** 0.5 * _LENGTH * (q * (1 - q)) ** 0.5
    (rows,) = source.run(partial(direction_sums, features=features, share=q, length=length))
    sensitivity = ClippedDirection(Fraction(length), Fraction(LENGTH_ERROR))
    found = gate.release_vector("direction", [v * one for v in rows], sensitivity.total).floats()
    size = float(np.linalg.norm(found))
    score = Score(features, found / size if size > 0 else found, np.empty(0))
    bounds = ScoreMoments(source.rows, Fraction(_LIMIT))
    ((total, _),) = source.run(partial(score_sums, score=score, middle=0))
    mean = gate.release("location", total * one / source.rows, bounds.location)
    middle = round(min(max(mean.value, -bounds.limit), bounds.limit) / one)
    ((_, apart),) = source.run(partial(score_sums, score=score, middle=middle))
    deviation = gate.release("deviation", apart * one / source.rows, bounds.distance(middle * one))
    cuts = middle + max(float(deviation), 0.0) * 2**_BITS * _normal_cuts(strata)
    return replace(score, cuts=np.floor(cuts))


def direction_sums(block: Table, features: UnitFeatures, share: float, length: float) -> Sums:
    """Return the sum of the rows' features times treatment less the share, each shortened to the length."""
    total = [0] * features.columns
    for part, z in features.blocks(block, BLOCK):
        factors = block.treated[part].astype(np.float64) - share
        total = [a + b for a, b in zip(total, clipped_sum(z, factors, length, _BITS), strict=True)]
    return (np.array(total, dtype=object),)


def score_sums(block: Table, score: Score, middle: int) -> Sums:
    """Return the sums of the rows' projections and of their distances from a middle."""
    steps = score.steps(block)
    return (np.array([steps.sum(), np.abs(steps - middle).sum()]),)


def stratum_sums(block: Table, score: Score | None, strata: int) -> Sums:
    """Return number of rows, sum and sum of squares of outcomes by stratum and arm, the untreated first."""
    place = 0 if score is None else 2 * score.strata(block)
    return (cell_totals(place + block.treated, 2 * strata, block.outcome),)


def strata_arms(source: Carrier, score: Score | None) -> list[Arms]:
    """Return the totals of both arms in every stratum; without a score all rows are one."""
    strata = 1 if score is None else len(score.cuts) + 1
    (sums,) = source.run(partial(stratum_sums, score=score, strata=strata))
    cells = [Arm(*line) for line in sums]
    return [Arms(treated, control) for control, treated in zip(cells[::2], cells[1::2], strict=True)]


def _normal_cuts(strata: int) -> Floats:
    """Return where a normal mechanism is cut into equal parts, in units of its mean distance from the centre."""
    from scipy.special import ndtri

    return np.asarray(ndtri(np.arange(1, strata) / strata) * np.sqrt(np.pi / 2))


def moments(
    per_stratum: list[Arms], unit: Fraction, contrast: StratifiedContrast
) -> tuple[Fraction, Fraction]:
    """Return the exact sums of psi and of psi squared."""
    first = second = Fraction(0)
    c1, c0 = contrast.centre_treated / unit, contrast.centre_control / unit
    for arms, a, b in zip(per_stratum, contrast.treated, contrast.control, strict=True):
        first += a * arms.treated.centred_total(c1) - b * arms.control.centred_total(c0)
        second += a**2 * arms.treated.centred_squares(c1) + b**2 * arms.control.centred_squares(c0)
    return first * unit, second * unit**2


def _result(
    session: Session,
    question: Question,
    settings: ScoreStrata,
    weighting: Weighting,
    effect: Released,
    square: Released,
) -> Result:
    study, contrast = session.study, weighting.contrast
    variance, width = float(square), float(contrast.width)
    # The moment may have come out too small by chance; one standard deviation is put on top. No effect
    # exceeds the width, so that a standard deviation of twice the width says that nothing is known.
    extra = (max(variance, 0.0) + sqrt(square.noise.variance)) * weighting.inflation
    uncertainty = Uncertainty(
        effect.noise,
        variance,
        weighting.variance_cap,
        square.noise,
        extra=min(extra, 4 * width**2),
    )
    return Result(
        estimate=float(effect.value + contrast.centre_treated - contrast.centre_control),
        uncertainty=uncertainty,
        guarantee=question.guarantee(session, PAGES),
        method=f"contrast within {settings.strata} strata of a private score",
        **question.effect_terms(study),
        releases=_releases(session.batches.rows, contrast),
        not_covered=(
            Caveat.CONFOUNDING_BUT_ONE_DIRECTION,
            Caveat.SMALL_STRATA,
            Caveat.CLAMPING,
        ),
        details={
            "rows": session.batches.rows,
            "mechanism": question.mechanism,
            "share_treated": weighting.share,
            "strata_weight": weighting.blend,
        },
        interval_of=Target.CONTRAST_WITHIN_STRATA,
    )


def _bounded(plain: Result, kappa: float, width: float) -> Result:
    """Return the contrast with an interval widened by the declared bound on residual confounding."""
    known, rows = plain.uncertainty, float(plain.details["rows"])
    share = inner_share(float(plain.details["share_treated"]))
    sd = width / 2
    if plain.estimand is Estimand.ATE:
        # Rows times the variance is no less than the variance of outcomes about their arm's mean, times the square
        # of what the lightest row counts; the distance between the arms makes up the rest.
        lightest = min(1.0, LEAST_PART / max(share, 1 - share))
        within = rows * max(known.known_sd(1 - plain.level) ** 2 - known.extra, 0.0) / lightest**2
        sd = min(sd, sqrt(within + share * (1 - share) * plain.estimate**2))
    return bounded(
        plain,
        kappa,
        sd,
        share,
        NotAdjusted(kappa, one_direction=True),
    )


def _releases(rows: int, contrast: StratifiedContrast) -> tuple[tuple[str, str], ...]:
    return (
        ("share treated", f"sensitivity {1 / rows:.6g}"),
        ("direction between the arms", "noise on the whole vector"),
        ("mean and mean absolute deviation of the score", "they place the cuts"),
        ("numbers in the cells", "sensitivity 2"),
        ("sums of both arms", "they centre the contrast"),
        ("stratified contrast", f"sensitivity {float(contrast.total):.6g}"),
        ("its second moment", f"sensitivity {float(contrast.squares):.6g}"),
    )
