"""What was asked and what was answered: questions, results, and how they are stored and read back."""

from counterveil.privacy import Guarantee
from counterveil.results.arms import ArmsResult
from counterveil.results.cate_answers import CateAnswers
from counterveil.results.cate_model import CateModel
from counterveil.results.confounding import Sensitivity
from counterveil.results.effect import Effect, StdError
from counterveil.results.event_study import EventStudyResult
from counterveil.results.groups import GroupsResult, PolicyValue, TargetingCurve
from counterveil.results.overlap import OverlapSummary
from counterveil.results.ratio import RatioResult
from counterveil.results.result import Released, Result
from counterveil.results.survival import SurvivalResult

__all__ = [
    "ArmsResult",
    "CateAnswers",
    "CateModel",
    "Effect",
    "EventStudyResult",
    "GroupsResult",
    "Guarantee",
    "OverlapSummary",
    "PolicyValue",
    "RatioResult",
    "Released",
    "Result",
    "Sensitivity",
    "StdError",
    "SurvivalResult",
    "TargetingCurve",
]
