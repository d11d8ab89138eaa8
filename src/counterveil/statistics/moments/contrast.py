"""The unadjusted comparison of two arms; everything about a person is private.

With t private, the number treated is private too, so that dividing by it is not free. The share treated q is released
first, and a centre c of the outcomes; the mean of psi = t (y-c)/q - (1-t) (y-c)/(1-q) then differs from the
difference in means only by the product of two errors: that of q, and the distance of c from (1-q) m_1 + q m_0. A
pooled centre is the mean outcome of everyone. A centre of both arms is made of their means, which cost one sum
together and centre arms of unequal size rightly however large the effect is (docs/decisions/0010-contrast.md).

With q known, psi would be the inverse-probability-weighted (Horvitz-Thompson) contrast of the centred outcomes, whose
variance has chance in the number treated in it: a declared share is joined with the released one instead.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import product
from math import sqrt

from counterveil.data import Sums, Table
from counterveil.data.domains import outcome_unit
from counterveil.inference.convolution import NoiseDistribution
from counterveil.inference.measures import JointMeans, with_rare_events
from counterveil.inference.uncertainty import Uncertainty
from counterveil.numerics.columns import TwoArms, arm_totals
from counterveil.numerics.public_choices import LEAST_SHARE
from counterveil.privacy import Budget
from counterveil.privacy.caveats import SmallArms, Target
from counterveil.results.answering import Facts, settled
from counterveil.results.question import Question, causal_caveats
from counterveil.results.result import Result
from counterveil.session import BaseSession, Gate, Kind, Plan, Released
from counterveil.statistics.moments.sensitivity import CentredContrast, both_sums, mean_of_everyone

# Where outcomes are centred: the mean of everyone, or the means of both arms.
POOLED, ARMS = "pooled", "arms"
PAGES = {
    POOLED: ("statistics/moments/centred_contrast.proof.md",),
    ARMS: ("statistics/moments/centred_contrast.proof.md", "statistics/moments/arm_sums.proof.md"),
}
# The mechanism of the arms' sums, beside that of the other releases.
CENTRES_MECHANISM = "laplace"
# From this many rows times epsilon on, centres for both arms are worth their price; like the shares of
# `_arms_plan`, found by `python -m experiments.record_level.centres`.
_LEAST_SIZE = 400
# How far the centre goes from its best place to the middle of the range, where sensitivity is least.
_MOVES = [Fraction(k, 16) for k in range(17)]


@dataclass(frozen=True, slots=True)
class Setting:
    """Share and centre of the contrast, both public by now, and the variances of their errors."""

    share: Fraction
    share_variance: float
    centre: Fraction
    centre_shift: float  # released mean minus centre
    centre_sd: float  # standard deviation of the released mean's noise

    def arm_sizes(self, rows: int) -> tuple[float, float]:
        """Return about how many people are in each arm, treated first."""
        return rows * float(self.share), rows * float(1 - self.share)


@dataclass(frozen=True, slots=True)
class Contrast:
    """What was released: where psi was centred, its mean and second moment, and the noise of its variance."""

    setting: Setting
    sensitivity: CentredContrast
    effect: Released
    square: Released
    variance_noise: NoiseDistribution

    def uncertainty(self, centre: str = POOLED) -> Uncertainty:
        """Return the uncertainty of the contrast."""
        setting, rows = self.setting, self.sensitivity.rows
        q, estimate, noise = float(setting.share), float(self.effect), self.effect.noise
        # The squared estimate holds the noise's variance once too often.
        variance = (float(self.square) - estimate**2 + noise.variance) / rows
        # How far the centre is from where an error in the share would do no harm, (1-q) m1 + q m0.
        off = setting.centre_shift + (1 - 2 * q) * estimate if centre == POOLED else setting.centre_shift
        extra = setting.share_variance * (off**2 + setting.centre_sd**2) / (q * (1 - q)) ** 2
        # The share is the realised one: chance in who was treated does not move the contrast, but the moment of psi
        # counts it. What is certain of that part, given the noise of the centre, is taken off.
        counted = max(abs(off) - setting.centre_sd, 0.0) ** 2
        variance -= counted / (q * (1 - q)) / rows
        cap = float(self.sensitivity.variance_cap) / rows
        return Uncertainty(noise, variance, cap, self.variance_noise, extra)

    def both_means(self, mean_noise: NoiseDistribution, ends: tuple[float, float]) -> JointMeans:
        """Return both arms' means with their joint error, for outcomes in this range and a pooled centre."""
        setting = self.setting
        return JointMeans(
            mean=ends[0] + float(setting.centre) + setting.centre_shift,
            mean_noise=mean_noise,
            difference=float(self.effect),
            known=self.uncertainty(),
            share=float(setting.share),
            share_sd=sqrt(setting.share_variance),
            rows=self.sensitivity.rows,
            range=ends,
        )


def pays(rows: int, budget: Budget, mechanism: str) -> bool:
    """Return whether centres of both arms leave less noise than a pooled one; public numbers only."""
    return mechanism != "gaussian" and rows * budget.epsilon >= _LEAST_SIZE


def compare(
    session: BaseSession, question: Question, centre: str, interval_target: Target | None = None
) -> Result:
    """Return the private difference in means; n is public and nothing else is.

    `interval_target` says what the interval is one for, where that is not the effect.
    """
    source, study = session.batches, session.study
    lo, hi = study.outcome_range
    plan = plan_of(centre, source.rows, question.budget, question.mechanism)

    def compute(gate: Gate) -> Facts:
        (sums,) = source.run(arm_sums)
        step = outcome_unit(study.outcome_bounds)
        found = release(gate, plan, TwoArms.of(sums, source.rows), step, hi - lo, study.treated_share, centre)
        return Facts(
            **facts_of(session, question, centre, found),
            method="difference in means (centred contrast)" if centre == POOLED else "unadjusted contrast",
            interval_target=interval_target,
        )

    drawn = None if centre == POOLED else (CENTRES_MECHANISM, question.mechanism)
    return settled(Result, session, question, plan, compute, pages=PAGES[centre], mechanisms=drawn)


def arm_sums(table: Table) -> Sums:
    """Return the six totals of both arms."""
    return (arm_totals(table.treated, table.outcome).sums,)


def plan_of(centre: str, rows: int, budget: Budget, mechanism: str) -> Plan:
    """Return the split over share, centre, contrast and moment; reads public numbers only."""
    if centre == POOLED:
        return Plan.split(budget, pooled_shares(rows, budget, mechanism), mechanism)
    size = rows * budget.epsilon
    for_share = Fraction(1, 5) if size < 600 else Fraction(7, 50) if size < 2500 else Fraction(1, 10)
    shares = {"share": for_share, "centres": Fraction(2, 25), "moment": Fraction(1, 10)}
    shares["contrast"] = 1 - sum(shares.values(), Fraction(0))
    return Plan.split(budget, shares, mechanism, {"centres": Kind.CELLS})


@lru_cache(maxsize=64)
def pooled_shares(rows: int, budget: Budget, mechanism: str) -> dict[str, Fraction]:
    """Return the split with the smallest expected total variance.

    The expectation is taken for outcomes in [0, 1], balanced arms and a mean off the middle by a quarter of the range.
    """
    for_share = [Fraction(k, 20) for k in (1, 2, 4)]
    for_centre = [Fraction(k, 40) for k in (1, 2, 4)]
    for_moment = [Fraction(k, 20) for k in (1, 2, 3, 4)]

    def expected(shares: dict[str, Fraction]) -> float:
        plan = Plan.split(budget, shares, mechanism)
        off = plan.noise("centre", Fraction(1, rows)).variance + 0.1**2
        wrong_share = plan.noise("share", Fraction(1, rows)).variance
        contrast = plan.noise("contrast", Fraction(5, 2) / rows).variance
        moment = sqrt(plan.noise("moment", Fraction(9, 4) / rows).variance) / rows
        return contrast + moment + 16 * wrong_share * off

    splits = [
        {"share": share, "centre": centre, "contrast": 1 - share - centre - moment, "moment": moment}
        for share, centre, moment in product(for_share, for_centre, for_moment)
    ]
    return min(splits, key=expected)


def release(
    gate: Gate,
    plan: Plan,
    arms: TwoArms,
    unit: Fraction,
    width: Fraction,
    declared: Fraction | None,
    centre: str,
) -> Contrast:
    """Return the contrast around a released share and centre."""
    share = release_share(gate, arms, declared)
    centred = centred_on_everyone if centre == POOLED else _centred_on_arms
    return release_contrast(gate, plan, arms, unit, width, centred(gate, plan, arms, unit, width, *share))


def release_contrast(
    gate: Gate,
    plan: Plan,
    arms: TwoArms,
    unit: Fraction,
    width: Fraction,
    setting: Setting,
    names: tuple[str, str] = ("contrast", "moment"),
) -> Contrast:
    """Return the released mean of psi and mean of its square, under these names."""
    sensitivity = CentredContrast(width, arms.count, setting.share, setting.centre)
    first, second = moments(arms, unit, setting)
    effect = gate.release(names[0], first, sensitivity.mean)
    square = gate.release(names[1], second, sensitivity.second_moment)
    noise = plan.noise(names[1], sensitivity.second_moment / arms.count)
    return Contrast(setting, sensitivity, effect, square, noise)


def release_share(gate: Gate, arms: TwoArms, declared: Fraction | None) -> tuple[Fraction, float]:
    """Return the share treated, inside its bounds, and the variance of its error.

    A declared share is the chance of being treated, from which the share that was treated differs by chance: it is
    joined with the released one by the variances of both.
    """
    share = Fraction(arms.treated.count, arms.count)
    noisy = gate.release("share", share, mean_of_everyone(Fraction(1), arms.count))
    share, variance = noisy.value, noisy.noise.variance
    if declared is not None:
        chance = float(declared * (1 - declared)) / arms.count
        part = 1 / (1 + chance / variance)
        share += Fraction(part).limit_denominator(1 << 20) * (declared - share)
        variance = part * chance
    return min(max(share, LEAST_SHARE), 1 - LEAST_SHARE), variance


def centred_on_everyone(
    gate: Gate,
    plan: Plan,
    arms: TwoArms,
    unit: Fraction,
    width: Fraction,
    share: Fraction,
    share_variance: float,
    names: tuple[str, str] = ("centre", "contrast"),
) -> Setting:
    """Return the centre between the released mean outcome and the middle with the least expected error.

    At the released mean an error in the share does no harm; in the middle of the range the contrast has its smallest
    sensitivity. Post-processing of released numbers. `names` are those of the releases of centre and contrast.
    """
    pooled = Fraction(arms.treated.total + arms.control.total, arms.count) * unit
    mean = gate.release(names[0], pooled, mean_of_everyone(width, arms.count))
    start = min(max(mean.value, Fraction(0)), width)
    unit_variance = plan.noise(names[1], Fraction(1)).variance
    centre = least_error_centre(start, width, arms.count, share, share_variance, unit_variance)
    return Setting(share, share_variance, centre, float(start - centre), sqrt(mean.noise.variance))


def least_error_centre(
    start: Fraction, width: Fraction, rows: int, share: Fraction, share_variance: float, unit_variance: float
) -> Fraction:
    """Return the centre between a released mean and the middle; `unit_variance` is that of the contrast's noise."""
    weight = share_variance / float(share * (1 - share)) ** 2

    def expected(centre: Fraction) -> float:
        sensitivity = float(CentredContrast(width, rows, share, centre).mean)
        return unit_variance * sensitivity**2 + weight * float(centre - start) ** 2

    return min((start + part * (width / 2 - start) for part in _MOVES), key=expected)


def _centred_on_arms(
    gate: Gate,
    plan: Plan,
    arms: TwoArms,
    unit: Fraction,
    width: Fraction,
    share: Fraction,
    share_variance: float,
) -> Setting:
    """Return the same between the centre that both arms' released means make and the middle."""
    means, variance = release_means(gate, arms, unit, width, share)
    q = share
    best = (1 - q) * means[0] + q * means[1]
    # Noise of the centre: that of each mean is its sum's divided by the (released) size of the arm.
    squares = float((1 - q) / q) ** 2 + float(q / (1 - q)) ** 2
    centre_sd = (variance * squares) ** 0.5 / arms.count
    unit_variance = plan.noise("contrast", Fraction(1)).variance
    centre = least_error_centre(best, width, arms.count, q, share_variance, unit_variance)
    return Setting(q, share_variance, centre, float(best - centre), centre_sd)


def release_means(
    gate: Gate, arms: TwoArms, unit: Fraction, width: Fraction, share: Fraction
) -> tuple[tuple[Fraction, Fraction], float]:
    """Return both arms' means (treated first), inside the range, and the variance of the sums' noise."""
    middle = width / 2
    sums = [arm.total * unit - arm.count * middle for arm in (arms.treated, arms.control)]
    noisy = gate.release_cells("centres", sums, both_sums(width))
    sizes = (arms.count * share, arms.count * (1 - share))
    means = [middle + total / size for total, size in zip(noisy.values, sizes, strict=True)]
    treated, control = (min(max(mean, Fraction(0)), width) for mean in means)
    return (treated, control), noisy.variance


def moments(arms: TwoArms, unit: Fraction, setting: Setting) -> tuple[Fraction, Fraction]:
    """Return the exact means of psi and of psi squared."""
    q, centre = setting.share, setting.centre / unit
    first = arms.treated.centred_total(centre) / q - arms.control.centred_total(centre) / (1 - q)
    second = arms.treated.centred_squares(centre) / q**2 + arms.control.centred_squares(centre) / (1 - q) ** 2
    return first * unit / arms.count, second * unit**2 / arms.count


def facts_of(session: BaseSession, question: Question, centre: str, found: Contrast) -> Facts:
    """Return the effect and what is said of it, from what was released of the contrast."""
    study, rows, setting = session.study, session.batches.rows, found.setting
    return Facts(
        estimate=float(found.effect),
        uncertainty=with_rare_events(found.uncertainty(centre), study.outcome_range, setting.arm_sizes(rows)),
        releases=releases(centre, found.sensitivity),
        not_covered=(*causal_caveats(study, question.estimand), SmallArms(float(LEAST_SHARE))),
        details={"rows": rows, "share_treated": float(setting.share), "mechanism": found.effect.noise.name},
    )


def releases(centre: str, sensitivity: CentredContrast) -> tuple[tuple[str, str], ...]:
    """Return what is released, in words, with the sensitivity of each."""
    width = float(sensitivity.width)
    centres = {
        POOLED: ("mean outcome", f"sensitivity {width / sensitivity.rows:.6g}; centres the contrast"),
        ARMS: ("sums of both arms", f"sensitivity {width:.6g}; they centre the contrast"),
    }
    return (
        ("share treated", f"sensitivity {1 / sensitivity.rows:.6g}"),
        centres[centre],
        ("centred contrast", f"sensitivity {float(sensitivity.mean):.6g}"),
        ("its second moment", f"sensitivity {float(sensitivity.second_moment):.6g}"),
    )
