"""The front door: estimators that compute a statistic and release it through the curator."""

from counterveil.estimators.arms.front_door import arms
from counterveil.estimators.arms.result import ArmEffect, ArmEstimate, ArmsResult
from counterveil.estimators.arms.settings import ArmsSettings
from counterveil.estimators.ate.doubly_robust_settings import DoublyRobustSettings
from counterveil.estimators.ate.fold_learners import ModelPair
from counterveil.estimators.ate.fold_settings import AveragedSettings, FoldSettings
from counterveil.estimators.ate.ipw_settings import IPWSettings
from counterveil.estimators.ate.matching_settings import MatchingSettings
from counterveil.estimators.ate.record_matching_settings import RecordMatchingSettings
from counterveil.estimators.ate.score_strata_weights import ScoreStrataSettings
from counterveil.estimators.ate.stratified_settings import StratifiedSettings
from counterveil.estimators.ate.weighting_settings import WeightingSettings
from counterveil.estimators.front_door import Curator, ate
from counterveil.estimators.methods import method_names, settings_from_text
from counterveil.estimators.pooled.front_door import pool
from counterveil.estimators.pooled.result import PooledResult, PooledSite
from counterveil.estimators.result import Result, StdError

__all__ = [
    "ArmEffect",
    "ArmEstimate",
    "ArmsResult",
    "ArmsSettings",
    "AveragedSettings",
    "Curator",
    "DoublyRobustSettings",
    "FoldSettings",
    "IPWSettings",
    "MatchingSettings",
    "ModelPair",
    "PooledResult",
    "PooledSite",
    "RecordMatchingSettings",
    "Result",
    "ScoreStrataSettings",
    "StdError",
    "StratifiedSettings",
    "WeightingSettings",
    "arms",
    "ate",
    "method_names",
    "pool",
    "settings_from_text",
]
