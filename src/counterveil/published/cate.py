"""The published forms of private CATE: finite queries, and functions.

Learners of scikit-learn, run without a word, and the orthogonal loss made of them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from math import log, pi, sqrt
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import solve_triangular

from counterveil.accounting import Ledger
from counterveil.data import Range, Study, Table
from counterveil.data.features import UnitFeatures
from counterveil.errors import refusal
from counterveil.numerics.arrays import Flags, Floats
from counterveil.numerics.products import blocks
from counterveil.numerics.public_choices import public_uniforms, two_parts
from counterveil.privacy import Budget, Number, Proof
from counterveil.privacy.caveats import Caveat, Target
from counterveil.published.asking import PublishedQuestion, QueryForm, release_vector_scaled
from counterveil.results.answering import Facts, answer_request
from counterveil.results.functions import CateAnswers, Queries, default_delta
from counterveil.rows.folds.quiet_learners import quietly
from counterveil.session import BaseSession, BitSource, Gate, Kind, Plan
from counterveil.settings.methods import POSITIVE, Allowed, Settings, one_of, whole

Function = Callable[[Floats], Floats]

EVERY = slice(None)
FOREST, NETWORK, LINEAR = "forest", "network", "linear"
R, DR = "R", "DR"
REGRESSORS = (FOREST, NETWORK, LINEAR)
CLASSIFIERS = (NETWORK, "logistic")
# One layer of 32 for nuisances and two for the effect, Adam at .01 with batches of 128, as printed.
_NUISANCE_LAYERS, _EFFECT_LAYERS = (32,), (32, 32)
_SEED = 0
# Predictions are kept below this, so that what is computed from them stays finite, whatever the rows are.
_LARGEST = 1e100
# The propensity is clipped to [_CLIP, 1 - _CLIP]; nuisances are fitted to this part of the rows.
_CLIP, _NUISANCE_SHARE = 0.05, 0.5
# Public points whose kernels span the fit, and lambda, as published.
_CENTRES, _PENALTY = 50, 1.0


def fitted_regressor(learner: str, x: Floats, y: Floats, weights: Floats | None = None) -> Function:
    """Return the fitted regression as a function; the mean of y, or 0, where the fit fails."""
    fresh = _named_regressor(learner, _NUISANCE_LAYERS if weights is None else _EFFECT_LAYERS)
    fitted = quietly(lambda: fresh.fit(x.copy(), y.copy(), sample_weight=weights))
    middle = float(np.mean(y)) if len(y) else 0.0
    return _quiet_prediction(None if fitted is None else fitted.predict, middle)


def fitted_classifier(learner: str, x: Floats, treated: NDArray[np.bool_]) -> Function:
    """Return the fitted propensity as a function, clipped; the share treated where the fit fails."""
    fresh = _named_classifier(learner)
    fitted: Any = quietly(lambda: fresh.fit(x.copy(), treated.astype(np.int64)))
    both = 0 < int(treated.sum()) < len(treated)
    share = float(np.mean(treated)) if len(treated) else 0.5
    usable = fitted is not None and both
    raw = _quiet_prediction(lambda points: fitted.predict_proba(points)[:, 1] if usable else None, share)
    return lambda points: np.clip(raw(points), _CLIP, 1 - _CLIP)


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
        return linear.LinearRegression(copy_X=False)  # rows are copied for it
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
    """Return the modules that hold the learners, or raise CV-E050; they are imported when they are first needed."""
    try:
        from sklearn import ensemble, linear_model, neural_network
    except ModuleNotFoundError:
        raise refusal("CV-E050") from None
    return ensemble, linear_model, neural_network


@dataclass(frozen=True, slots=True)
class StageRows:
    """Rows as the learners see them: features in the unit box, treatments, outcomes."""

    x: Floats
    treated: Flags
    y: Floats


@dataclass(frozen=True, slots=True)
class StageModels:
    """Fitted functions of the features: the propensity and the expected outcome in each arm."""

    propensity: Function
    control: Function
    treated: Function

    def at(self, x: Floats) -> tuple[Floats, Floats, Floats]:
        """Return what the three say at these features."""
        return self.propensity(x), self.control(x), self.treated(x)


def fitted_nuisances(rows: StageRows, outcome: str, propensity: str) -> StageModels:
    """Return the nuisances, one outcome model an arm."""
    own = rows.treated
    return StageModels(
        fitted_classifier(propensity, rows.x, own),
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
    """Return the loss of the R- or the DR-learner at these features and treatments."""
    return loss_of(nuisances.at(x), learner, treated)


def loss_of(fitted: tuple[Floats, Floats, Floats], learner: str, treated: Flags) -> Loss:
    """Return the loss where the nuisances are these.

    R: lambda = pi(1 - pi), so rho = (a - pi)^2 and phi = (y - mu_a)/(a - pi) + mu_1 - mu_0.
    DR: lambda = 1, so rho = 1 and phi = (a - pi)(y - mu_a)/(pi(1 - pi)) + mu_1 - mu_0.
    """
    pi, control, with_treatment = fitted
    gap = treated - pi
    own = np.where(treated, with_treatment, control)
    # Both learners divide by a - pi: (a - pi)/(pi(1 - pi)) is 1/(a - pi) for the R-learner times lambda/rho.
    slope = 1 / gap if learner == R else gap / (pi * (1 - pi))
    offset = with_treatment - control - slope * own
    if learner == R:
        return Loss(gap**2, slope, offset, pi * (1 - pi))
    return Loss(np.ones(len(pi)), slope, offset, np.ones(len(pi)))


def fitted_effect(rows: StageRows, nuisances: StageModels, learner: str, second: str) -> Function:
    """Return the second stage: the regression of phi on the features with weights rho."""
    loss = loss_at(nuisances, learner, rows.x, rows.treated)
    return fitted_regressor(second, rows.x, loss.phi(rows.y), loss.rho)


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

    def rows(self, table: Table, places: NDArray[np.intp] | slice = EVERY) -> StageRows:
        """Return some of the table's rows as learners see them."""
        low = float(table.study.outcome_range[0])
        y = low + float(table.outcome_unit) * table.outcome[places].astype(np.float64)
        return StageRows(self.points(table.covariates, places), table.treated[places], y)

    def points(self, columns: Mapping[str, Floats], places: NDArray[np.intp] | slice = EVERY) -> Floats:
        """Return the features of columns by name: numbers inside their bounds, or codes of labels."""
        found, first = np.empty((len(columns[self.shape.names[0]][places]), self.columns)), 0
        for name, size in zip(self.shape.names, self.shape.labels, strict=True):
            domain, values = self.study.covariates[name], columns[name][places]
            if size:
                found[:, first : first + size] = values[:, None] == np.arange(size)
            elif isinstance(domain, Range):
                low, high = domain.floats()
                found[:, first] = np.clip((values - low) / (high - low), 0.0, 1.0)
            else:
                found[:, first] = values
            first += max(1, size)
        return found

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


LITERAL, ALPHA = "literal", "alpha"
BATCH, ITERATIVE, PRINTED = "batch", "iterative", "iterative_printed"


@dataclass(frozen=True, slots=True)
class StageSettings(Settings):
    """Settings that both published forms of DP-CATE share: the two-stage learner.

    Attributes
    ----------
    learner : {"R", "DR"}, default "R"
        Orthogonal loss of the second stage: R-learner or DR-learner.
    outcome : {"network", "forest", "linear"}, default "network"
        Outcome model, fitted to each arm: a neural network with one layer of 32, as published; a random
        forest; or linear regression.
    propensity : {"network", "logistic"}, default "network"
        Propensity model: a neural network with one layer of 32, or logistic regression.
    """

    _allowed: ClassVar[Mapping[str, Allowed]] = {
        "learner": one_of(R, DR),
        "outcome": one_of(*REGRESSORS),
        "propensity": one_of(*CLASSIFIERS),
    }
    learner: str = "R"
    outcome: str = "network"
    propensity: str = "network"


def first_rows(rows: int) -> int:
    """Return how many rows the nuisances are fitted to."""
    return min(max(1, round(_NUISANCE_SHARE * rows)), rows - 1)


def counted_rows(rows: int) -> int:
    """Return the n of the formulas, the rows of the second stage; at least 2, so that its logarithm is positive."""
    return max(2, rows - first_rows(rows))


@dataclass(frozen=True, slots=True)
class InfluenceSettings(StageSettings):
    """Settings of `cv.published.cate_finite`.

    They choose the learners of Theorem 1, and how the largest influence is searched for.

    Attributes
    ----------
    learner : {"R", "DR"}, default "R"
        Orthogonal loss of the second stage: R-learner or DR-learner.
    outcome : {"network", "forest", "linear"}, default "network"
        Outcome model, fitted to each arm: a neural network with one layer of 32, as published; a random
        forest; or linear regression.
    propensity : {"network", "logistic"}, default "network"
        Propensity model: a neural network with one layer of 32, or logistic regression.
    effect : {"forest", "network", "linear"}, default "forest"
        Model of the second stage: a random forest, a neural network with two layers of 32, or linear
        regression.
    starts : int, default 8
        Searches for the largest influence besides the published one from the centre of the box; at least 2.
    points : int, default 20000
        Random points at which the influence is evaluated besides; at least 2.

    Raises
    ------
    CounterveilError
        A value outside its range (CV-P025), or a name that is no field (CV-P020).

    Examples
    --------
    >>> import counterveil as cv
    >>> cv.published.InfluenceSettings(outcome="linear", propensity="logistic").effect
    'forest'
    """

    _allowed: ClassVar[Mapping[str, Allowed]] = {
        **StageSettings._allowed,
        "effect": one_of(*REGRESSORS),
        "starts": whole(2),
        "points": whole(2),
    }
    effect: str = "forest"
    starts: int = 8
    points: int = 20_000


@dataclass(frozen=True, slots=True)
class KernelSettings(StageSettings):
    """Settings of `cv.published.cate_functional`: Theorem 2 with Algorithms 1 and 2.

    Attributes
    ----------
    learner : {"R", "DR"}, default "R"
        Orthogonal loss of the second stage: R-learner or DR-learner.
    outcome : {"network", "forest", "linear"}, default "network"
        Outcome model, fitted to each arm: a neural network with one layer of 32, as published; a random
        forest; or linear regression.
    propensity : {"network", "logistic"}, default "network"
        Propensity model: a neural network with one layer of 32, or logistic regression.
    bandwidth : float, default 0.2
        h of the Gaussian kernel, above 0, in covariates scaled to [0, 1].
    penalty_meaning : {"literal", "alpha"}, default "literal"
        What lambda = 1 multiplies.
        "literal": the penalty beside the mean loss, as printed;
        "alpha": scikit-learn's ``alpha``, with which the lambda of the formula is 1/n.
    algorithm : {"batch", "iterative", "iterative_printed"}, default "batch"
        "batch": Algorithm 1, all queries at once;
        "iterative": one query after another, each noise drawn given the earlier noise; distributed as
        "batch";
        "iterative_printed": Algorithm 2 as printed, which draws given the earlier answers and does not read
        the data after the first query.

    Raises
    ------
    CounterveilError
        A value outside its range (CV-P025), or a name that is no field (CV-P020).

    Examples
    --------
    >>> import counterveil as cv
    >>> cv.published.KernelSettings(bandwidth=0.5).algorithm
    'batch'
    """

    _allowed: ClassVar[Mapping[str, Allowed]] = {
        **StageSettings._allowed,
        "bandwidth": POSITIVE,
        "penalty_meaning": one_of(LITERAL, ALPHA),
        "algorithm": one_of(BATCH, ITERATIVE, PRINTED),
    }
    bandwidth: float = 0.2
    penalty_meaning: str = "literal"
    algorithm: str = "batch"


NOT_COVERED = (
    Caveat.PRIVACY_REFUTED,
    Caveat.CONFOUNDING,
    Caveat.SAMPLING_AND_MODELS,
    Caveat.CLAMPING_OF_COVARIATES_TOO,
)


def stages(table: Table, box: FeatureBox, settings: StageSettings) -> tuple[int, StageRows, StageModels]:
    """Return the number of rows, those of the second stage, and the nuisances that the others were fitted to."""
    first, second = two_parts(table.rows, first_rows(table.rows))
    nuisances = fitted_nuisances(box.rows(table, first), settings.outcome, settings.propensity)
    return table.rows, box.rows(table, second), nuisances


def asked_queries(question: PublishedQuestion) -> Queries:
    """Return the queries, or refuse: the published forms answer at given points only."""
    if question.queries is None or not len(question.queries):
        raise refusal("CV-P563")
    return question.queries


def paper_plan(question: PublishedQuestion, rows: int) -> Plan:
    """Return the plan, or refuse a pure budget: the published noise is Gaussian."""
    if question.budget.pure:
        raise refusal("CV-P564", budget=question.budget, delta=f"{float(default_delta(rows)):.1g}")
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


# The effect as a kernel regression plus a Gaussian process, as published (Theorem 2, Algorithms 1 and 2).
#
# Its privacy claim is refuted: the sensitivity has the exponent q of the bandwidth's volume where q/2 is right, which
# the unexplained factor 4 hides for small volumes only; rows of the nuisances are not counted; L is not the Lipschitz
# constant of the loss. The scale is public, and for every number of queries one path of noise is drawn.


# Keeps the normal equations of many close centres solvable; far below the noise of any fit.
_RIDGE = 1e-10
# Variance that every query gets on top of the process, as a part of the process's own.
EXTRA_VARIANCE = 1e-9
REMARK = (
    "the published claim is false: the bound of how far a record moves the function has the exponent q where q/2 is "
    "right, so that the noise is too small wherever (sqrt(2 pi) h)^(q/2) is above 4 and vanishes with many covariates; "
    "rows of the nuisances are not counted; and the largest outcome is not the Lipschitz constant of the loss. The "
    "ledger is charged the claimed epsilon and delta"
)
REMARK_PRINTED = (
    "; the iterative algorithm as printed draws every answer after the first from the answers before it alone: those "
    "are noise, not estimates"
)


# Gaussian kernel regression of the pseudo-outcomes.
#
# All of it is computed with the kernel of height one. A kernel of height c has the squared norm |g|^2 / c for the same
# function, so that its penalty is lambda / c here, and its Gaussian process is sqrt(c) times ours.


@dataclass(frozen=True, slots=True)
class Kernel:
    """exp(-|x - y|^2 / (2 h^2)) on q features, and the height by which the paper multiplies it."""

    bandwidth: float
    features: int
    height: float

    @classmethod
    def normalised(cls, bandwidth: float, features: int) -> Kernel:
        """Return the kernel of height (sqrt(2 pi) h)^-q, as in Lemma 3."""
        return cls(bandwidth, features, (sqrt(2 * pi) * bandwidth) ** -features)

    def unit(self, first: Floats, second: Floats) -> Floats:
        """Return the matrix of the kernel of height one."""
        found: Floats = (first**2).sum(1)[:, None] + (second**2).sum(1)
        found -= 2 * first @ second.T
        np.divide(np.maximum(found, 0.0, out=found), -2 * self.bandwidth**2, out=found)
        return np.exp(found, out=found)


def published_scale(
    kernel: Kernel, lipschitz: float, penalty: float, rows: int, epsilon: float, delta: float
) -> float:
    """Return the factor of the Gaussian process in Theorem 2; the exponent q is the paper's."""
    volume = (sqrt(2 * pi) * kernel.bandwidth) ** kernel.features
    return 4 * lipschitz * sqrt(2 * log(2 / delta)) / (volume * penalty * rows * epsilon)


def fitted_kernel(
    kernel: Kernel, x: Floats, target: Floats, weights: Floats, penalty: float, centres: Floats | None
) -> Function:
    """Return the minimiser of mean(weights (target - g)^2) + penalty |g|^2, in the span of the centres if any."""
    strength = penalty / kernel.height * len(x)
    if centres is None:
        centres = x
        system = kernel.unit(x, x) + np.diag(strength / np.maximum(weights, np.finfo(float).tiny))
        solved = np.linalg.solve(system, target)
    else:
        system, side = strength * kernel.unit(centres, centres), np.zeros(len(centres))
        for part in blocks(len(x)):
            cross = kernel.unit(x[part], centres)
            system += cross.T @ (weights[part, None] * cross)
            side += cross.T @ (weights[part] * target[part])
        # The ridge is beside the size of the system, which is tiny or huge with the penalty.
        system[np.diag_indices_from(system)] += _RIDGE * float(np.trace(system)) / len(system)
        solved = np.linalg.solve(system, side)
    held = centres
    return lambda points: kernel.unit(points, held) @ solved


# Gaussian process noise: with L L' = K + J at the distinct queries, a path of the process is L z for independent
# normals z. Asking in whitened form, w = L^-1 g + s z, and answering L w is the same as adding s times the process to
# g. With the queries in the order in which they were asked, row j of L depends on the first j alone: the noise of a
# query is drawn given the noise of those before it, which is never told. J only adds variance. A query that was asked
# before gets the same answer.


def path_factor(kernel: Kernel, points: Floats, in_order: bool = False) -> tuple[Floats, NDArray[np.intp]]:
    """Return the factor of the distinct points, perhaps in the order of the queries, and every point's place in it."""
    distinct, asked, places = np.unique(points, axis=0, return_index=True, return_inverse=True)
    places = places.reshape(-1).astype(np.intp)
    if in_order:
        order = np.argsort(asked)
        distinct, places = distinct[order], np.argsort(order)[places]
    covariance = kernel.unit(distinct, distinct)
    covariance[np.diag_indices_from(covariance)] = 1 + EXTRA_VARIANCE
    factor: Floats = np.linalg.cholesky(covariance).astype(np.float64)
    return factor, places


@dataclass(frozen=True, slots=True)
class PublishedFunction:
    """The kernel, the published scale of a process of height one, and the lambda beside the mean loss."""

    kernel: Kernel
    scale: float
    penalty: float

    @classmethod
    def of(cls, box: FeatureBox, budget: Budget, settings: KernelSettings, rows: int) -> PublishedFunction:
        """Return what the paper prints for these public numbers; `rows` is the n of the formula."""
        kernel = Kernel.normalised(settings.bandwidth, box.columns)
        # Beside the mean loss: as printed, or scikit-learn's alpha over n. L is the "upper bound of the domain".
        penalty = _PENALTY if settings.penalty_meaning == LITERAL else _PENALTY / rows
        lipschitz = max(abs(float(end)) for end in box.study.outcome_range)
        epsilon, delta = float(budget.epsilon), float(budget.delta)
        scale = published_scale(kernel, lipschitz, penalty, rows, epsilon, delta)
        return cls(kernel, scale * float(np.sqrt(kernel.height)), penalty)

    def effects(
        self, rows: StageRows, nuisances: StageModels, learner: str, centres: Floats | None, points: Floats
    ) -> Floats:
        """Return the non-private regression at these points."""
        loss = loss_at(nuisances, learner, rows.x, rows.treated)
        fitted = fitted_kernel(self.kernel, rows.x, loss.phi(rows.y), loss.rho, self.penalty, centres)
        return fitted(points)


def _functional(session: BaseSession, question: PublishedQuestion) -> CateAnswers:
    """Return a kernel regression plus a Gaussian process at queries, as in DP-CATE (Theorem 2); refuted."""
    settings = question.settings or KernelSettings()
    queries = asked_queries(question)
    plan = paper_plan(question, session.batches.rows)
    remark = REMARK + (REMARK_PRINTED if settings.algorithm == PRINTED else "")
    question.require_acceptance(Proof.REFUTED, remark)
    _scikit_learn()
    box = FeatureBox.of(session.study)
    points = box.points(queries.columns)

    def compute(gate: Gate) -> Facts:
        rows, second, nuisances = stages(session.table, box, settings)
        form = PublishedFunction.of(box, question.budget, settings, counted_rows(rows))
        effects = form.effects(second, nuisances, settings.learner, public_centres(box), points)
        return paper_answers(
            session,
            question,
            release(gate, plan, form, effects, points, settings.algorithm),
            # As printed, later answers have no noise around anything that was estimated.
            noise=float("inf")
            if settings.algorithm == PRINTED
            else form.scale * float(np.sqrt(1 + EXTRA_VARIANCE)),
            remark=remark,
            method=f"{settings.learner}-learner by kernel regression, Gaussian process noise ({settings.algorithm}), "
            "as published",
            release=f"one path of a Gaussian process, standard deviation {form.scale:.4g} at a point",
            interval_target=Target.KERNEL_REGRESSION,
        )

    # With the settings that hold where none were given.
    return answer_request(CateAnswers, session, replace(question, settings=settings), plan, compute)


_CATE_FUNCTIONAL = QueryForm("cate_functional", KernelSettings, _functional)


def cate_functional(
    data: object,
    study: Study | None = None,
    *,
    queries: Any = None,
    epsilon: Number,
    delta: Number = 0,
    level: float = 0.95,
    settings: KernelSettings | None = None,
    accept: str | None = None,
    ledger: str | Path | Ledger | None = None,
    dataset: str | None = None,
    request_id: str | None = None,
    noise: BitSource | None = None,
) -> CateAnswers:
    """Estimate conditional average effects by kernel regression, as DP-CATE (Theorem 2) prints it.

    A kernel ridge regression of orthogonal scores, plus one path of a Gaussian process with the same kernel.

    Parameters
    ----------
    data : object
        The rows: a DataFrame (pandas, Polars, PyArrow, DuckDB, Ibis, Spark), a mapping of names to arrays, or
        the path of a CSV or Parquet file; or an open `Session`, which brings its study, ledger, account and
        noise.
    study : Study, optional
        Roles of the columns, with public ranges and labels. Left out with a session.
    queries : object
        People to ask about: a table of the covariates, as a DataFrame or a mapping of names to arrays.
    epsilon : number
        Privacy loss that the paper claims, above 0.
    delta : number, default 0
        A small positive number, below 1: the form draws Gaussian noise.
    level : float, default 0.95
        Confidence level, above 0 and below 1.
    settings : KernelSettings, optional
        Learners, bandwidth and algorithm. Default: ``cv.published.KernelSettings()``.
    accept : "unproved", optional
        Needed, from an analyst who knows that the claim is not proved in finite samples. A ledger on disk
        takes such a request only if the account's access policy has ``unproved = true``.
    ledger : Ledger or path-like, optional
        Charge an account of this ledger. Default: a ledger for this call alone.
    dataset : str, optional
        Account in the ledger. Default: the only one.
    request_id : str, optional
        Name of the request; asked again under it, the stored answer comes back, free of charge. Default: a
        new request.
    noise : SeededNoise, optional
        Reproducible noise, for tests alone: it protects nobody. Default: noise of the operating system.

    Returns
    -------
    CateAnswers
        Effects at the queries, with a guarantee that says what is true of the claim; without intervals where
        the noise scale depends on the rows.

    Raises
    ------
    CounterveilError
        Before anything is spent: arguments (CV-P), missing acceptance (CV-C001), study (CV-S), data (CV-D),
        ledger (CV-L), budget (CV-B).

    Notes
    -----
    Claims (epsilon, delta)-DP for whole records; refuted. The bound on the influence has the wrong exponent:
    with 8 covariates and bandwidth 1 a claimed epsilon of 1 is at least 5.23. Instead: `cv.cate`.

    References
    ----------
    .. [1] Schröder, M., Melnychuk, V. and Feuerriegel, S. (2025). Differentially Private Learners for
       Heterogeneous Treatment Effects. ICLR. arXiv:2503.03486.

    Examples
    --------
    >>> import counterveil as cv
    >>> data = cv.datasets.dataset_1(n=400)
    >>> learners = cv.published.KernelSettings(outcome="linear", propensity="logistic")
    >>> answers = cv.published.cate_functional(
    ...     data.frame, data.study, queries={"x1": [0.1, 0.9], "x2": [0.5, 0.2]}, epsilon=1, delta=1e-6,
    ...     settings=learners, accept="unproved", noise=cv.SeededNoise(1),
    ... )
    >>> answers.spent.epsilon >= 1
    True
    """
    return _CATE_FUNCTIONAL(
        data,
        study,
        queries=queries,
        epsilon=epsilon,
        delta=delta,
        level=level,
        settings=settings,
        accept=accept,
        ledger=ledger,
        dataset=dataset,
        request_id=request_id,
        noise=noise,
    )


def public_centres(box: FeatureBox) -> Floats:
    """Return points of the box from a fixed seed: centres from the rows would tell them."""
    return box.draw(_CENTRES, _SEED)


def release(
    gate: Gate, plan: Plan, form: PublishedFunction, effects: Floats, points: Floats, algorithm: str
) -> Floats:
    """Return the answers: independent normals at the gate, in the coordinates where the process is white."""
    factor, places = path_factor(form.kernel, points, in_order=algorithm != BATCH)
    values = np.empty(len(factor))
    values[places] = effects
    white = solve_triangular(factor, values, lower=True)
    scales = np.full(len(factor), form.scale)
    if algorithm == PRINTED:
        # Only the first answer reads the data, and all later ones have the process's own scale.
        white[1:], scales[1:] = 0.0, np.sqrt(form.kernel.height)
    sensitivity = plan.amount("answers", Kind.VECTOR)
    unit = [Fraction(float(value)) for value in white / scales]
    noisy = gate.release_vector("answers", unit, sensitivity).floats() * scales
    return np.asarray((factor @ noisy)[places], dtype=np.float64)


# Effects at finitely many queries as they were published (Theorem 1): any learner, noise by influence functions.
#
# Its privacy claim is refuted. What is drawn is what is printed: nuisances on one part of the rows, a regression of
# pseudo-outcomes on the other, and independent normal noise whose scale is the largest influence function of a record
# times 5 sqrt(2 ln n ln(2/delta)) / (epsilon n).


_STEP = 1e-6
_MOST_STEPS = 25
QUERIES_REMARK = (
    "the published claim is false: the influence function is that of an average and is used for the effect at every "
    "query, so that the number of queries does not enter; a forest or a network moves by far more than that over n "
    "when one record changes; rows of the nuisances are not counted at all; and the scale of the noise follows the "
    "rows. The ledger is charged the claimed epsilon and delta"
)


def _finite_queries(session: BaseSession, question: PublishedQuestion) -> CateAnswers:
    """Return effects at queries with noise by influence functions, as in DP-CATE (Theorem 1); refuted."""
    settings = question.settings or InfluenceSettings()
    queries = asked_queries(question)
    plan = paper_plan(question, session.batches.rows)
    question.require_acceptance(Proof.REFUTED, QUERIES_REMARK)
    _scikit_learn()
    box = FeatureBox.of(session.study)
    points = box.points(queries.columns)

    def compute(gate: Gate) -> Facts:
        rows, second, nuisances = stages(session.table, box, settings)
        factor = published_factor(question.budget, counted_rows(rows))
        found = published(second, nuisances, points, box, settings, factor)
        answers = release_queries(gate, *found, box, rows)
        return paper_answers(
            session,
            question,
            answers,
            # The scale follows the rows, so no interval can be told.
            noise=float("inf"),
            remark=QUERIES_REMARK,
            method=f"{settings.learner}-learner, second stage {settings.effect}, influence-function noise, "
            "as published",
            release="normal noise on each, of a scale that follows the rows and is not told",
            interval_target=Target.NO_QUANTITY,
        )

    # With the settings that hold where none were given.
    return answer_request(CateAnswers, session, replace(question, settings=settings), plan, compute)


_CATE_FINITE = QueryForm("cate_finite", InfluenceSettings, _finite_queries)


def cate_finite(
    data: object,
    study: Study | None = None,
    *,
    queries: Any = None,
    epsilon: Number,
    delta: Number = 0,
    level: float = 0.95,
    settings: InfluenceSettings | None = None,
    accept: str | None = None,
    ledger: str | Path | Ledger | None = None,
    dataset: str | None = None,
    request_id: str | None = None,
    noise: BitSource | None = None,
) -> CateAnswers:
    """Estimate conditional average effects at given points, as DP-CATE (Theorem 1) prints it.

    Effects at the queries from any learner, with Gaussian noise whose scale is the largest influence of a
    record that a search finds.

    Parameters
    ----------
    data : object
        The rows: a DataFrame (pandas, Polars, PyArrow, DuckDB, Ibis, Spark), a mapping of names to arrays, or
        the path of a CSV or Parquet file; or an open `Session`, which brings its study, ledger, account and
        noise.
    study : Study, optional
        Roles of the columns, with public ranges and labels. Left out with a session.
    queries : object
        People to ask about: a table of the covariates, as a DataFrame or a mapping of names to arrays.
    epsilon : number
        Privacy loss that the paper claims, above 0.
    delta : number, default 0
        A small positive number, below 1: the form draws Gaussian noise.
    level : float, default 0.95
        Confidence level, above 0 and below 1.
    settings : InfluenceSettings, optional
        Learners, and how the largest influence is searched for. Default:
        ``cv.published.InfluenceSettings()``.
    accept : "unproved", optional
        Needed, from an analyst who knows that the claim is not proved in finite samples. A ledger on disk
        takes such a request only if the account's access policy has ``unproved = true``.
    ledger : Ledger or path-like, optional
        Charge an account of this ledger. Default: a ledger for this call alone.
    dataset : str, optional
        Account in the ledger. Default: the only one.
    request_id : str, optional
        Name of the request; asked again under it, the stored answer comes back, free of charge. Default: a
        new request.
    noise : SeededNoise, optional
        Reproducible noise, for tests alone: it protects nobody. Default: noise of the operating system.

    Returns
    -------
    CateAnswers
        Effects at the queries, with a guarantee that says what is true of the claim; without intervals where
        the noise scale depends on the rows.

    Raises
    ------
    CounterveilError
        Before anything is spent: arguments (CV-P), missing acceptance (CV-C001), study (CV-S), data (CV-D),
        ledger (CV-L), budget (CV-B).

    Notes
    -----
    Claims (epsilon, delta)-DP for whole records; refuted. At a claimed epsilon of 1, a random forest at one
    query loses at least 9.24. The noise scale follows the rows and must not be disclosed, so no interval is
    given. Instead: `cv.cate`.

    References
    ----------
    .. [1] Schröder, M., Melnychuk, V. and Feuerriegel, S. (2025). Differentially Private Learners for
       Heterogeneous Treatment Effects. ICLR. arXiv:2503.03486.

    Examples
    --------
    >>> import counterveil as cv
    >>> data = cv.datasets.dataset_1(n=400)
    >>> learners = cv.published.InfluenceSettings(
    ...     outcome="linear", propensity="logistic", starts=2, points=400
    ... )
    >>> answers = cv.published.cate_finite(
    ...     data.frame, data.study, queries={"x1": [0.1, 0.9], "x2": [0.5, 0.2]}, epsilon=1, delta=1e-6,
    ...     settings=learners, accept="unproved", noise=cv.SeededNoise(1),
    ... )
    >>> answers.spent.epsilon >= 1
    True
    """
    return _CATE_FINITE(
        data,
        study,
        queries=queries,
        epsilon=epsilon,
        delta=delta,
        level=level,
        settings=settings,
        accept=accept,
        ledger=ledger,
        dataset=dataset,
        request_id=request_id,
        noise=noise,
    )


def published(
    rows: StageRows,
    nuisances: StageModels,
    points: Floats,
    box: FeatureBox,
    settings: InfluenceSettings,
    factor: float,
) -> tuple[Floats, float]:
    """Return the answers of the second stage fitted to these rows, and the scale of their noise; private numbers.

    `factor` is what the largest influence is multiplied by.
    """
    effect = fitted_effect(rows, nuisances, settings.learner, settings.effect)
    supremum = largest_influence(nuisances, effect, box, settings)
    supremum /= float(np.mean(loss_at(nuisances, settings.learner, rows.x, rows.treated).weight))
    return effect(points), supremum * factor


def release_queries(gate: Gate, effects: Floats, scale: float, box: FeatureBox, rows: int) -> Floats:
    """Return the noisy answers."""
    least, values = box.study.outcome_bounds.width / rows, [Fraction(float(value)) for value in effects]
    found = max(Fraction(scale), least / 2**20)
    return np.array([float(value) for value in release_vector_scaled(gate, "answers", values, found, least)])


# The published scale: the largest influence function of a record, found by many searches and by sampling.
#
# What is maximised is |rho (phi - g)|, over E[lambda] as in the proofs (Lemma 2 and (49)).
# It is linear in the outcome, so that only the two ends of its range count. The search is the published one, L-BFGS-B
# in the box of features, from its centre; that alone finds too little where learners are piecewise constant, so it is
# also started from the best of many random points and corners, which count by themselves.


def largest_influence(
    nuisances: StageModels,
    effect: Function,
    box: FeatureBox,
    search: InfluenceSettings,
) -> float:
    """Return the supremum of |rho (phi - g)| over the box, both treatments and the range of the outcome."""

    def influence(points: Floats) -> Floats:
        fitted, ends, sizes = effect(points), [float(end) for end in box.study.outcome_range], []
        models = nuisances.at(points)
        for treated in (False, True):
            loss = loss_of(models, search.learner, np.full(len(points), treated))
            sizes += [np.abs(loss.rho * (loss.phi(end) - fitted)) for end in ends]
        return np.asarray(np.max(sizes, axis=0), dtype=np.float64)

    drawn = [box.draw(search.points // 2, _SEED, corners) for corners in (False, True)]
    points = np.unique(np.vstack(drawn), axis=0)
    sampled = influence(points)
    best = points[np.argsort(sampled)[::-1][: search.starts // 2]]
    others = box.draw(search.starts - len(best), _SEED + 1)
    single = _climb(influence, np.where(box.free, 0.5, box.draw(1, _SEED)[0]), box.free)
    found = [_climb(influence, start, box.free) for start in (*best, *others)]
    return max([single, float(sampled.max()), *found])


def published_factor(budget: Budget, rows: int) -> float:
    """Return 5 sqrt(2 ln n ln(2/delta)) / (epsilon n), by which the supremum is multiplied."""
    epsilon, delta = float(budget.epsilon), float(budget.delta)
    return 5 * sqrt(2 * log(rows) * log(2 / delta)) / (epsilon * rows)


def _climb(influence: Function, start: Floats, free: NDArray[np.bool_]) -> float:
    """Return the largest value on the way of one search; features that are not free stay."""
    from scipy.optimize import minimize  # loaded by those who need it: it takes a fifth of a second

    places = np.flatnonzero(free)
    best = float(influence(start[None])[0])
    if not len(places):
        return best

    def falling(values: Floats) -> tuple[float, Floats]:
        nonlocal best
        points = np.tile(start, (len(places) + 1, 1))
        points[:, places] = values
        # Forward differences, backward at the upper end, all in one prediction.
        steps = np.where(values + _STEP <= 1, _STEP, -_STEP)
        points[np.arange(1, len(points)), places] += steps
        found = influence(points)
        best = max(best, float(found[0]))
        return -float(found[0]), -(found[1:] - found[0]) / steps

    minimize(
        falling,
        start[places],
        jac=True,
        method="L-BFGS-B",
        bounds=[(0.0, 1.0)] * len(places),
        options={"maxiter": _MOST_STEPS},
    )
    return best
