"""What was asked and what was answered: questions, results, and how they are stored and read back.

In: released numbers with the distribution of their noise. Out: estimates, intervals, p-values, tables and
files. No module here reads rows or draws noise: all of it is post-processing, and privacy does not depend on
it.
"""

from counterveil.privacy import Guarantee
from counterveil.privacy.caveats import Caveat
from counterveil.results.arms import ArmsResult, EventStudyResult, OutcomesResult
from counterveil.results.confounding import Sensitivity
from counterveil.results.effect import Effect, StdError
from counterveil.results.functions import CateAnswers, CateModel
from counterveil.results.groups import GroupsResult, PolicyValue, RatioResult, TargetingCurve
from counterveil.results.overlap import OverlapSummary
from counterveil.results.own_release import Release
from counterveil.results.regression import Coefficient, Compliance, Moments, Regression
from counterveil.results.released import Balance, ReleasedAnswer
from counterveil.results.result import MeasureResult, Result, ResultTable
from counterveil.results.survival import QuantilesResult, SurvivalResult

__all__ = [
    "ArmsResult",
    "Balance",
    "CateAnswers",
    "CateModel",
    "Caveat",
    "Coefficient",
    "Compliance",
    "Effect",
    "EventStudyResult",
    "GroupsResult",
    "Guarantee",
    "MeasureResult",
    "Moments",
    "OutcomesResult",
    "OverlapSummary",
    "PolicyValue",
    "QuantilesResult",
    "RatioResult",
    "Regression",
    "Release",
    "ReleasedAnswer",
    "Result",
    "ResultTable",
    "Sensitivity",
    "StdError",
    "SurvivalResult",
    "TargetingCurve",
]
