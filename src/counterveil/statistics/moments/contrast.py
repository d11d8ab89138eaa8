"""The unadjusted contrast with a centre from both arms' means; everything about a person is private.

As in `centred_contrast`, the share treated is released first and the mean of
psi = t (y-c)/q - (1-t) (y-c)/(1-q) estimates the difference in means up to the product of two errors:
that of q, and the distance of c from (1-q) m_1 + q m_0. Here m_1 and m_0 are released, at the price of one
sum, so that arms of unequal size are centred rightly however large the effect is.
"""

from __future__ import annotations

from fractions import Fraction

from counterveil.inference import Uncertainty
from counterveil.numerics.arm_totals import Arms, arm_totals
from counterveil.privacy import Budget
from counterveil.results.question import Question, causal_caveats
from counterveil.results.result import Result
from counterveil.session import Custody, Gate, Kind, KnownSensitivityMechanism, Plan, Released
from counterveil.statistics.moments.centred_contrast import Setting, moments
from counterveil.statistics.moments.trial_sensitivity import ArmSums, CentredContrast

PAGES = ("statistics/moments/centred_contrast.proof.md", "statistics/moments/arm_sums.proof.md")
# The law of the arms' sums, beside that of the other releases.
CENTRES_LAW = "laplace"
# Shares are never taken below this, whatever the noise says.
LEAST_SHARE = Fraction(1, 50)
# From this many rows times epsilon on, centres for both arms are worth their price.
_LEAST_SIZE = 400
# How far the centre goes from its best place to the middle of the range, where sensitivity is least.
_MOVES = [Fraction(k, 16) for k in range(17)]


def pays(rows: int, budget: Budget, law: str) -> bool:
    """Return whether this contrast has less noise than the one with a single centre; public numbers only."""
    return law != "gaussian" and rows * budget.epsilon >= _LEAST_SIZE


def contrast_plan(rows: int, budget: Budget, law: str, known_share: bool) -> Plan:
    """Return the split over share, arm sums, contrast and moment; reads public numbers only."""
    size = rows * budget.epsilon
    for_share = Fraction(1, 5) if size < 600 else Fraction(7, 50) if size < 2500 else Fraction(1, 10)
    if known_share:
        for_share = Fraction(0)
    shares = {"share": for_share, "centres": Fraction(2, 25), "moment": Fraction(1, 10)}
    shares["contrast"] = 1 - sum(shares.values(), Fraction(0))
    return Plan.split(budget, shares, law, {"centres": Kind.CELLS})


def contrast(custody: Custody, question: Question) -> Result:
    """Return the private difference in means; n is public and nothing else is."""
    table, study = custody.table, custody.study
    lo, hi = study.outcome_range
    plan = contrast_plan(table.rows, question.budget, question.law, study.treated_share is not None)

    def compute(gate: Gate) -> dict[str, object]:
        arms = arm_totals(table.treated, table.outcome)
        setting, effect, square = release(gate, plan, arms, table.outcome_unit, hi - lo, study.treated_share)
        sensitivity = CentredContrast(hi - lo, table.rows, setting.share, setting.centre)
        noise = plan.noise("moment", sensitivity.second_moment / table.rows)
        return result_of(custody, question, setting, effect, square, sensitivity, noise).stored()

    return Result.from_dict(custody.run(question.request(plan, study), compute))


def release(
    gate: Gate, plan: Plan, arms: Arms, unit: Fraction, width: Fraction, declared: Fraction | None
) -> tuple[Setting, Released, Released]:
    """Return the setting, the released mean of psi and the released mean of its square."""
    share, share_variance = release_share(gate, arms, declared)
    means, variance = release_means(gate, arms, unit, width, share)
    q = share
    best = (1 - q) * means[0] + q * means[1]
    # Noise of the centre: that of each mean is its sum's divided by the (released) size of the arm.
    spread = float((1 - q) / q) ** 2 + float(q / (1 - q)) ** 2
    centre_sd = (variance * spread) ** 0.5 / arms.count
    centre = choose_centre(plan, width, arms.count, q, share_variance, best)
    setting = Setting(q, share_variance, centre, float(best - centre), centre_sd)
    sensitivity = CentredContrast(width, arms.count, q, centre)
    first, second = moments(arms, unit, setting)
    effect = gate.release("contrast", first, sensitivity.mean)
    return setting, effect, gate.release("moment", second, sensitivity.second_moment)


def release_share(gate: Gate, arms: Arms, declared: Fraction | None) -> tuple[Fraction, float]:
    """Return the share treated, declared or released, inside its bounds, and the variance of its noise."""
    share, variance = declared, 0.0
    if share is None:
        noisy = gate.release("share", Fraction(arms.treated.count, arms.count), Fraction(1, arms.count))
        share, variance = noisy.value, noisy.noise.variance
    return min(max(share, LEAST_SHARE), 1 - LEAST_SHARE), variance


def release_means(
    gate: Gate, arms: Arms, unit: Fraction, width: Fraction, share: Fraction
) -> tuple[tuple[Fraction, Fraction], float]:
    """Return both arms' means (treated first), inside the range, and the variance of the sums' noise."""
    middle = width / 2
    sums = [arm.total * unit - arm.count * middle for arm in (arms.treated, arms.control)]
    noisy = gate.release_cells("centres", sums, ArmSums(width).total)
    sizes = (arms.count * share, arms.count * (1 - share))
    means = [middle + total / size for total, size in zip(noisy.values, sizes, strict=True)]
    treated, control = (min(max(mean, Fraction(0)), width) for mean in means)
    return (treated, control), noisy.variance


def choose_centre(
    plan: Plan, width: Fraction, rows: int, share: Fraction, share_variance: float, best: Fraction
) -> Fraction:
    """Return the centre, between the best one and the middle, with the least expected error."""
    q, top, at = float(share), float(width), float(best)
    weight = share_variance / (q * (1 - q)) ** 2
    unit_variance = plan.noise("contrast", Fraction(1)).variance

    def expected(part: Fraction) -> float:
        # Floats are enough for a choice; the sensitivity that the noise is made for is exact.
        centre = at + float(part) * (top / 2 - at)
        high = max((top - centre) / q, centre / (1 - q))
        low = min(-centre / q, -(top - centre) / (1 - q))
        return unit_variance * ((high - low) / rows) ** 2 + weight * (centre - at) ** 2

    part = min(_MOVES, key=expected)
    return best + part * (width / 2 - best)


def result_of(
    custody: Custody,
    question: Question,
    setting: Setting,
    effect: Released,
    square: Released,
    sensitivity: CentredContrast,
    variance_noise: KnownSensitivityMechanism,
) -> Result:
    """Return the result from what was released of the contrast."""
    study, rows = custody.study, custody.table.rows
    declared = study.treated_share is not None
    return Result(
        estimate=float(effect),
        uncertainty=_uncertainty(setting, sensitivity, effect, square, variance_noise, declared),
        guarantee=question.guarantee(custody, PAGES, laws=(CENTRES_LAW, question.law)),
        method="unadjusted contrast",
        **question.effect_terms(study),
        releases=_releases(sensitivity, declared),
        not_covered=(
            *causal_caveats(study, question.estimand),
            f"arms smaller than {float(LEAST_SHARE):.0%} of everyone",
        ),
        details={
            "rows": rows,
            "share treated (declared)" if declared else "share treated (released)": float(setting.share),
            "law": question.law,
        },
        interval_of=None
        if study.randomised is True
        else "the unadjusted difference between the arms, confounding and all",
    )


def _uncertainty(
    setting: Setting,
    sensitivity: CentredContrast,
    effect: Released,
    square: Released,
    variance_noise: KnownSensitivityMechanism,
    declared: bool,
) -> Uncertainty:
    rows, q, estimate = sensitivity.rows, float(setting.share), float(effect)
    # The squared estimate holds the noise's variance once too often.
    variance = (float(square) - estimate**2 + effect.noise.variance) / rows
    off = setting.centre_shift
    extra = setting.share_variance * (off**2 + setting.centre_sd**2) / (q * (1 - q)) ** 2
    if not declared:
        # Chance in who was treated does not move the contrast, but the moment of psi counts it.
        variance -= max(abs(off) - setting.centre_sd, 0.0) ** 2 / (q * (1 - q)) / rows
    return Uncertainty(effect.noise, variance, float(sensitivity.variance_cap) / rows, variance_noise, extra)


def _releases(sensitivity: CentredContrast, declared: bool) -> tuple[tuple[str, str], ...]:
    share = "declared by the design" if declared else f"sensitivity {1 / sensitivity.rows:.6g}"
    return (
        ("share treated", share),
        ("sums of both arms", f"sensitivity {float(sensitivity.width):.6g}; they centre the contrast"),
        ("centred contrast", f"sensitivity {float(sensitivity.mean):.6g}"),
        ("its second moment", f"sensitivity {float(sensitivity.second_moment):.6g}"),
    )
