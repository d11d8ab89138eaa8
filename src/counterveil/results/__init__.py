"""What was asked and what was answered: questions, results, and how they are stored and read back."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from counterveil.privacy import Guarantee
    from counterveil.privacy.caveats import Caveat
    from counterveil.results.arms import ArmsResult, EventStudyResult, OutcomesResult
    from counterveil.results.confounding import Sensitivity
    from counterveil.results.effect import Effect, StdError
    from counterveil.results.functions import CateAnswers, CateModel
    from counterveil.results.groups import GroupsResult, PolicyValue, RatioResult, TargetingCurve
    from counterveil.results.overlap import OverlapSummary
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
    "ReleasedAnswer",
    "Result",
    "ResultTable",
    "Sensitivity",
    "StdError",
    "SurvivalResult",
    "TargetingCurve",
]

# Where the names live; loaded on first use, since most questions have few kinds of results.
_HOMES = (
    *("privacy", "privacy.caveats", "results.effect", "results.released", "results.result", "results.arms"),
    *("results.functions", "results.groups", "results.regression", "results.survival"),
)


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    homes = (import_module(f"counterveil.{home}") for home in _HOMES)
    return next(getattr(home, name) for home in homes if hasattr(home, name))
