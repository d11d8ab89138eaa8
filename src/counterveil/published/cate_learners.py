"""Learners by name or in scikit-learn's style, run without a word, and the orthogonal loss made of them."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from counterveil.data import Range, Study, Table
from counterveil.data.features import UnitFeatures
from counterveil.errors import refusal
from counterveil.numerics.arrays import Flags, Floats
from counterveil.numerics.public_choices import public_uniforms
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
class Rows:
    """Rows as the learners see them: features in the unit box, treatments, outcomes."""

    x: Floats
    treated: Flags
    y: Floats

    def __len__(self) -> int:
        return len(self.y)

    def part(self, places: NDArray[np.intp]) -> Rows:
        """Return the rows at these places."""
        return Rows(self.x[places], self.treated[places], self.y[places])


@dataclass(frozen=True, slots=True)
class Nuisances:
    """Fitted functions of the features: the propensity and the expected outcome in each arm."""

    propensity: Function
    control: Function
    treated: Function


def fitted_nuisances(rows: Rows, outcome: object, propensity: object, clip: float) -> Nuisances:
    """Return the nuisances, one outcome model an arm."""
    own = rows.treated
    return Nuisances(
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


def loss_at(nuisances: Nuisances, learner: str, x: Floats, treated: Flags) -> Loss:
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


def fitted_effect(rows: Rows, nuisances: Nuisances, learner: str, second: object) -> Function:
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

    def rows(self, table: Table) -> Rows:
        """Return the table's rows as learners see them."""
        low = float(table.study.outcome_range[0])
        y = low + float(table.outcome_unit) * table.outcome.astype(np.float64)
        return Rows(self.points(table.covariates), table.treated, y)

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
