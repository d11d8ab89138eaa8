"""The learners of the published experiments by name, or anything in scikit-learn's style, run without a word."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from copy import deepcopy
from typing import Any

import numpy as np
from numpy.typing import NDArray

from counterveil.errors import MissingExtraError, ParameterError
from counterveil.statistics.folds.learners import quietly

Floats = NDArray[np.float64]
Function = Callable[[Floats], Floats]

FOREST, NETWORK, LINEAR = "forest", "network", "linear"
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
        raise MissingExtraError(
            "CV-E050",
            "the learners of the published form need scikit-learn",
            expected="the extra `learners`",
            got="no module called sklearn",
            fix="pip install 'counterveil[learners]', or pass estimators of your own",
        ) from None
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
    raise ParameterError(
        "CV-P561",
        f"this cannot be the learner {name}",
        expected=f"{', '.join(map(repr, known))}, or an object with fit and {method} that can be copied",
        got=f"{name}={learner!r}" if isinstance(learner, str) else f"{name} of type {type(learner).__name__}",
        fix="name one of these, or pass an estimator in scikit-learn's style",
    )
