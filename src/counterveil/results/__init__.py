"""What was asked and what was answered: questions, results, and how they are stored and read back."""

from counterveil.results.arms import ArmEffect, ArmEstimate, ArmsResult
from counterveil.results.cate_answers import CateAnswers
from counterveil.results.cate_model import CateModel
from counterveil.results.curve import TargetingCurve
from counterveil.results.estimated import StdError
from counterveil.results.groups import GroupEffect, GroupsResult
from counterveil.results.policy import PolicyValue
from counterveil.results.result import Result

__all__ = [
    "ArmEffect",
    "ArmEstimate",
    "ArmsResult",
    "CateAnswers",
    "CateModel",
    "GroupEffect",
    "GroupsResult",
    "PolicyValue",
    "Result",
    "StdError",
    "TargetingCurve",
]
