"""Difference in means where the whole record is private: a contrast around released centre and share.

With t private, the number treated is private too, so dividing by it is not free. The share treated q
and the mean outcome c are released first, cheaply; the mean of t (y-c)/q - (1-t) (y-c)/(1-q) then
differs from the difference in means only by (error of q) times (error of c).
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import product
from math import sqrt

from counterveil.inference import Uncertainty
from counterveil.numerics.arm_totals import Arms, arm_totals
from counterveil.privacy import Budget
from counterveil.results.question import Question, causal_caveats
from counterveil.results.result import Result
from counterveil.session import Custody, Gate, KnownSensitivityMechanism, Plan, Released
from counterveil.statistics.moments.trial_sensitivity import CentredContrast, Totals

PAGE = "statistics/moments/centred_contrast.proof.md"
# Shares are never taken below this, whatever the noise says: a smaller arm cannot be compared anyway.
_LEAST_SHARE = Fraction(1, 50)
_CENTRES = [Fraction(k, 16) for k in range(17)]


@lru_cache(maxsize=64)
def budget_shares(rows: int, budget: Budget, law: str, known_share: bool) -> dict[str, Fraction]:
    """Return the split over share, centre, contrast and moment with the smallest expected total variance.

    Reads public numbers only. The expectation is taken for outcomes in [0, 1], balanced arms and
    a mean off the middle by a quarter of the range.
    """
    for_share = [Fraction(0)] if known_share else [Fraction(k, 20) for k in (1, 2, 4)]
    for_centre = [Fraction(k, 40) for k in (1, 2, 4)]
    for_moment = [Fraction(k, 20) for k in (1, 2, 3, 4)]

    def expected(shares: dict[str, Fraction]) -> float:
        plan = Plan.split(budget, shares, law)
        off = plan.noise("centre", Fraction(1, rows)).variance + 0.1**2
        wrong_share = 0.0 if known_share else plan.noise("share", Fraction(1, rows)).variance
        contrast = plan.noise("contrast", Fraction(5, 2) / rows).variance
        moment = sqrt(plan.noise("moment", Fraction(9, 4) / rows).variance) / rows
        return contrast + moment + 16 * wrong_share * off

    splits = [
        {"share": share, "centre": centre, "contrast": 1 - share - centre - moment, "moment": moment}
        for share, centre, moment in product(for_share, for_centre, for_moment)
    ]
    return min(splits, key=expected)


@dataclass(frozen=True, slots=True)
class Setting:
    """Share and centre of the contrast, both public by now, and the variances of their noise."""

    share: Fraction
    share_variance: float
    centre: Fraction
    centre_shift: float  # released mean minus centre
    centre_sd: float  # standard deviation of the released mean's noise


def choose_centre(
    plan: Plan, totals: Totals, share: Fraction, share_variance: float, mean: Released
) -> Fraction:
    """Return the centre with the least expected error.

    At the released mean an error in the share does no harm; in the middle of the range the contrast
    has its smallest sensitivity. Post-processing of released numbers.
    """
    start = _clamped(mean.value, totals.width)
    weight = share_variance / float(share * (1 - share)) ** 2

    unit_variance = plan.noise("contrast", Fraction(1)).variance

    def expected(centre: Fraction) -> float:
        sensitivity = float(CentredContrast(totals.width, totals.rows, share, centre).mean)
        return unit_variance * sensitivity**2 + weight * float(centre - start) ** 2

    return min((start + part * (totals.width / 2 - start) for part in _CENTRES), key=expected)


def _clamped(value: Fraction, width: Fraction) -> Fraction:
    return min(max(value, Fraction(0)), width)


def centred_contrast(custody: Custody, question: Question) -> Result:
    """Return the private difference in means; everything about a person is private, n is public."""
    table = custody.table
    study = table.study
    lo, hi = study.outcome_range
    width, rows = hi - lo, table.rows
    shares = budget_shares(rows, question.budget, question.law, study.treated_share is not None)
    plan = Plan.split(question.budget, shares, question.law)

    def compute(gate: Gate) -> dict[str, object]:
        arms = arm_totals(table.treated, table.outcome)
        setting, effect, square = release(gate, plan, arms, table.outcome_unit, width, study.treated_share)
        sensitivity = CentredContrast(width, rows, setting.share, setting.centre)
        noise = plan.noise("moment", sensitivity.second_moment / rows)
        return _result(custody, question, setting, sensitivity, effect, square, noise).stored()

    return Result.from_dict(custody.run(question.request(plan, study), compute))


def release(
    gate: Gate, plan: Plan, arms: Arms, unit: Fraction, width: Fraction, declared: Fraction | None
) -> tuple[Setting, Released, Released]:
    """Return the setting, the released mean of psi and the released mean of its square."""
    setting = _setting(gate, plan, arms, unit, width, declared)
    sensitivity = CentredContrast(width, arms.count, setting.share, setting.centre)
    contrast, moment = moments(arms, unit, setting)
    effect = gate.release("contrast", contrast, sensitivity.mean)
    return setting, effect, gate.release("moment", moment, sensitivity.second_moment)


def _setting(
    gate: Gate, plan: Plan, arms: Arms, unit: Fraction, width: Fraction, declared: Fraction | None
) -> Setting:
    """Return the share (declared, or released) and the centre (released mean, moved towards the middle)."""
    totals = Totals(width, arms.count)
    share, share_variance = declared, 0.0
    if share is None:
        released = gate.release("share", Fraction(arms.treated.count, arms.count), totals.share)
        share, share_variance = released.value, released.noise.variance
    share = min(max(share, _LEAST_SHARE), 1 - _LEAST_SHARE)
    pooled = Fraction(arms.treated.total + arms.control.total, arms.count) * unit
    mean = gate.release("centre", pooled, totals.mean)
    centre = choose_centre(plan, totals, share, share_variance, mean)
    shift = float(_clamped(mean.value, width) - centre)
    return Setting(share, share_variance, centre, shift, sqrt(mean.noise.variance))


def moments(arms: Arms, unit: Fraction, setting: Setting) -> tuple[Fraction, Fraction]:
    """Return the exact means of psi and of psi squared."""
    q, centre = setting.share, setting.centre / unit
    first = arms.treated.centred_total(centre) / q - arms.control.centred_total(centre) / (1 - q)
    second = arms.treated.centred_squares(centre) / q**2 + arms.control.centred_squares(centre) / (1 - q) ** 2
    return first * unit / arms.count, second * unit**2 / arms.count


def _result(
    custody: Custody,
    question: Question,
    setting: Setting,
    sensitivity: CentredContrast,
    effect: Released,
    square: Released,
    variance_noise: KnownSensitivityMechanism,
) -> Result:
    study, rows = custody.study, custody.table.rows
    estimate = float(effect)
    cap = float(sensitivity.variance_cap) / rows
    # The squared estimate holds the noise's variance once too often.
    variance = (float(square) - estimate**2 + effect.noise.variance) / rows
    q = float(setting.share)
    # How far the centre is from where an error in the share would do no harm, (1-q) m1 + q m0.
    off = setting.centre_shift + (1 - 2 * q) * estimate
    extra = setting.share_variance * (off**2 + setting.centre_sd**2) / (q * (1 - q)) ** 2
    if study.treated_share is None:
        # The share is the realised one: chance in who was treated does not move the contrast, but the
        # moment of psi counts it. What is certain of that part, given the noise of the centre, is taken off.
        counted = max(abs(off) - setting.centre_sd, 0.0) ** 2
        variance -= counted / (q * (1 - q)) / rows
    return Result(
        estimate=estimate,
        uncertainty=Uncertainty(effect.noise, variance, cap, variance_noise, extra),
        guarantee=question.guarantee(custody, PAGE),
        method="difference in means (centred contrast)",
        **question.effect_terms(study),
        releases=_releases(sensitivity, study.treated_share is not None),
        not_covered=(
            *causal_caveats(study, question.estimand),
            f"arms smaller than {float(_LEAST_SHARE):.0%} of everyone",
        ),
        details={
            "rows": rows,
            "share treated (released)" if study.treated_share is None else "share treated (declared)": q,
            "law": question.law,
        },
    )


def _releases(sensitivity: CentredContrast, declared: bool) -> tuple[tuple[str, str], ...]:
    return (
        (
            "share treated",
            "declared by the design" if declared else f"sensitivity {1 / sensitivity.rows:.6g}",
        ),
        (
            "mean outcome",
            f"sensitivity {float(sensitivity.width) / sensitivity.rows:.6g}; centres the contrast",
        ),
        ("centred contrast", f"sensitivity {float(sensitivity.mean):.6g}"),
        ("its second moment", f"sensitivity {float(sensitivity.second_moment):.6g}"),
    )
