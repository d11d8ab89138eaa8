"""One effect for all, for where rows and budget do not afford effects that differ between people."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from counterveil.curator import Custody
from counterveil.estimators.ate.centred_contrast import centred_contrast
from counterveil.estimators.ate.doubly_robust import adjusts, doubly_robust
from counterveil.estimators.cate.model import CateModel
from counterveil.estimators.cate.question import CateQuestion
from counterveil.estimators.result import Result
from counterveil.inference.bands import pointwise
from counterveil.kernels.bases import constant_basis


def constant_effect(custody: Custody, question: CateQuestion) -> CateModel:
    """Return the private average effect as a function that is the same for everybody.

    It is adjusted for the covariates where public numbers afford that, and compares the arms as they are in a
    declared trial and where nothing else is affordable.
    """
    average = replace(question, settings=None)
    adjusted = custody.study.randomised is not True and adjusts(custody, average)
    result = (doubly_robust if adjusted else centred_contrast)(custody, average)
    return model_of(custody, question, result)


def model_of(custody: Custody, question: CateQuestion, result: Result) -> CateModel:
    """Return a released average effect as a model; its interval is the result's at the asked level."""
    sd = result.uncertainty.half_width(question.level) / pointwise(question.level)
    noise = min(float(result.std_error.noise), sd)
    return CateModel(
        study=custody.study,
        method=result.method,
        basis=constant_basis(),
        weights=np.array([result.estimate]),
        covariance=np.array([[sd**2]]),
        noise_covariance=np.array([[noise**2]]),
        level=question.level,
        guarantee=result.guarantee,
        spent=result.spent,
        releases=result.releases,
        not_covered=("how the effect differs between people", *result.not_covered),
        heterogeneous=False,
        details=result.details,
        interval_of=result.interval_of,
    )
