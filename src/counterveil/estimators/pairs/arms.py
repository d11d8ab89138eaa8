"""Means of several arms where a row's arm and outcome are private together, covariates being public.

For every arm k the mean outcome, had everybody been in it, is an average of doubly robust scores,

    mean_k = (1/n) sum_i { m_k(x_i) + 1(A_i = k) (y_i - m_k(x_i)) / P(A = k | x_i) },

with m_k a model of the mean outcome in arm k and all other arms together as the control; scores are clipped
and large weights capped (`scores.py`). In: public covariates and released sums. Out: means in units of the
outcome (scores are centred on the middle of the declared range, which is added back).

A row is in one arm: a replaced pair of arm and outcome moves the sums of two arms at most, however many there
are, so that one noisy vector holds the models of all arms and one release their scores. Proof: "Several arms"
of `rows/pairs/pair_moments.proof.md` and "Arms" of `rows/pairs/pair_scores.proof.md`.
"""

from __future__ import annotations

import numpy as np

from counterveil.estimators.method import Prepared
from counterveil.estimators.outcome_place import Spread
from counterveil.estimators.pairs.budget import Choice, chosen
from counterveil.estimators.pairs.models import ReleasedSums, fit_models
from counterveil.estimators.pairs.provenance import proved, provenance, with_covariates
from counterveil.estimators.pairs.releases import ScoreTarget, release_scores, release_spread
from counterveil.estimators.pairs.scores import Target
from counterveil.inference.arm_means import with_rare_events
from counterveil.privacy import Estimand
from counterveil.results.answering import Facts
from counterveil.results.arms import ArmsResult
from counterveil.results.effect import Effect, Linear
from counterveil.results.question import Question
from counterveil.rows.pairs.moments import ArmSums
from counterveil.rows.pairs.scores import ARM_SCORES
from counterveil.rows.public import PublicData, PublicRows
from counterveil.session import Gate


def pair_arms(public: PublicData, question: Question) -> Prepared[ArmsResult]:
    """Return the private means of all arms, prepared for their releases."""
    question = with_covariates(public.study, question)
    columns = public.columns
    choice = chosen(columns, question.budget)

    def estimate(gate: Gate) -> Facts:
        means = released_arms(gate, columns, choice, question.level)
        return Facts(provenance(columns.study, choice, {}), means=means)

    return Prepared(
        question=question,
        plan=choice.plan,
        estimate=estimate,
        answer=ArmsResult,
        description={"question": "arms"},
        **proved(choice),
    )


def released_arms(gate: Gate, columns: PublicRows, choice: Choice, level: float) -> tuple[Effect, ...]:
    """Return what everybody's mean outcome would be in each arm: place, models and scores, each released once."""
    study = columns.study
    spread = release_spread(gate, choice, study, columns.rows)
    targets = arm_targets(gate, columns, choice, spread)
    low, high = map(float, study.outcome_range)
    means = []
    for label, released, target in zip(
        study.treatment_labels, release_scores(gate, choice, targets), targets, strict=True
    ):
        size, _ = Target(Estimand.ATE, target.models.propensity).sizes()
        uncertainty = with_rare_events(released.uncertainty, study.outcome_range, (size,))
        mean = Linear((low + high) / 2 + released.estimate, uncertainty, (low, high))
        means.append(Effect(label, mean, level))
    return tuple(means)


def arm_targets(gate: Gate, columns: PublicRows, choice: Choice, spread: Spread) -> list[ScoreTarget]:
    """Return what scores tell of every arm beside all others together, from one vector for all of them."""
    study = columns.study
    features = choice.features
    arms = len(study.treatment_labels)
    released = ArmSums(features, arms, spread.place).release(gate, "models")
    inside, outcomes = released.floats().reshape(2, arms, -1) / features.scale
    noise = released.variance / features.scale**2
    targets = []
    for arm in range(arms):
        values = np.stack([inside[arm], outcomes[arm], outcomes.sum(axis=0) - outcomes[arm]])
        sums = ReleasedSums(values, np.outer((1.0, 1.0, arms - 1.0), noise))
        models = fit_models(features, sums, spread, by_design=None, constant=study.randomised is True)
        targets.append(
            ScoreTarget(
                study=study,
                spread=spread,
                places=slice(None),
                target=Target(Estimand.ATE, models.propensity).of_arm(0),
                models=models,
                form=ARM_SCORES,
                arm=arm,
            )
        )
    return targets
