"""Effects by period where everything about a person is private: a centred contrast of changes for each period.

The share treated is released once, and then for each period a centre, the contrast and its second moment, as in
`contrast.py`. A person is in all of them, so that the budget is divided: of Gaussian noise, its square.
"""

from __future__ import annotations

from fractions import Fraction

from counterveil.data import OUTCOME_STEPS
from counterveil.data.panels import change_unit, complete_sizes, period_totals
from counterveil.inference import Uncertainty
from counterveil.numerics.arms import TwoArms
from counterveil.numerics.public_choices import LEAST_SHARE
from counterveil.privacy.caveats import SmallArms
from counterveil.results.answering import Facts, settled
from counterveil.results.effect import Effect, Linear
from counterveil.results.event_study import EventStudyResult
from counterveil.results.question import Question, causal_caveats
from counterveil.session import BaseSession, Gate, Plan
from counterveil.statistics.moments.contrast import (
    PAGES,
    POOLED,
    centred_on_everyone,
    moments,
    pooled_shares,
    release_share,
    uncertainty_of,
)
from counterveil.statistics.moments.sensitivity import CentredContrast

PAGE = "statistics/moments/event_study.proof.md"


def record_event_study(session: BaseSession, question: Question, place: int) -> EventStudyResult:
    """Return the private effects of all periods relative to the one at `place`; n is public and nothing else is."""
    study, before = session.study, session.study.before
    assert before is not None
    source = session.batches
    rows, _ = complete_sizes(source)
    others = [period for period in range(study.measured) if period != place]
    plan = periods_plan(question, rows, others)

    labels, unit = before.labels(study.outcome), change_unit(study)
    width, reference = float(unit * OUTCOME_STEPS), labels[place]

    def compute(gate: Gate) -> Facts:
        _, since = period_totals(source, place)
        share, effects = release_share(gate, since[place], study.treated_share), []
        for period in others:
            found = release(gate, plan, since[period], unit, share, period)
            known = Linear(*found, (-width, width))
            effects.append(Effect(labels[period], known, question.level, len(others)))
        return Facts(
            periods=tuple(effects),
            reference=reference,
            place=place,
            outcome=study.outcome,
            earlier=before.earlier,
            guarantee=question.guarantee(session, (PAGE, *PAGES[POOLED]), reference=reference),
            method="difference in means (centred contrast)",
            releases=(
                ("share treated", f"sensitivity {1 / rows:.6g}"),
                *(
                    (f"centre, contrast and second moment at {one.name}", "one release each")
                    for one in effects
                ),
            ),
            not_covered=(*causal_caveats(study, question.estimand), SmallArms(float(LEAST_SHARE))),
            details={"rows": rows, "share_treated": float(share[0]), "mechanism": question.mechanism},
        )

    said = {"question": "event_study", "reference": place}
    return settled(EventStudyResult, session, question, plan, compute, said=said)


def periods_plan(question: Question, rows: int, periods: list[int]) -> Plan:
    """Return the split over the share treated and, alike for all periods, centre, contrast and moment."""
    one = pooled_shares(rows, question.budget, question.mechanism)
    shares = {"share": one["share"]}
    for period in periods:
        parts = {_name(what, period): part / len(periods) for what, part in one.items() if what != "share"}
        shares |= parts
    return Plan.split(question.budget, shares, question.mechanism)


def _name(what: str, period: int) -> str:
    return f"{what} {period}"


# Proof: event_study.proof.md
def release(
    gate: Gate,
    plan: Plan,
    arms: TwoArms,
    unit: Fraction,
    share: tuple[Fraction, float],
    period: int,
) -> tuple[float, Uncertainty]:
    """Return the released contrast of one period's changes and its uncertainty."""
    width, names = unit * OUTCOME_STEPS, (_name("centre", period), _name("contrast", period))
    setting = centred_on_everyone(gate, plan, arms, unit, width, *share, names)
    sensitivity = CentredContrast(width, arms.count, setting.share, setting.centre)
    first, second = moments(arms, unit, setting)
    effect = gate.release(names[1], first, sensitivity.mean)
    square = gate.release(_name("moment", period), second, sensitivity.second_moment)
    noise = plan.noise(_name("moment", period), sensitivity.second_moment / arms.count)
    return float(effect), uncertainty_of(POOLED, setting, sensitivity, effect, square, noise)
