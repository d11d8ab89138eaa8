"""Means of both arms over strata where only outcomes are private, for ratios and odds ratios.

One outcome is in one arm, so that both means are released for the price of one (`session/parallel.proof.md`). Means are
standardised: those of strata count with the weights that their difference has (direct standardisation).
"""

from __future__ import annotations

from fractions import Fraction

from counterveil.inference import Uncertainty
from counterveil.inference.measures import ApartMeans
from counterveil.numerics.strata import RANGE_STEPS, arm_variances, mean_sums, stratum_weights, weight_sum
from counterveil.privacy.caveats import StrataLeftOut
from counterveil.results.measures import MeasureResult, difference_of
from counterveil.results.question import Question
from counterveil.session import Gate, Plan, Session
from counterveil.session.plan import in_parallel
from counterveil.settings import Stratified
from counterveil.statistics.strata.bounded import caveats
from counterveil.statistics.strata.data import read_strata
from counterveil.statistics.strata.outcome import (
    PAGE,
    arm_sizes,
    nothing_matched,
    strata_details,
    variance_part,
)
from counterveil.statistics.strata.sensitivity import StrataOutcome

_ARMS = ("treated", "control")
_MEANS, _VARIANCES = (tuple(f"{what} of {arm}" for arm in _ARMS) for what in ("mean", "variance"))


def stratified_means(session: Session, question: Question) -> MeasureResult:
    """Return the private measure of both arms' means over strata; strata, treatments and counts are public."""
    settings = question.settings or Stratified()
    strata, cuts = read_strata(session, settings).free()
    word, width = question.estimand.value, session.study.outcome_bounds.width
    limit = settings.exact_limit
    weights, total = stratum_weights(strata, word, limit), weight_sum(strata, word, limit)
    if total == 0:
        raise nothing_matched()
    claims = [
        StrataOutcome.of_arm(width, weights, counts, total, strata.rows)
        for counts in (strata.treated, strata.control)
    ]
    sizes = arm_sizes(strata, weights, float(total))
    part = variance_part(question.budget, question.mechanism)
    split = Plan.split(question.budget, {"effect": 1 - part, "variance": part}, question.mechanism)
    plan = in_parallel(split, {"effect": _MEANS, "variance": _VARIANCES})

    def compute(gate: Gate) -> dict[str, object]:
        unit = width / RANGE_STEPS
        values = [one * unit / total for one in mean_sums(strata, word, limit)]
        variances = [one * unit**2 / total**2 for one in arm_variances(strata, word, limit)]
        found = []
        for place, claim in enumerate(claims):
            mean = gate.release(_MEANS[place], values[place], claim.effect)
            variance = gate.release(_VARIANCES[place], variances[place], claim.variance)
            # An arm's variance is at most half a squared range (two rows), h^2/m at most the weight times h.
            cap = float(claim.weight * width**2 / (2 * total))
            found.append((float(mean), Uncertainty(mean.noise, float(variance), cap, variance.noise)))
        details = strata_details(strata, question.estimand, max(claims, key=lambda one: one.weight)) | cuts
        details |= {"budget": split.shares, "mechanism": question.mechanism}
        return _result(session, question, found, sizes, claims, limit, details).stored()

    return MeasureResult.from_dict(session.run(question.request(plan, session.study), compute))


def _result(
    session: Session,
    question: Question,
    found: list[tuple[float, Uncertainty]],
    sizes: tuple[float, float],
    claims: list[StrataOutcome],
    limit: Fraction,
    details: dict[str, float | str],
) -> MeasureResult:
    study = session.study
    low, high = map(float, study.outcome_range)
    (one, first), (other, second) = found
    means = ApartMeans((low + one, low + other), (first, second), (low, high), sizes)
    releases = []
    for place, claim in enumerate(claims):
        releases += [
            (f"{_MEANS[place]} over strata", f"sensitivity {float(claim.effect):.6g}"),
            (f"its {_VARIANCES[place]}", f"sensitivity {float(claim.variance):.6g}"),
        ]
    return MeasureResult.of(
        question.measure,
        means,
        difference_of(means, question.estimand, question.level),
        guarantee=question.guarantee(session, (PAGE, "session/parallel.proof.md")),
        method="means of both arms over strata",
        **question.terms(study),
        estimand=question.estimand,
        releases=tuple(releases),
        not_covered=caveats(study, StrataLeftOut(question.estimand, float(limit))),
        details=details | {"mean_treated": means.values[0], "mean_control": means.values[1]},
    )
