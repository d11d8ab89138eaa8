"""Effects on all outcomes of a study where treatment and outcomes of a row are private and covariates public.

For every outcome y the effect is an average of doubly robust scores (Robins, Rotnitzky and Zhao 1994) [1]_,

    effect = start + (1/D) sum_i s_i w_i (y_i - m_a(x_i)),    a = A_i,    s_i = +1 (treated), -1 (control),

with models m_a of the mean outcome in arm a, e of the propensity P(A = 1 | x), the estimand's tilt t(x) (1
for everyone, e for the treated), weights w_i = t / e (treated) or t / (1 - e) (control), D the sum of tilts,
and `start` what the models alone say. This is the score for everyone; other estimands centre it otherwise.
Scores are clipped and large weights capped (`scores.py`).

In: public covariates; private treatment A and k private outcomes a row. Three releases: where each outcome
lies in its range, from histograms (none for outcomes from 0 to 1); one noisy vector from which the one
propensity and the models of all outcomes are fitted; one vector of sums of scores and squared scores of all
outcomes. Out: for every outcome an effect in its own units, or, for ratios and the like, the means of both
arms. A released mean is measured from the middle of the declared range, which is added back.

Noise: a row that is replaced changes all k of its outcomes. The sums of scores have Laplace noise, which
follows the sum of absolute changes: k outcomes of equal importance have k times the noise each. The vector of
models has noise that follows the Euclidean length of the change, which grows by the root of k. In it the
propensity's sums are enlarged by the same root, so that its error is about what it is with one outcome.

Why both arms' means count as independent: a row's score is zero in the mean of the other arm, so that the two
sums are over disjoint rows, and each has noise of its own. They share one fitted propensity, but its error
enters a doubly robust score only times the error of an outcome model (it is orthogonal); that product is in
the error of either mean (`extra`), and its dependence between the arms is not modelled.

Privacy: the page of either vector, `rows/pairs/pair_moments.proof.md` and `rows/pairs/pair_scores.proof.md`
("Several outcomes", "Outcomes"), and `rows/histogram.proof.md` for places. All else is post-processing.

References
----------
.. [1] Robins, J. M., Rotnitzky, A. and Zhao, L. P. (1994). Estimation of regression coefficients when some
   regressors are not always observed. Journal of the American Statistical Association 89, 846-866.
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
