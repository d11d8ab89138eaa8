"""What may be chosen about the published forms; where the paper is ambiguous, both readings are a choice."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from counterveil.data import Study
from counterveil.errors import ParameterError
from counterveil.privacy import Proof
from counterveil.published.cate_influence import Search
from counterveil.published.cate_kernel import ALPHA, LEMMA, LITERAL, THEOREM, UNIT
from counterveil.published.cate_learners import (
    FOREST,
    NETWORK,
    checked_classifier,
    checked_regressor,
    takes_weights,
)
from counterveil.published.cate_losses import DR, R
from counterveil.results.cate_answers import CateAnswers
from counterveil.results.cate_queries import Queries
from counterveil.results.cate_question import CateQuestion
from counterveil.session import Custody, Kind, Plan, Request
from counterveil.settings.ranges import Settings, is_number, is_one_of, is_whole, out_of_range

PROOF, MAIN_TEXT = "proof", "main_text"
SECOND_STAGE, ALL_ROWS = "second_stage", "all_rows"
BATCH, ITERATIVE, PRINTED = "batch", "iterative", "iterative_printed"

_refusal = partial(out_of_range, "a published form")


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

    learner: str = R
    outcome: Any = NETWORK
    propensity: Any = NETWORK
    clip: float = 0.05
    nuisance_share: float = 0.5
    counted: str = SECOND_STAGE

    def __post_init__(self) -> None:
        _one_of("learner", self.learner, (R, DR))
        checked_regressor("outcome", self.outcome)
        checked_classifier("propensity", self.propensity)
        _between("clip", self.clip, 0.0, 0.5)
        _between("nuisance_share", self.nuisance_share, 0.0, 1.0)
        _one_of("counted", self.counted, (SECOND_STAGE, ALL_ROWS))

    def first_rows(self, rows: int) -> int:
        """Return how many rows the nuisances are fitted to."""
        return min(max(1, round(self.nuisance_share * rows)), rows - 1)

    def counted_rows(self, rows: int) -> int:
        """Return the n of the formula; at least 2, so that its logarithm is positive."""
        return max(2, rows if self.counted == ALL_ROWS else rows - self.first_rows(rows))


@dataclass(frozen=True, slots=True)
class InfluenceSettings(StageSettings):
    """Settings of `method="influence"`, `variant="paper"`: Theorem 1 and its R- and DR-learners.

    Attributes:
        effect: the second stage: "forest", "network" (two layers of 32), "linear", or an object with `fit` and
            `predict`; with learner="R" its `fit` must take `sample_weight`.
        formula: "proof" divides by E[lambda] as Lemma 2 and (49) do, "main_text" does not, as (11).
        starts: searches for the largest influence beside the published one from the centre of the box.
        points: random points at which the influence is evaluated as well.
    """

    effect: Any = FOREST
    formula: str = PROOF
    starts: int = 8
    points: int = 20_000

    def __post_init__(self) -> None:
        StageSettings.__post_init__(self)
        checked_regressor("effect", self.effect)
        _one_of("formula", self.formula, (PROOF, MAIN_TEXT))
        _whole("starts", self.starts, 2)
        _whole("points", self.points, 2)
        if self.learner == R and not takes_weights(self.effect):
            raise ParameterError(
                "CV-P562",
                "the R-learner weights its rows, and this learner takes no weights",
                expected="a second stage whose fit takes sample_weight, or learner='DR'",
                got=f"effect of type {type(self.effect).__name__}",
                fix="use learner='DR', whose weights are all one, or another second stage",
            )

    @property
    def search(self) -> Search:
        """How hard the supremum is looked for."""
        return Search(self.starts, self.points)


@dataclass(frozen=True, slots=True)
class KernelSettings(StageSettings):
    """Settings of `method="kernel"`, `variant="paper"`: Theorem 2 and Algorithms 1 and 2.

    Attributes:
        bandwidth: h of the Gaussian kernel, in features scaled to [0, 1].
        penalty: lambda.
        penalty_meaning: "literal", beside the mean loss as printed; or "alpha", scikit-learn's, so that the
            lambda of the formula is penalty / n.
        kernel: "unit" (height 1), "lemma" (Lemma 3: (sqrt(2 pi) h)^-q) or "theorem" (Theorem 2: power 1).
        lipschitz: L; None takes the largest outcome in size, as published ("upper bound of the domain").
        centres: public points whose kernels span the fit, 50 as published; None for all rows of the second stage.
        algorithm: "batch" (Algorithm 1); "iterative", one query after another with the noise drawn given the
            noise before, so that it has the law of Algorithm 1; or "iterative_printed", Algorithm 2 as printed,
            which draws given the answers and never reads the data after the first query.
    """

    bandwidth: float = 0.2
    penalty: float = 1.0
    penalty_meaning: str = LITERAL
    kernel: str = LEMMA
    lipschitz: float | None = None
    centres: int | None = 50
    algorithm: str = BATCH

    def __post_init__(self) -> None:
        StageSettings.__post_init__(self)
        _between("bandwidth", self.bandwidth, 0.0, float("inf"))
        _between("penalty", self.penalty, 0.0, float("inf"))
        _one_of("penalty_meaning", self.penalty_meaning, (LITERAL, ALPHA))
        _one_of("kernel", self.kernel, (UNIT, LEMMA, THEOREM))
        _one_of("algorithm", self.algorithm, (BATCH, ITERATIVE, PRINTED))
        if self.lipschitz is not None:
            _between("lipschitz", self.lipschitz, 0.0, float("inf"))
        if self.centres is not None:
            _whole("centres", self.centres, 1)


def _one_of(name: str, value: object, known: tuple[str, ...]) -> None:
    if not is_one_of(value, *known):
        raise _refusal(name, " or ".join(map(repr, known)), value)


def _between(name: str, value: object, low: float, high: float) -> None:
    if not (is_number(value, low, high) and low != value != high):
        raise _refusal(name, f"a number above {low:g} and below {high:g}", value)


def _whole(name: str, value: object, least: int) -> None:
    if not is_whole(value, least):
        raise _refusal(name, f"a whole number of at least {least}", value)


# What the published forms share around their numbers: queries, plan, request, and answers that say what is false.


Floats = NDArray[np.float64]

NOT_COVERED = (
    "PRIVACY: the claim of this form is refuted; what a record loses is not known",
    "CONFOUNDING by what is not among the covariates",
    "sampling error and bias of the fitted models",
    "clamping of outcomes and covariates to the declared ranges",
)


def asked_queries(question: CateQuestion) -> Queries:
    """Return the queries, or refuse: the published forms answer at given points only."""
    if question.queries is None or not len(question.queries):
        raise ParameterError(
            "CV-P563",
            "the published forms answer at given points only",
            expected="queries= with the people to ask about",
            got="no queries",
            fix="pass queries=, or leave variant out: the proved form is a function that answers for ever",
        )
    return question.queries


def paper_plan(question: CateQuestion) -> Plan:
    """Return the plan, or refuse a pure budget: the published noise is Gaussian."""
    if question.budget.pure:
        raise ParameterError(
            "CV-P564",
            "the published forms have Gaussian noise",
            expected="delta > 0, or delta left out",
            got=f"{question.budget}",
            fix="leave delta out, or leave variant out",
        )
    return Plan.split(question.budget, {"answers": Fraction(1)}, "gaussian", {"answers": Kind.VECTOR})


def paper_request(question: CateQuestion, plan: Plan, study: Study, settings: StageSettings) -> Request:
    """Return the request, with the settings that hold where none were given."""
    return replace(question, settings=settings).request(plan, study)


def paper_answers(
    custody: Custody,
    question: CateQuestion,
    answers: Floats,
    *,
    noise: float,
    remark: str,
    method: str,
    release: str,
    interval_of: str,
) -> CateAnswers:
    """Return the answers with a promise that says that it is refuted."""
    queries = asked_queries(question)
    return CateAnswers(
        queries=queries.rows,
        estimates=tuple(float(answer) for answer in answers),
        sampling=(0.0,) * len(queries),
        noise=(noise,) * len(queries),
        guarantee=question.guarantee(custody, (), (remark,), Proof.REFUTED),
        method=method,
        **question.terms(custody.study),
        releases=(("effects at the queries", release),),
        not_covered=NOT_COVERED,
        distinct=len(queries),
        rank=len(queries),
        details={"rows": custody.table.rows, "law": "gaussian, as published"},
        interval_of=interval_of,
    )
