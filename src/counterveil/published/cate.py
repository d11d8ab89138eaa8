"""What the two forms of DP-CATE share: their settings, and what stands around their numbers.

Where the paper is ambiguous, both readings are a choice.

Learners by name or in scikit-learn's style, run without a word, and the orthogonal loss made of them.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from copy import deepcopy
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from counterveil.data import Range, Study, Table
from counterveil.data.features import UnitFeatures
from counterveil.errors import refusal
from counterveil.numerics.arrays import Flags, Floats
from counterveil.numerics.public_choices import public_uniforms
from counterveil.privacy import Proof
from counterveil.privacy.caveats import Caveat, Target
from counterveil.published.asking import PublishedQuestion
from counterveil.results.answering import Facts
from counterveil.results.functions import Queries
from counterveil.session import BaseSession, Kind, Plan
from counterveil.settings.ranges import NONE, POSITIVE, Settings, between, one_of, setting, whole
from counterveil.statistics.folds.learners import quietly

Function = Callable[[Floats], Floats]

FOREST, NETWORK, LINEAR = "forest", "network", "linear"
R, DR = "R", "DR"
REGRESSORS = (FOREST, NETWORK, LINEAR)
CLASSIFIERS = (NETWORK, "logistic")
# One layer of 32 for nuisances and two for the effect, Adam at .01 with batches of 128, as printed.
_NUISANCE_LAYERS, _EFFECT_LAYERS = (32,), (32, 32)
_SEED = 0
# Predictions are kept below this, so that what is computed from them stays finite, whatever the rows are.
_LARGEST = 1e100


def checked_regressor(name: str, learner: object) -> None:
    """Raise CV-P561 unless it names a regressor or has `fit` and `predict` and can be copied."""
    _checked(name, learner, REGRESSORS, "predict")


def checked_classifier(name: str, learner: object) -> None:
    """Raise CV-P561 unless it names a classifier or has `fit` and `predict_proba` and can be copied."""
    _checked(name, learner, CLASSIFIERS, "predict_proba")


def require_learners(*learners: object) -> None:
    """Raise CV-E050 where one is named and scikit-learn is not installed; to be asked before anything is spent."""
    if any(isinstance(learner, str) for learner in learners):
        _scikit_learn()


def takes_weights(learner: object) -> bool:
    """Return whether the learner's `fit` takes `sample_weight`; all named ones do."""
    if isinstance(learner, str):
        return True
    try:
        return "sample_weight" in inspect.signature(learner.fit).parameters  # type: ignore[attr-defined]
    except (TypeError, ValueError):
        return False


def learner_label(learner: object) -> str:
    """Return a name that is the same in every process."""
    return learner if isinstance(learner, str) else type(learner).__name__


def fitted_regressor(learner: object, x: Floats, y: Floats, weights: Floats | None = None) -> Function:
    """Return the fitted regression as a function; the mean of y, or 0, where the fit fails."""
    layers = _NUISANCE_LAYERS if weights is None else _EFFECT_LAYERS
    fresh: Any = _named_regressor(learner, layers) if isinstance(learner, str) else deepcopy(learner)
    extra: dict[str, Floats] = (
        {} if weights is None or not takes_weights(learner) else {"sample_weight": weights}
    )
    fitted = quietly(lambda: fresh.fit(x.copy(), y.copy(), **extra))
    middle = float(np.mean(y)) if len(y) else 0.0
    return _quiet_prediction(None if fitted is None else fitted.predict, middle)


def fitted_classifier(learner: object, x: Floats, treated: NDArray[np.bool_], clip: float) -> Function:
    """Return the fitted propensity as a function with values in [clip, 1 - clip]; the share where it fails."""
    fresh: Any = _named_classifier(learner) if isinstance(learner, str) else deepcopy(learner)
    fitted: Any = quietly(lambda: fresh.fit(x.copy(), treated.astype(np.int64)))
    both = 0 < int(treated.sum()) < len(treated)
    share = float(np.mean(treated)) if len(treated) else 0.5
    usable = fitted is not None and both
    raw = _quiet_prediction(lambda points: fitted.predict_proba(points)[:, 1] if usable else None, share)
    return lambda points: np.clip(raw(points), clip, 1 - clip)


def _quiet_prediction(predict: Callable[[Floats], Any] | None, otherwise: float) -> Function:
    """Return a function that never fails and never says a word about the rows that it was fitted to."""

    def function(points: Floats) -> Floats:
        found = None if predict is None else quietly(lambda: np.asarray(predict(points), dtype=np.float64))
        if found is None or found.shape != (len(points),):
            return np.full(len(points), otherwise)
        kept = np.nan_to_num(found, nan=otherwise, posinf=otherwise, neginf=otherwise)
        return np.clip(kept, -_LARGEST, _LARGEST)

    return function


def _named_regressor(name: str, layers: tuple[int, ...]) -> Any:
    ensemble, linear, network = _scikit_learn()
    if name == FOREST:
        return ensemble.RandomForestRegressor(random_state=_SEED)
    if name == LINEAR:
        return linear.LinearRegression()
    return network.MLPRegressor(
        hidden_layer_sizes=layers, learning_rate_init=0.01, batch_size=128, random_state=_SEED
    )


def _named_classifier(name: str) -> Any:
    _, linear, network = _scikit_learn()
    if name == NETWORK:
        return network.MLPClassifier(
            hidden_layer_sizes=_NUISANCE_LAYERS, learning_rate_init=0.01, batch_size=128, random_state=_SEED
        )
    return linear.LogisticRegression()


def _scikit_learn() -> tuple[Any, Any, Any]:
    """Return the modules that hold the named learners; they are imported when they are first needed."""
    try:
        from sklearn import ensemble, linear_model, neural_network
    except ModuleNotFoundError:
        raise refusal("CV-E050") from None
    return ensemble, linear_model, neural_network


def _checked(name: str, learner: object, known: tuple[str, ...], method: str) -> None:
    if isinstance(learner, str) and learner in known:
        return
    if not isinstance(learner, str | type) and all(
        callable(getattr(learner, part, None)) for part in ("fit", method)
    ):
        try:
            deepcopy(learner)
        except Exception:
            pass
        else:
            return
    raise refusal(
        "CV-P561",
        name=name,
        known=", ".join(map(repr, known)),
        method=method,
        got=f"{name}={learner!r}" if isinstance(learner, str) else f"{name} of type {type(learner).__name__}",
    )


# The orthogonal loss: weights rho and pseudo-outcomes phi from fitted nuisances.


@dataclass(frozen=True, slots=True)
class StageRows:
    """Rows as the learners see them: features in the unit box, treatments, outcomes."""

    x: Floats
    treated: Flags
    y: Floats

    def __len__(self) -> int:
        return len(self.y)

    def part(self, places: NDArray[np.intp]) -> StageRows:
        """Return the rows at these places."""
        return StageRows(self.x[places], self.treated[places], self.y[places])


@dataclass(frozen=True, slots=True)
class StageModels:
    """Fitted functions of the features: the propensity and the expected outcome in each arm."""

    propensity: Function
    control: Function
    treated: Function


def fitted_nuisances(rows: StageRows, outcome: object, propensity: object, clip: float) -> StageModels:
    """Return the nuisances, one outcome model an arm."""
    own = rows.treated
    return StageModels(
        fitted_classifier(propensity, rows.x, own, clip),
        fitted_regressor(outcome, rows.x[~own], rows.y[~own]),
        fitted_regressor(outcome, rows.x[own], rows.y[own]),
    )


@dataclass(frozen=True, slots=True)
class Loss:
    """The learner's loss at points: rho (phi - g)^2 with phi = slope * y + offset, and the weight lambda."""

    rho: Floats
    slope: Floats
    offset: Floats
    weight: Floats

    def phi(self, y: Floats | float) -> Floats:
        """Return the pseudo-outcomes for these outcomes."""
        return self.slope * y + self.offset


def loss_at(nuisances: StageModels, learner: str, x: Floats, treated: Flags) -> Loss:
    """Return the loss of the R- or the DR-learner at these features and treatments.

    R: lambda = pi(1 - pi), so rho = (a - pi)^2 and phi = (y - mu_a)/(a - pi) + mu_1 - mu_0.
    DR: lambda = 1, so rho = 1 and phi = (a - pi)(y - mu_a)/(pi(1 - pi)) + mu_1 - mu_0.
    """
    pi = nuisances.propensity(x)
    control, with_treatment = nuisances.control(x), nuisances.treated(x)
    gap = treated - pi
    own = np.where(treated, with_treatment, control)
    # Both learners divide by a - pi: (a - pi)/(pi(1 - pi)) is 1/(a - pi) for the R-learner times lambda/rho.
    slope = 1 / gap if learner == R else gap / (pi * (1 - pi))
    offset = with_treatment - control - slope * own
    if learner == R:
        return Loss(gap**2, slope, offset, pi * (1 - pi))
    return Loss(np.ones(len(x)), slope, offset, np.ones(len(x)))


def fitted_effect(rows: StageRows, nuisances: StageModels, learner: str, second: object) -> Function:
    """Return the second stage: the regression of phi on the features with weights rho."""
    loss = loss_at(nuisances, learner, rows.x, rows.treated)
    # A learner that takes no weights is refused before, unless they are all one.
    weights = loss.rho if takes_weights(second) else np.ones(len(rows))
    return fitted_regressor(second, rows.x, loss.phi(rows.y), weights)


# The public box of features that learners see: rows, queries and points drawn from it.


@dataclass(frozen=True, slots=True)
class FeatureBox:
    """Numbers scaled to [0, 1] by their declared ranges, labels as columns of zeros and ones."""

    study: Study
    shape: UnitFeatures

    @classmethod
    def of(cls, study: Study) -> FeatureBox:
        """Return the box that a study's declarations give."""
        return cls(study, UnitFeatures.of(study))

    @property
    def columns(self) -> int:
        """Number of features."""
        return self.shape.columns

    @property
    def free(self) -> NDArray[np.bool_]:
        """Which features may take every value in [0, 1]."""
        domains = [self.study.covariates[name] for name in self.shape.names]
        return np.concatenate(
            [
                np.full(max(1, size), isinstance(d, Range))
                for d, size in zip(domains, self.shape.labels, strict=True)
            ]
        )

    def rows(self, table: Table) -> StageRows:
        """Return the table's rows as learners see them."""
        low = float(table.study.outcome_range[0])
        y = low + float(table.outcome_unit) * table.outcome.astype(np.float64)
        return StageRows(self.points(table.covariates), table.treated, y)

    def points(self, columns: Mapping[str, Floats]) -> Floats:
        """Return the features of columns by name: numbers inside their bounds, or codes of labels."""
        parts = []
        for name, size in zip(self.shape.names, self.shape.labels, strict=True):
            domain, values = self.study.covariates[name], columns[name]
            if size:
                parts.append((values[:, None] == np.arange(size)).astype(np.float64))
            elif isinstance(domain, Range):
                low, high = domain.floats()
                parts.append(np.clip((values - low) / (high - low), 0.0, 1.0)[:, None])
            else:
                parts.append(values[:, None])
        return np.hstack(parts)

    def draw(self, count: int, seed: int, corners: bool = False) -> Floats:
        """Return public points of the box: spread over it, or among its corners; labels are drawn evenly."""
        uniform, parts = public_uniforms(count, len(self.shape.names), seed), []
        for place, (name, size) in enumerate(zip(self.shape.names, self.shape.labels, strict=True)):
            own = uniform[:, place]
            if size:
                parts.append(np.eye(size)[(own * size).astype(np.intp)])
            else:
                whole = corners or not isinstance(self.study.covariates[name], Range)
                parts.append((own >= 0.5).astype(np.float64)[:, None] if whole else own[:, None])
        return np.hstack(parts)


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
class SupremumSearch:
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
    def search(self) -> SupremumSearch:
        """How hard the supremum is looked for."""
        return SupremumSearch(self.starts, self.points)


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


def paper_answers(
    session: BaseSession,
    question: PublishedQuestion,
    answers: Floats,
    *,
    noise: float,
    remark: str,
    method: str,
    release: str,
    interval_target: Target,
) -> Facts:
    """Return the answers with a guarantee that says that it is refuted."""
    queries = asked_queries(question)
    return Facts(
        queries=queries.rows,
        estimates=tuple(float(answer) for answer in answers),
        sampling=(0.0,) * len(queries),
        noise=(noise,) * len(queries),
        guarantee=question.guarantee(session, (), (remark,), Proof.REFUTED),
        method=method,
        releases=(("effects at the queries", release),),
        not_covered=NOT_COVERED,
        distinct=len(queries),
        rank=len(queries),
        details={"rows": session.table.rows, "mechanism": "gaussian, as published"},
        interval_target=interval_target,
    )
