"""Effects on all outcomes of a study whose treatments and outcomes are private, covariates being public.

One vector holds the models of all outcomes beside one propensity, and one release the scores of all: with k
outcomes Gaussian noise of models grows by the root of k, that of scores by k; the propensity costs what it
does with one.
"""

from __future__ import annotations

from collections.abc import Sequence

from counterveil.data import Study
from counterveil.estimators.method import Prepared
from counterveil.estimators.pairs.budget import Choice, chosen
from counterveil.estimators.pairs.provenance import proved, provenance, with_covariates
from counterveil.estimators.pairs.releases import ScoreTarget, release_models, release_scores
from counterveil.estimators.pairs.scores import Target
from counterveil.inference.arm_means import IndependentArmMeans, with_rare_events
from counterveil.privacy import Estimand
from counterveil.results.answering import Facts
from counterveil.results.arms import OutcomeEffect, OutcomesResult
from counterveil.results.effect import Linear
from counterveil.results.measures import OF_MEANS, Numbers
from counterveil.results.question import Question
from counterveil.rows.outcome_numbers import Outcomes
from counterveil.rows.pairs.scores import ARM_SCORES, WHOLE_SCORES, ScoreForm, forms_of_outcomes
from counterveil.rows.public import PublicData, PublicRows
from counterveil.session import Gate


def pair_outcomes(public: PublicData, question: Question, outcomes: Outcomes) -> Prepared[OutcomesResult]:
    """Return the private effects on all outcomes, prepared for their releases."""
    question = with_covariates(public.study, question)
    columns = public.columns
    studies = studies_of(columns.study, outcomes)
    choice = chosen(columns, question.budget, outcomes=studies)
    means = question.measure in OF_MEANS
    forms = forms_of_outcomes(ARM_SCORES if means else WHOLE_SCORES, outcomes.weights)

    def estimate(gate: Gate) -> Facts:
        numbers = released_numbers(
            gate,
            columns,
            choice=choice,
            studies=studies,
            forms=forms,
            estimand=question.estimand,
            means=means,
        )
        released = [
            OutcomeEffect(name, None, number) for name, number in zip(outcomes.names, numbers, strict=True)
        ]
        facts = provenance(columns.study, choice, {})
        return Facts(facts, released=tuple(released), measure=question.measure)

    return Prepared(
        question=question,
        plan=choice.plan,
        estimate=estimate,
        answer=OutcomesResult,
        description={
            "question": "outcomes",
            "importance": [str(weight) for weight in outcomes.weights],
        },
        **proved(choice),
    )


def studies_of(study: Study, outcomes: Outcomes) -> list[Study]:
    """Return the study with each of the outcomes alone."""
    return [
        study._changed(outcome=name, outcome_range=ends, several=None)
        for name, ends in zip(outcomes.names, outcomes.ranges, strict=True)
    ]


def released_numbers(
    gate: Gate,
    public: PublicRows,
    choice: Choice,
    studies: Sequence[Study],
    forms: Sequence[ScoreForm],
    *,
    estimand: Estimand,
    means: bool,
) -> list[Numbers]:
    """Return the effect on every study's outcome, or both arms' means of it, by scores of these forms."""
    targets: list[ScoreTarget] = []
    released = release_models(gate, public, choice, studies)
    for number, ((models, spread), study, form) in enumerate(zip(released, studies, forms, strict=True)):
        both_arms = Target(estimand, models.propensity)
        targets += [
            ScoreTarget(
                study=study,
                spread=spread,
                places=slice(None),
                target=target,
                models=models,
                form=form,
                outcome=number,
            )
            for target in ([both_arms.of_arm(0), both_arms.of_arm(1)] if means else [both_arms])
        ]
    effects = release_scores(gate, choice, targets)
    numbers: list[Numbers] = []
    for number, (study, (models, _)) in enumerate(zip(studies, released, strict=True)):
        low, high = map(float, study.outcome_range)
        sizes = Target(estimand, models.propensity).sizes()
        if means:
            treated, control = effects[2 * number : 2 * number + 2]
            # The mean of controls is released with a minus.
            values = (low + high) / 2 + treated.estimate, (low + high) / 2 - control.estimate
            uncertainties = treated.uncertainty, control.uncertainty
            numbers.append(IndependentArmMeans(values, uncertainties, (low, high), sizes))
        else:
            uncertainty = with_rare_events(effects[number].uncertainty, (low, high), sizes)
            numbers.append(Linear(effects[number].estimate, uncertainty, (low - high, high - low)))
    return numbers
