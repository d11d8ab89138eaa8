"""What the two forms of DP-CATE share: their settings, and what stands around their numbers.

Where the paper is ambiguous, both readings are a choice.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from counterveil.data import Study
from counterveil.errors import refusal
from counterveil.numerics.arrays import Floats
from counterveil.privacy import Proof
from counterveil.privacy.caveats import Caveat, Target
from counterveil.published.asking import PublishedQuestion
from counterveil.published.cate_learners import (
    DR,
    FOREST,
    NETWORK,
    R,
    checked_classifier,
    checked_regressor,
    takes_weights,
)
from counterveil.results.cate_answers import CateAnswers
from counterveil.results.cate_question import Queries
from counterveil.session import Kind, Plan, Request, Session
from counterveil.settings.ranges import NONE, POSITIVE, Settings, between, one_of, setting, whole

PROOF, MAIN_TEXT = "proof", "main_text"
UNIT, LEMMA, THEOREM = "unit", "lemma", "theorem"
LITERAL, ALPHA = "literal", "alpha"
SECOND_STAGE, ALL_ROWS = "second_stage", "all_rows"
BATCH, ITERATIVE, PRINTED = "batch", "iterative", "iterative_printed"


@dataclass(frozen=True, slots=True)
class StageSettings(Settings):
    """What both published forms share.

    Attributes:
        learner: "R" or "DR", the orthogonal loss.
        outcome: the outcome model, fitted to each arm: "network" (one layer of 32, as published), "forest",
            "linear", or an object with `fit` and `predict`.
        propensity: "network", "logistic", or an object with `fit` and `predict_proba`.
        clip: the propensity is clipped to [clip, 1 - clip].
        nuisance_share: the part of the rows that the nuisances are fitted to; the effect is fitted to the others.
        counted: n in the formula is the number of rows of the second stage or of all of them.
    """

    learner: str = setting(R, one_of(R, DR))
    outcome: Any = NETWORK
    propensity: Any = NETWORK
    clip: float = setting(0.05, between(0, 0.5))
    nuisance_share: float = setting(0.5, between(0, 1))
    counted: str = setting(SECOND_STAGE, one_of(SECOND_STAGE, ALL_ROWS))

    def _check_together(self) -> None:
        checked_regressor("outcome", self.outcome)
        checked_classifier("propensity", self.propensity)

    def first_rows(self, rows: int) -> int:
        """Return how many rows the nuisances are fitted to."""
        return min(max(1, round(self.nuisance_share * rows)), rows - 1)

    def counted_rows(self, rows: int) -> int:
        """Return the n of the formula; at least 2, so that its logarithm is positive."""
        return max(2, rows if self.counted == ALL_ROWS else rows - self.first_rows(rows))


@dataclass(frozen=True, slots=True)
class Search:
    """How hard the supremum is looked for: searches beside the one from the centre, and random points."""

    starts: int = 8
    points: int = 20_000


@dataclass(frozen=True, slots=True)
class InfluenceSettings(StageSettings):
    """Settings of `cate_finite`: Theorem 1 and its R- and DR-learners.

    Attributes:
        effect: the second stage: "forest", "network" (two layers of 32), "linear", or an object with `fit` and
            `predict`; with learner="R" its `fit` must take `sample_weight`.
        formula: "proof" divides by E[lambda] as Lemma 2 and (49) do, "main_text" does not, as (11).
        starts: searches for the largest influence beside the published one from the centre of the box.
        points: random points at which the influence is evaluated as well.
    """

    effect: Any = FOREST
    formula: str = setting(PROOF, one_of(PROOF, MAIN_TEXT))
    starts: int = setting(8, whole(2))
    points: int = setting(20_000, whole(2))

    def _check_together(self) -> None:
        StageSettings._check_together(self)
        checked_regressor("effect", self.effect)
        if self.learner == R and not takes_weights(self.effect):
            raise refusal("CV-P562", kind=type(self.effect).__name__)

    @property
    def search(self) -> Search:
        """How hard the supremum is looked for."""
        return Search(self.starts, self.points)


@dataclass(frozen=True, slots=True)
class KernelSettings(StageSettings):
    """Settings of `cate_functional`: Theorem 2 and Algorithms 1 and 2.

    Attributes:
        bandwidth: h of the Gaussian kernel, in features scaled to [0, 1].
        penalty: lambda.
        penalty_meaning: "literal", beside the mean loss as printed; or "alpha", scikit-learn's, so that the
            lambda of the formula is penalty / n.
        kernel: "unit" (height 1), "lemma" (Lemma 3: (sqrt(2 pi) h)^-q) or "theorem" (Theorem 2: power 1).
        lipschitz: L; None takes the largest outcome in size, as published ("upper bound of the domain").
        centres: public points whose kernels span the fit, 50 as published; None for all rows of the second stage.
        algorithm: "batch" (Algorithm 1); "iterative", one query after another with the noise drawn given the
            noise before, distributed as in Algorithm 1; or "iterative_printed", Algorithm 2 as printed,
            which draws given the answers and never reads the data after the first query.
    """

    bandwidth: float = setting(0.2, POSITIVE)
    penalty: float = setting(1.0, POSITIVE)
    penalty_meaning: str = setting(LITERAL, one_of(LITERAL, ALPHA))
    kernel: str = setting(LEMMA, one_of(UNIT, LEMMA, THEOREM))
    lipschitz: float | None = setting(None, POSITIVE | NONE)
    centres: int | None = setting(50, whole(1) | NONE)
    algorithm: str = setting(BATCH, one_of(BATCH, ITERATIVE, PRINTED))


# What stands around their numbers: queries, plan, request, and answers that say what is false.


NOT_COVERED = (
    Caveat.PRIVACY_REFUTED,
    Caveat.CONFOUNDING,
    Caveat.SAMPLING_AND_MODELS,
    Caveat.CLAMPING_OF_COVARIATES_TOO,
)


def asked_queries(question: PublishedQuestion) -> Queries:
    """Return the queries, or refuse: the published forms answer at given points only."""
    if question.queries is None or not len(question.queries):
        raise refusal("CV-P563")
    return question.queries


def paper_plan(question: PublishedQuestion) -> Plan:
    """Return the plan, or refuse a pure budget: the published noise is Gaussian."""
    if question.budget.pure:
        raise refusal("CV-P564", budget=question.budget)
    return Plan.split(question.budget, {"answers": Fraction(1)}, "gaussian", {"answers": Kind.VECTOR})


def paper_request(question: PublishedQuestion, plan: Plan, study: Study, settings: StageSettings) -> Request:
    """Return the request, with the settings that hold where none were given."""
    return replace(question, settings=settings).request(plan, study)


def paper_answers(
    session: Session,
    question: PublishedQuestion,
    answers: Floats,
    *,
    noise: float,
    remark: str,
    method: str,
    release: str,
    interval_of: Target,
) -> CateAnswers:
    """Return the answers with a guarantee that says that it is refuted."""
    queries = asked_queries(question)
    return CateAnswers(
        queries=queries.rows,
        estimates=tuple(float(answer) for answer in answers),
        sampling=(0.0,) * len(queries),
        noise=(noise,) * len(queries),
        guarantee=question.guarantee(session, (), (remark,), Proof.REFUTED),
        method=method,
        **question.terms(session.study),
        releases=(("effects at the queries", release),),
        not_covered=NOT_COVERED,
        distinct=len(queries),
        rank=len(queries),
        details={"rows": session.table.rows, "mechanism": "gaussian, as published"},
        interval_of=interval_of,
    )
