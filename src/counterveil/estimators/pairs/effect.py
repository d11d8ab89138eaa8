"""Effects where a row's treatment and outcome are private together, covariates being public.

    effect = start + (1/D) sum_i s_i w_i (y_i - m_a(x_i)),    a = A_i,    s_i = +1 (treated), -1 (control),

an average of doubly robust scores (Robins, Rotnitzky and Zhao 1994) [1]_: m_a models the mean outcome in arm
a, e the propensity, t(x) is the estimand's tilt (1 for everyone), w = t / e or t / (1 - e), D the sum of
tilts, `start` what the models alone say (other estimands than everyone's effect centre the score otherwise).
Its error is second order in the errors of the models: a product of both.

In: public covariates and three releases with noise (`releases.py`): the place of outcomes, one vector for all
models, the sums of clipped scores and of their squares. Out: an effect in units of the outcome, or both arms'
means for ratios of them. Proof: `rows/histogram.proof.md` (place), `rows/pairs/pair_moments.proof.md`
(models), `rows/pairs/pair_scores.proof.md` (scores); all else is post-processing.

References
----------
.. [1] Robins, J. M., Rotnitzky, A. and Zhao, L. P. (1994). Estimation of regression coefficients when some
   regressors are not always observed. Journal of the American Statistical Association 89, 846-866.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from counterveil.estimators.method import Prepared
from counterveil.estimators.pairs.budget import Choice, chosen
from counterveil.estimators.pairs.outcomes import released_numbers
from counterveil.estimators.pairs.provenance import proved, provenance, with_covariates
from counterveil.estimators.pairs.releases import PairEffect, ScoreTarget, release_models, release_scores
from counterveil.estimators.pairs.scores import Target
from counterveil.inference.arm_means import IndependentArmMeans, with_rare_events
from counterveil.privacy import Estimand
from counterveil.results.answering import Facts
from counterveil.results.question import Question
from counterveil.results.result import MeasureResult, Result
from counterveil.rows.pairs.scores import ARM_SCORES, Places
from counterveil.rows.public import PublicData, PublicRows
from counterveil.session import Gate


def pairs(public: PublicData, question: Question) -> Prepared[Result]:
    """Return the private effect, prepared for its releases."""
    question = with_covariates(public.study, question)
    columns = public.columns
    choice = chosen(columns, question.budget)

    def estimate(gate: Gate) -> Facts:
        (effect,) = pair_effects(
            gate, columns, choice=choice, estimand=question.estimand, groups=[slice(None)]
        )
        facts = provenance(columns.study, choice, effect.details, effect.ends)
        return Facts(facts, estimate=effect.estimate, uncertainty=effect.uncertainty)

    return Prepared(question=question, plan=choice.plan, estimate=estimate, **proved(choice))


def pair_means(public: PublicData, question: Question) -> Prepared[MeasureResult]:
    """Return the private measure of both arms' means, each with a score of its own, prepared for its releases."""
    question = with_covariates(public.study, question)
    columns = public.columns
    choice = chosen(columns, question.budget)

    def estimate(gate: Gate) -> Facts:
        (means,) = released_numbers(
            gate,
            columns,
            choice=choice,
            studies=[columns.study],
            forms=[ARM_SCORES],
            estimand=Estimand.ATE,
            means=True,
        )
        assert isinstance(means, IndependentArmMeans)
        details: dict[str, float | str] = {"mean_treated": means.values[0], "mean_control": means.values[1]}
        facts = provenance(columns.study, choice, details)
        return Facts(facts, measure=question.measure, numbers=means)

    return Prepared(
        question=question, plan=choice.plan, estimate=estimate, answer=MeasureResult, **proved(choice)
    )


def pair_effects(
    gate: Gate, public: PublicRows, choice: Choice, estimand: Estimand, groups: Sequence[Places]
) -> list[PairEffect]:
    """Return the effects of groups of rows, of which no two share one; all cost what one does."""
    study = public.study
    ((models, spread),) = release_models(gate, public, choice, [study])
    targets = [
        ScoreTarget(
            study=study,
            spread=spread,
            places=group,
            target=Target(estimand, models.propensity[group]),
            models=models,
        )
        for group in groups
    ]
    effects = release_scores(gate, choice, targets)
    return [
        replace(
            effect,
            uncertainty=with_rare_events(effect.uncertainty, study.outcome_range, target.target.sizes()),
            ends=spread.ends,
        )
        for effect, target in zip(effects, targets, strict=True)
    ]
