"""The difference of two arms' ratios, each a sum over a sum, with the person as unit.

    effect = r_1 - r_0,    r_a = sum N / sum D over the people of arm a,

with N a person's numerator and D their denominator. Both sums of an arm are released, then the sum of squared
residuals N - r_a D around the released ratio, which is the sampling variance of the numerator of Fieller's
statistic. Where arms are public each arm spends the whole budget on its own people. The variance is that of
the delta method for metrics whose unit of analysis is not that of randomisation [1]_; the interval is
Fieller's [2]_, which stays right where a denominator is hardly larger than its noise.

In: private numerators and denominators in declared ranges. Out: a difference in units of numerator per
denominator. What one person adds to the sums is bounded by these ranges, squared residuals by their largest
value at a corner of them. Proof: `rows/moments/ratio_sums.proof.md`.

References
----------
.. [1] Deng, A., Knoblich, U. and Lu, J. (2018). Applying the delta method in metric analytics. KDD '18,
   233-242.
.. [2] Fieller, E. C. (1954). Some problems in interval estimation. JRSS B 16, 175-185.
"""

from __future__ import annotations

from fractions import Fraction
from math import sqrt

from counterveil.data import OUTCOME_STEPS, Study
from counterveil.estimators.method import Prepared
from counterveil.inference.noisy_ratio import NoisyRatio
from counterveil.privacy import Unit
from counterveil.privacy.caveats import Caveat
from counterveil.privacy.provenance import Estimator, Quantity, ScaledSensitivity
from counterveil.results.answering import Facts
from counterveil.results.effect import Effect
from counterveil.results.groups import RatioResult
from counterveil.results.question import Question, causal_caveats
from counterveil.rows.moments.ratio_sums import ARMS, BOTH_ARMS, ArmRatios, ReleasedRatio
from counterveil.rows.public import PublicData
from counterveil.session import Gate, Kind, Plan
from counterveil.session.session import in_branches

PAGE = "rows/moments/ratio_sums.proof.md"
# The part of the budget for squared residuals, and how many standard deviations of its noise are added to their sum:
# sums below 0 are taken for 0, so that on average intervals keep their level with less than one. Measured by
# `python -m experiments.panels --only ratio_shapes`; privacy does not depend on them.
_RESIDUAL_SHARE = Fraction(1, 10)
_ADDED_SDS = 0.25
# The ratio that weights are chosen for is no smaller.
_LEAST_RATIO = Fraction(1, 10**6)
# The numerator's part of what is paid, at least and at most.
_LEAST_PART = 0.05
_MOST_PART = 0.95


def compare_ratios(public: PublicData, question: Question) -> Prepared[RatioResult]:
    """Return the difference of both arms' ratios; at record level n is public and nothing else is."""
    study = public.study
    rows = public.rows
    design = ratio_design(study, question)
    noise = "gaussian" if design.gaussian else "laplace"
    sums_bound = design.sums_l2 if design.gaussian else design.sums_l1
    residuals_bound = design.residuals_l2 if design.gaussian else design.residuals_l1

    def estimate(gate: Gate) -> Facts:
        ratios = [noisy_ratio(design, released, rows) for released in design.release(gate)]
        treated, control = ratios
        sizes = {}
        if design.public_arms:
            _, treated_rows = public.arm_sizes
            sizes = {"treated": treated_rows, "control": rows - treated_rows}
        return Facts(
            ratios=[Effect(name, ratio, question.level) for name, ratio in zip(ARMS, ratios, strict=True)],
            method=Estimator.RATIOS_OF_SUMS,
            releases=(
                (Quantity.SUMS_OF_RATIOS, ScaledSensitivity(float(sums_bound), design.gaussian)),
                (
                    Quantity.SQUARED_RESIDUALS_OF_RATIOS,
                    ScaledSensitivity(float(residuals_bound), design.gaussian),
                ),
            ),
            not_covered=(*causal_caveats(study, question.estimand), Caveat.OWN_RATIOS),
            details={
                "rows": rows,
                **sizes,
                "ratio_treated": treated.estimate,
                "ratio_control": control.estimate,
                "mechanism": noise,
            },
        )

    return Prepared(
        question=question,
        plan=ratio_plan(question),
        estimate=estimate,
        answer=RatioResult,
        pages=PAGE,
        mechanisms=(noise,),
    )


def ratio_design(study: Study, question: Question) -> ArmRatios:
    """Return what is summed of a study with a denominator.

    Noise of N - r D has a part from each sum. The weights make the noise of both together least at r in the middle of
    both ranges: with p_N and p_D what each is worth there, the numerator's part of what is paid is
    p_N^k / (p_N^k + p_D^k), k = 1/2 for Gaussian noise and 2/3 for Laplace's.
    """
    assert study.denominator is not None
    gaussian = question.mechanism == "gaussian"
    public_arms = question.unit is Unit.OUTCOME
    numerator = study.outcome_range
    denominator = study.denominator.range
    ratio = abs((numerator[0] + numerator[1]) / (denominator[0] + denominator[1]))
    widths = [ends[1] - ends[0] if public_arms else max(map(abs, ends)) for ends in (numerator, denominator)]
    worth = (float(widths[0]), float(max(ratio, _LEAST_RATIO) * widths[1]))
    powers = [amount ** (0.5 if gaussian else 2 / 3) for amount in worth]
    numerator_part = Fraction(min(max(powers[0] / sum(powers), _LEAST_PART), _MOST_PART)).limit_denominator(
        10**4
    )
    return ArmRatios(
        numerator,
        denominator,
        weights=(numerator_part / widths[0], (1 - numerator_part) / widths[1]),
        public_arms=public_arms,
        gaussian=gaussian,
    )


def ratio_plan(question: Question) -> Plan:
    """Return the split over the sums and the squared residuals: of each arm by itself where arms are public."""
    kind = Kind.VECTOR if question.mechanism == "gaussian" else Kind.CELLS
    if question.unit is Unit.RECORD:
        shares, kinds = _split(BOTH_ARMS, kind)
        return Plan.split(question.budget, shares, question.mechanism, kinds)
    return in_branches(question.budget, question.mechanism, [_split(arm, kind) for arm in ARMS])


def _split(arm: str, kind: Kind) -> tuple[dict[str, Fraction], dict[str, Kind]]:
    """Return the shares of an arm's releases and their kinds."""
    names = (f"sums of {arm}", f"residuals of {arm}")
    shares = dict(zip(names, (1 - _RESIDUAL_SHARE, _RESIDUAL_SHARE), strict=True))
    return shares, dict.fromkeys(names, kind)


def noisy_ratio(design: ArmRatios, released: ReleasedRatio, rows: int) -> NoisyRatio:
    """Return what is known of an arm's ratio."""
    size = float(released.denominator)
    total_sd, size_sd = (sqrt(released.sums_variance) / float(weight) for weight in design.weights)
    squares = released.residuals + _ADDED_SDS * sqrt(released.residuals_variance)
    return NoisyRatio(
        total=float(released.numerator),
        size=size,
        row_variance=max(squares, 0.0) * float(released.largest) / max(size, size_sd),
        total_sd=total_sd,
        size_sd=size_sd,
        limit=largest_ratio(design, rows),
        heavy=not design.gaussian,
        least=0.0,
    )


def largest_ratio(design: ArmRatios, rows: int) -> float:
    """Return how large a ratio of sums can be: a sum of steps that is not zero is one step at least."""
    largest = max(map(abs, design.numerator))
    if design.denominator[0] > 0:
        return float(largest / design.denominator[0])
    return float(rows * largest / (design.denominator[1] / OUTCOME_STEPS))
