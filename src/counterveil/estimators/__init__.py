"""The front door: estimators that compute a statistic and release it through the curator."""

from counterveil.estimators.arms.front_door import arms
from counterveil.estimators.arms.result import ArmEffect, ArmEstimate, ArmsResult
from counterveil.estimators.arms.settings import ArmsSettings
from counterveil.estimators.ate.matching_settings import MatchingSettings
from counterveil.estimators.ate.record_matching_settings import RecordMatchingSettings
from counterveil.estimators.ate.score_strata_weights import ScoreStrataSettings
from counterveil.estimators.ate.weighting_settings import WeightingSettings
from counterveil.estimators.front_door import Curator, ate
from counterveil.estimators.methods import method_names, settings_from_text
from counterveil.estimators.result import Result, StdError

__all__ = [
    "ArmEffect",
    "ArmEstimate",
    "ArmsResult",
    "ArmsSettings",
    "Curator",
    "MatchingSettings",
    "RecordMatchingSettings",
    "Result",
    "ScoreStrataSettings",
    "StdError",
    "WeightingSettings",
    "arms",
    "ate",
    "method_names",
    "settings_from_text",
]
