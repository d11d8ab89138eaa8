"""Settings and studies that the orthogonal private effect refuses."""

import numpy as np
import pytest

import counterveil as cv
from counterveil.errors import ParameterError, StudyError


@pytest.mark.parametrize(
    "matrix", [((1.0, 2.0), (2.0, 1.0)), ((1.0, 0.5),), "no matrix", ((2.0,),), ((10**400,),)]
)
def test_what_is_no_correlation_matrix_is_refused(matrix):
    with pytest.raises(ParameterError, match="CV-P402"):
        cv.settings.DoublyRobust(covariance=matrix)


@pytest.mark.parametrize("sds", [(0.0,), (10**400,), ("wide",), (float("nan"),), (1.0, 1.0), "1", 1.0])
def test_what_is_no_standard_deviation_of_a_feature_is_refused(sds):
    with pytest.raises(ParameterError, match="CV-P") as refused:
        cv.settings.DoublyRobust(covariance=((1.0,),), means=(0.0,), sds=sds)
    assert "sds" in str(refused.value)


def test_covariates_are_needed():
    study = cv.Study("t", "y", (0, 1), control=0)
    frame = {"t": [0, 1] * 50, "y": [0.0, 1.0] * 50}
    with pytest.raises(StudyError, match="needs covariates"):
        cv.ate(frame, study, protects="record", method="doubly_robust", epsilon=1)


def test_too_many_features_are_refused_before_anything_is_read():
    names = [f"x{k}" for k in range(60)]
    rng = np.random.default_rng(0)
    frame = {name: rng.random(100) for name in names} | {"t": [0, 1] * 50, "y": rng.random(100)}
    study = cv.Study("t", "y", (0, 1), dict.fromkeys(names, cv.Range(0, 1)), control=0)
    with pytest.raises(ParameterError, match="CV-P405"):
        cv.ate(
            frame, study, protects="record", method="doubly_robust", estimand="ATO", epsilon=1,
            settings=cv.settings.DoublyRobust(degree=2),
        )  # fmt: skip
