"""The comparison of two private arms: a contrast centred by released numbers.

With t private, the number treated is private too, so that dividing by it is not free. The share treated q is
released first, and a centre c of the outcomes; the mean of

    psi = t (y - c) / q - (1 - t) (y - c) / (1 - q)

then differs from the difference in means only by the product of two errors: that of q, and the distance of c
from (1 - q) m_1 + q m_0. A pooled centre is the mean outcome of everyone. A centre of both arms is made of
their means, which cost one sum together and centre arms of unequal size rightly however large the effect is
(docs/decisions/0010-contrast.md).

With q known, psi would be the inverse-probability-weighted (Horvitz-Thompson) contrast of the centred
outcomes, whose variance has chance in the number treated in it: a declared share is joined with the released
one instead.

Numbers of this module that are choices were found by `python -m experiments.record_level.centres`; the
privacy does not depend on them.

In: private treatments and outcomes, their number n and the outcome's declared range. Out: an estimate in
units of the outcome with its errors of sampling and noise; m_1 and m_0 are the arms' means. Why it is
private: with q and c released, psi lies in a known interval [a, b], so that a replaced row moves its mean by
at most (b - a)/n. Proofs: `rows/moments/centred_contrast.proof.md`; sums of both arms, for a centre of their
means, `rows/moments/arm_sums.proof.md`.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import product
from math import sqrt

from counterveil.data import Study
from counterveil.estimators.method import Prepared
from counterveil.inference.arm_means import JointArmMeans, with_rare_events
from counterveil.inference.noise_distribution import NoiseDistribution
from counterveil.inference.uncertainty import Uncertainty
from counterveil.numerics.public_choices import LEAST_SHARE
from counterveil.privacy import Budget
from counterveil.privacy.caveats import SmallArms, Target
from counterveil.privacy.provenance import CentringSensitivity, Estimator, Quantity, ReleaseRow, Sensitivity
from counterveil.results.answering import Facts
from counterveil.results.question import Question, causal_caveats
from counterveil.results.result import Result
from counterveil.rows.moments.centred_contrast import CentredContrast, PrivateArms, outcomes_by_arm
from counterveil.rows.public import PublicData
from counterveil.session import Gate, Kind, Plan, Released

# Outcomes are centred at the mean of everyone,
POOLED = "pooled"
# or at what the means of both arms make.
ARMS = "arms"
PAGES = {
    POOLED: ("rows/moments/centred_contrast.proof.md",),
    ARMS: ("rows/moments/centred_contrast.proof.md", "rows/moments/arm_sums.proof.md"),
}
# The mechanism of the arms' sums, beside that of the other releases.
CENTRES_MECHANISM = "laplace"
# The names of the contrast and of its second moment in a plan.
CONTRAST_NAMES = ("contrast", "moment")
# From this many rows times epsilon on, centres for both arms are worth their price.
_LEAST_SIZE = 400
# How far the centre goes from its best place to the middle of the range, where sensitivity is least.
_MOVES = [Fraction(k, 16) for k in range(17)]
# Denominator of the part by which a declared share takes the place of a released one.
_SHRINKAGE_DENOMINATOR = 1 << 20


@dataclass(frozen=True, slots=True)
class Setting:
    """Share and centre of the contrast, both public by now, and the errors of what they were made of.

    Attributes
    ----------
    share : Fraction
        q, the share treated.
    share_variance : float
        Variance of its error.
    centre : Fraction
        c, in units of the outcome above the low end of its range.
    centre_shift : float
        The place of least harm that was released, less the centre.
    centre_sd : float
        Standard deviation of the noise of that place.
    """

    share: Fraction
    share_variance: float
    centre: Fraction
    centre_shift: float
    centre_sd: float

    def arm_sizes(self, rows: int) -> tuple[float, float]:
        """Return about how many people are in each arm, treated first."""
        return rows * float(self.share), rows * float(1 - self.share)


@dataclass(frozen=True, slots=True)
class Contrast:
    """What was released: where psi was centred, its mean and second moment, and the noise of its variance.

    Attributes
    ----------
    setting : Setting
        Share and centre.
    bounds : CentredContrast
        How far a row moves the contrast there.
    effect, square : Released
        Means of psi and of psi^2.
    variance_noise : NoiseDistribution
        Noise of the mean of psi^2 over the number of rows.
    """

    setting: Setting
    bounds: CentredContrast
    effect: Released
    square: Released
    variance_noise: NoiseDistribution

    def uncertainty(self, centre: str = POOLED) -> Uncertainty:
        """Return the uncertainty of the contrast.

        With d how far the centre is from where an error of q would do no harm, the error of the share adds
        var(q) (d^2 + var(c)) / (q (1 - q))^2.
        """
        setting = self.setting
        rows = self.bounds.rows
        q = float(setting.share)
        estimate = float(self.effect)
        noise = self.effect.noise
        # E[estimate^2] includes the noise variance; subtract it.
        variance = (float(self.square) - estimate**2 + noise.variance) / rows
        # How far the centre is from where an error in the share would do no harm, (1-q) m1 + q m0.
        off = setting.centre_shift + (1 - 2 * q) * estimate if centre == POOLED else setting.centre_shift
        extra = setting.share_variance * (off**2 + setting.centre_sd**2) / (q * (1 - q)) ** 2
        # The share is the realised one: chance in who was treated does not move the contrast, but the moment of psi
        # counts it. What is certain of that part, given the noise of the centre, is taken off.
        counted = max(abs(off) - setting.centre_sd, 0.0) ** 2
        variance -= counted / (q * (1 - q)) / rows
        cap = float(self.bounds.variance_cap) / rows
        return Uncertainty(
            noise=noise, variance=variance, variance_cap=cap, variance_noise=self.variance_noise, extra=extra
        )

    def both_means(self, mean_noise: NoiseDistribution, ends: tuple[float, float]) -> JointArmMeans:
        """Return both arms' means with their joint error, for outcomes in this range and a pooled centre."""
        setting = self.setting
        return JointArmMeans(
            mean=ends[0] + float(setting.centre) + setting.centre_shift,
            mean_noise=mean_noise,
            difference=float(self.effect),
            known=self.uncertainty(),
            share=float(setting.share),
            share_sd=sqrt(setting.share_variance),
            rows=self.bounds.rows,
            range=ends,
        )


def is_worthwhile(rows: int, budget: Budget, mechanism: str) -> bool:
    """Return whether centres of both arms leave less noise than a pooled one; public numbers only."""
    return mechanism != "gaussian" and rows * budget.epsilon >= _LEAST_SIZE


def compare(
    public: PublicData, question: Question, centre: str, interval_target: Target | None = None
) -> Prepared[Result]:
    """Return the difference in means; n is public and nothing else is.

    `interval_target` says what the interval is one for, where that is not the effect.
    """
    study = public.study
    rows = public.rows
    plan = plan_of(centre, rows, question.budget, question.mechanism)

    def estimate(gate: Gate) -> Facts:
        contrast = release(gate, plan, outcomes_by_arm(gate), declared=study.treated_share, centre=centre)
        return Facts(
            **facts_of(study, question, centre, contrast),
            method=Estimator.CENTRED_DIFFERENCE if centre == POOLED else Estimator.UNADJUSTED_CONTRAST,
            interval_target=interval_target,
        )

    return Prepared(
        question=question,
        plan=plan,
        estimate=estimate,
        pages=PAGES[centre],
        mechanisms=None if centre == POOLED else (CENTRES_MECHANISM, question.mechanism),
    )


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


def release(gate: Gate, plan: Plan, arms: PrivateArms, *, declared: Fraction | None, centre: str) -> Contrast:
    """Return the contrast around a released share and centre; `declared` is the share that the design declares."""
    share, share_variance = release_share(gate, arms, declared)
    if centre == POOLED:
        setting = centred_on_everyone(gate, plan, arms, share=share, share_variance=share_variance)
    else:
        setting = _centred_on_arms(gate, plan, arms, share=share, share_variance=share_variance)
    return release_contrast(gate, arms, setting)


def release_contrast(
    gate: Gate, arms: PrivateArms, setting: Setting, names: tuple[str, str] = CONTRAST_NAMES
) -> Contrast:
    """Return the released mean of psi and mean of its square, under these names."""
    bounds = arms.bounds(setting.share, setting.centre)
    effect, square = arms.release_contrast(gate, bounds, names)
    return Contrast(
        setting=setting,
        bounds=bounds,
        effect=effect,
        square=square,
        variance_noise=gate.noise(names[1], bounds.second_moment / arms.rows),
    )


def release_share(gate: Gate, arms: PrivateArms, declared: Fraction | None) -> tuple[Fraction, float]:
    """Return the share treated, inside its bounds, and the variance of its error.

    A declared share p is the chance of being treated, from which the share that was treated differs by chance of
    variance v = p (1 - p) / n: it is joined with the released one, of noise variance s, as (q v + p s) / (v + s).
    """
    noisy = arms.release_share(gate)
    share = noisy.value
    variance = noisy.noise.variance
    if declared is not None:
        chance = float(declared * (1 - declared)) / arms.rows
        shrinkage = 1 / (1 + chance / variance)
        share += Fraction(shrinkage).limit_denominator(_SHRINKAGE_DENOMINATOR) * (declared - share)
        variance = shrinkage * chance
    return min(max(share, LEAST_SHARE), 1 - LEAST_SHARE), variance


def centred_on_everyone(
    gate: Gate,
    plan: Plan,
    arms: PrivateArms,
    *,
    share: Fraction,
    share_variance: float,
    names: tuple[str, str] = ("centre", "contrast"),
) -> Setting:
    """Return the centre between the released mean outcome and the middle with the least expected error.

    At the released mean an error in the share does no harm; in the middle of the range the contrast has its smallest
    sensitivity. Post-processing of released numbers. `names` are those of the releases of centre and contrast.
    """
    mean = arms.release_mean(gate, names[0])
    start = min(max(mean.value, Fraction(0)), arms.width)
    unit_variance = plan.noise(names[1], Fraction(1)).variance
    centre = least_error_centre(
        start,
        width=arms.width,
        rows=arms.rows,
        share=share,
        share_variance=share_variance,
        unit_variance=unit_variance,
    )
    return Setting(
        share=share,
        share_variance=share_variance,
        centre=centre,
        centre_shift=float(start - centre),
        centre_sd=sqrt(mean.noise.variance),
    )


def least_error_centre(
    start: Fraction,
    *,
    width: Fraction,
    rows: int,
    share: Fraction,
    share_variance: float,
    unit_variance: float,
) -> Fraction:
    """Return the centre between a released mean and the middle; `unit_variance` is that of the contrast's noise."""
    weight = share_variance / float(share * (1 - share)) ** 2

    def expected(centre: Fraction) -> float:
        sensitivity = float(CentredContrast(width, rows, share, centre).mean)
        return unit_variance * sensitivity**2 + weight * float(centre - start) ** 2

    return min((start + part * (width / 2 - start) for part in _MOVES), key=expected)


def _centred_on_arms(
    gate: Gate, plan: Plan, arms: PrivateArms, *, share: Fraction, share_variance: float
) -> Setting:
    """Return the centre between the one that both arms' released means make and the middle.

    best = (1 - q) m_1 + q m_0, with m_a the released sum of arm a over its released size n q or n (1 - q).
    """
    means, variance = release_means(gate, arms, share)
    q = share
    best = (1 - q) * means[0] + q * means[1]
    # Noise of the centre: that of each mean is its sum's divided by the (released) size of the arm.
    squares = float((1 - q) / q) ** 2 + float(q / (1 - q)) ** 2
    centre_sd = (variance * squares) ** 0.5 / arms.rows
    centre = least_error_centre(
        best,
        width=arms.width,
        rows=arms.rows,
        share=q,
        share_variance=share_variance,
        unit_variance=plan.noise(CONTRAST_NAMES[0], Fraction(1)).variance,
    )
    return Setting(
        share=q,
        share_variance=share_variance,
        centre=centre,
        centre_shift=float(best - centre),
        centre_sd=centre_sd,
    )


def release_means(gate: Gate, arms: PrivateArms, share: Fraction) -> tuple[tuple[Fraction, Fraction], float]:
    """Return both arms' means (treated first), inside the range, and the variance of the sums' noise."""
    middle = arms.width / 2
    noisy = arms.release_sums(gate)
    sizes = (arms.rows * share, arms.rows * (1 - share))
    means = [middle + total / size for total, size in zip(noisy.values, sizes, strict=True)]
    treated, control = (min(max(mean, Fraction(0)), arms.width) for mean in means)
    return (treated, control), noisy.variance


def facts_of(study: Study, question: Question, centre: str, contrast: Contrast) -> Facts:
    """Return the effect and what is said of it, from what was released of the contrast."""
    rows = contrast.bounds.rows
    setting = contrast.setting
    return Facts(
        estimate=float(contrast.effect),
        uncertainty=with_rare_events(
            contrast.uncertainty(centre), study.outcome_range, setting.arm_sizes(rows)
        ),
        releases=releases(centre, contrast.bounds),
        not_covered=(*causal_caveats(study, question.estimand), SmallArms(float(LEAST_SHARE))),
        details={
            "rows": rows,
            "share_treated": float(setting.share),
            "mechanism": contrast.effect.noise.name,
        },
    )


def releases(centre: str, bounds: CentredContrast) -> tuple[ReleaseRow, ...]:
    """Return what is released, with the sensitivity of each."""
    width = float(bounds.width)
    centres: dict[str, ReleaseRow] = {
        POOLED: (Quantity.MEAN_OUTCOME, CentringSensitivity(width / bounds.rows, several=False)),
        ARMS: (Quantity.SUMS_OF_ARMS, CentringSensitivity(width, several=True)),
    }
    return (
        (Quantity.SHARE_TREATED, Sensitivity(1 / bounds.rows)),
        centres[centre],
        (Quantity.CENTRED_CONTRAST, Sensitivity(float(bounds.mean))),
        (Quantity.ITS_SECOND_MOMENT, Sensitivity(float(bounds.second_moment))),
    )
