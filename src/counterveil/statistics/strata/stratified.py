"""Exact matching on strata where whole records are private: three ways to bound what one record can do."""

from __future__ import annotations

from fractions import Fraction

from counterveil.errors import ParameterError
from counterveil.inference import Uncertainty
from counterveil.numerics.public_choices import LEAST_SHARE
from counterveil.numerics.strata import RANGE_STEPS, ROUNDING, effect_sum, single_effect_sum
from counterveil.privacy import Estimand
from counterveil.privacy.caveats import Caveat
from counterveil.results.question import Question
from counterveil.results.result import Result
from counterveil.session import Gate, Plan, Session
from counterveil.settings import Stratified
from counterveil.statistics.strata.bounded import bounded_effect, caveats
from counterveil.statistics.strata.data import StrataReader, read_strata
from counterveil.statistics.strata.smooth import smooth_effect
from counterveil.statistics.strata.smooth_sensitivity import global_change

# Noise of public scale, for the worst data there could be: for comparison, rarely of use.
PAGE = "statistics/strata/smooth_sensitivity.proof.md"
# The part of the budget for the share of people whom the estimand is about.
_FOR_SHARE = Fraction(1, 10)


def global_effect(session: Session, question: Question, settings: Stratified) -> Result:
    """Return the effect with noise of public scale; n and the layout are public, nothing else is."""
    reader = read_strata(session, settings)
    rows, width, word = reader.rows, session.study.outcome_bounds.width, question.estimand.value
    everyone = question.estimand is Estimand.ATE
    part = Fraction(0) if everyone else _FOR_SHARE
    plan = Plan.split(
        question.budget,
        reader.shares({"effect": 1 - part, "share": part}),
        question.mechanism,
        reader.kinds(),
    )
    sensitivity = global_change(rows, word, 2 * ROUNDING * rows) * width / rows

    def compute(gate: Gate) -> dict[str, object]:
        strata, cuts = reader.released(gate)
        single = settings.pairing == "single"
        total = Fraction(single_effect_sum(strata)) if single else effect_sum(strata, word)
        effect = gate.release("effect", total * width / RANGE_STEPS / rows, sensitivity)
        share, extra = Fraction(1), 0.0
        if not everyone:
            people = strata.treated if question.estimand is Estimand.ATT else strata.control
            known = gate.release("share", Fraction(int(people.sum()), rows), Fraction(1, rows))
            share = min(max(known.value, LEAST_SHARE), Fraction(1))
            extra = (float(effect.value / share**2)) ** 2 * known.noise.variance
        # Whatever the strata: h^2 (v_1/t + v_0/c) adds up to at most half of N^2 squared ranges.
        cap = float(width / share) ** 2 / 2
        uncertainty = Uncertainty(plan.noise("effect", sensitivity / share), cap, cap, None, extra)
        estimate = float(effect.value / share)
        details: dict[str, float | str] = {
            **cuts,
            "rows": rows,
            "strata": reader.public,
            "budget": plan.shares,
            "mechanism": question.mechanism,
        }
        return _result(reader, question, estimate, uncertainty, float(sensitivity), details).stored()

    return Result.from_dict(session.run(question.request(plan, session.study), compute))


def _result(
    reader: StrataReader,
    question: Question,
    estimate: float,
    uncertainty: Uncertainty,
    sensitivity: float,
    details: dict[str, float | str],
) -> Result:
    study = reader.session.study
    return Result(
        estimate=estimate,
        uncertainty=uncertainty,
        guarantee=reader.guarantee(question, (PAGE,)),
        method="exact matching on strata, global sensitivity",
        **question.effect_terms(study),
        releases=(
            *reader.releases(),
            ("sum of stratum effects / n", f"sensitivity {sensitivity:.6g}"),
            *(
                ()
                if question.estimand is Estimand.ATE
                else (("share of the estimand's people", "sensitivity 1 / n"),)
            ),
        ),
        not_covered=caveats(study, Caveat.STRATA_COUNTED_AS_ZERO),
        details=details,
    )


_FORMS = {"bounded": bounded_effect, "smooth": smooth_effect, "global": global_effect}


def stratified(session: Session, question: Question) -> Result:
    """Return the effect by exact matching on strata; settings choose how the noise is bounded."""
    settings = question.settings or Stratified()
    if settings.pairing == "single" and question.estimand is not Estimand.ATE:
        raise ParameterError(
            "CV-P365",
            "one-to-one matching within strata is for the ATE only",
            expected='estimand="ATE" with pairing="single"',
            got=f"estimand={question.estimand.value!r}",
            fix='use pairing="all", the default, which serves every estimand with less noise',
        )
    return _FORMS[settings.sensitivity](session, question, settings)
