"""A released function in the clothes of a scikit-learn regressor; needs no scikit-learn itself."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from counterveil.estimators.cate.model import CateModel


class Predictor:
    """Predicts effects; already fitted, so that `fit` reads nothing and returns the same object."""

    _estimator_type = "regressor"

    def __init__(self, model: CateModel) -> None:
        self.model = model
        self.n_features_in_ = len(model.study.covariates)
        self.feature_names_in_ = np.array(list(model.study.covariates), dtype=object)

    def fit(self, X: Any = None, y: Any = None) -> Predictor:  # noqa: ARG002 - nothing is left to fit
        """Return the same object: the function was released before, and rows are never read again."""
        return self

    def predict(self, X: Any) -> NDArray[np.float64]:
        """Return the effect for every row of X."""
        return self.model.effect(X)

    def get_params(self, deep: bool = True) -> dict[str, Any]:  # noqa: ARG002 - the model has no parameters
        """Return what the object was made of."""
        return {"model": self.model}

    def set_params(self, **parameters: Any) -> Predictor:
        """Return the same object with another model."""
        if "model" in parameters:
            self.__init__(parameters["model"])  # type: ignore[misc]
        return self

    def __sklearn_is_fitted__(self) -> bool:
        return True
