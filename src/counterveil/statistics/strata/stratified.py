"""Exact matching on strata where whole records are private: three ways to bound what one record can do."""

from __future__ import annotations

from counterveil.errors import ParameterError
from counterveil.privacy import Estimand
from counterveil.results.question import Question
from counterveil.results.result import Result
from counterveil.session import Custody
from counterveil.settings import Stratified
from counterveil.statistics.strata.bounded import bounded_effect
from counterveil.statistics.strata.smooth import smooth_effect
from counterveil.statistics.strata.worst_case import global_effect

_FORMS = {"bounded": bounded_effect, "smooth": smooth_effect, "global": global_effect}


def stratified(custody: Custody, question: Question) -> Result:
    """Return the effect by exact matching on strata; settings choose how the noise is bounded."""
    settings = question.settings or Stratified()
    if settings.pairing == "single" and question.estimand is not Estimand.ATE:
        raise ParameterError(
            "CV-P365",
            "one-to-one matching within strata is for the ATE only",
            expected='estimand="ATE" with pairing="single"',
            got=f"estimand={question.estimand.value!r}",
            fix='use pairing="all", the default, which serves every estimand with less noise',
        )
    return _FORMS[settings.sensitivity](custody, question, settings)
