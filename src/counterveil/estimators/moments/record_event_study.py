"""Effects by period where everything about a person is private: one centred contrast of changes a period.

The share treated is released once, and then for each period a centre, the contrast of the changes since the
reference period and its second moment. A person is in all of them, so that the budget is divided: of Gaussian
noise, its square.

In: private treatment and outcomes of every period; the number of rows and ranges are public. Out: an effect
on the change since the reference period for each period, in units of the outcome, right where both arms would
have changed alike without treatment (parallel trends). Each period's releases are those of one contrast of
changes, and their budgets add up. Proofs: `rows/moments/event_study.proof.md`,
`rows/moments/centred_contrast.proof.md`.
"""

from __future__ import annotations

from fractions import Fraction

from counterveil.estimators.method import Prepared
from counterveil.estimators.moments.contrast import (
    PAGES,
    POOLED,
    centred_on_everyone,
    pooled_shares,
    release_contrast,
    release_share,
)
from counterveil.inference.uncertainty import Uncertainty
from counterveil.numerics.public_choices import LEAST_SHARE
from counterveil.privacy.caveats import SmallArms
from counterveil.privacy.provenance import Bounded, Estimator, Quantity, QuantityOf, Sensitivity
from counterveil.results.answering import Facts
from counterveil.results.arms import EventStudyResult
from counterveil.results.effect import Effect, Linear
from counterveil.results.question import Question, causal_caveats
from counterveil.rows.moments.centred_contrast import PrivateArms, changes_by_arm
from counterveil.rows.public import PublicData
from counterveil.session import Gate, Plan

EVENT_STUDY_PAGE = "rows/moments/event_study.proof.md"
# What is released of each period.
_RELEASES = ("centre", "contrast", "moment")


def record_event_study(
    public: PublicData, question: Question, base_period: int
) -> Prepared[EventStudyResult]:
    """Return the effects of all periods relative to the one at `base_period`; n is public and nothing else is."""
    study = public.study
    before = study.before
    assert before is not None
    rows = public.people_in_every_period
    others = [period for period in range(study.measured) if period != base_period]
    plan = periods_plan(question, rows, others)
    labels = before.labels(study.outcome)

    def estimate(gate: Gate) -> Facts:
        since = changes_by_arm(gate, base_period)
        share = release_share(gate, since[base_period], study.treated_share)
        effects = []
        for period in others:
            width = float(since[period].width)
            contrast, uncertainty = release_period(gate, plan, since[period], share=share, period=period)
            linear = Linear(contrast, uncertainty, (-width, width))
            effects.append(Effect(labels[period], linear, question.level, len(others)))
        return Facts(
            periods=tuple(effects),
            reference=labels[base_period],
            place=base_period,
            outcome=study.outcome,
            earlier=before.earlier,
            method=Estimator.CENTRED_DIFFERENCE,
            releases=(
                (Quantity.SHARE_TREATED, Sensitivity(1 / rows)),
                *(
                    (QuantityOf(Quantity.CONTRAST_AT, effect.name), Bounded.ONE_RELEASE_EACH)
                    for effect in effects
                ),
            ),
            not_covered=(*causal_caveats(study, question.estimand), SmallArms(float(LEAST_SHARE))),
            details={"rows": rows, "share_treated": float(share[0]), "mechanism": question.mechanism},
        )

    return Prepared(
        question=question,
        plan=plan,
        estimate=estimate,
        answer=EventStudyResult,
        pages=(EVENT_STUDY_PAGE, *PAGES[POOLED]),
        reference=labels[base_period],
        description={"question": "event_study", "reference": base_period},
    )


def periods_plan(question: Question, rows: int, periods: list[int]) -> Plan:
    """Return the split over the share treated and, alike for all periods, centre, contrast and moment."""
    pooled = pooled_shares(rows, question.budget, question.mechanism)
    shares = {"share": pooled["share"]}
    for period in periods:
        shares |= {
            f"{what} {period}": part / len(periods) for what, part in pooled.items() if what != "share"
        }
    return Plan.split(question.budget, shares, question.mechanism)


def release_period(
    gate: Gate, plan: Plan, arms: PrivateArms, share: tuple[Fraction, float], period: int
) -> tuple[float, Uncertainty]:
    """Return the released contrast of one period's changes and its uncertainty.

    `share` is the released share treated with the variance of its error.
    """
    centre, contrast, moment = (f"{what} {period}" for what in _RELEASES)
    setting = centred_on_everyone(
        gate, plan, arms, share=share[0], share_variance=share[1], names=(centre, contrast)
    )
    released = release_contrast(gate, arms, setting, (contrast, moment))
    return float(released.effect), released.uncertainty()
