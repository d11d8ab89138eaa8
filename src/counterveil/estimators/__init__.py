"""The front door: estimators that compute a statistic and release it through the curator."""

from counterveil.estimators.arms.front_door import arms
from counterveil.estimators.arms.result import ArmEffect, ArmEstimate, ArmsResult
from counterveil.estimators.arms.settings import ArmsSettings
from counterveil.estimators.ate.cross_fit_settings import CrossFitSettings
from counterveil.estimators.ate.doubly_robust_settings import DoublyRobustSettings
from counterveil.estimators.ate.fold_learners import ModelPair
from counterveil.estimators.ate.fold_settings import AveragedSettings, FoldSettings
from counterveil.estimators.ate.ipw_settings import IPWSettings
from counterveil.estimators.ate.matching_settings import MatchingSettings
from counterveil.estimators.ate.record_matching_settings import RecordMatchingSettings
from counterveil.estimators.ate.score_strata_weights import ScoreStrataSettings
from counterveil.estimators.ate.stratified_settings import StratifiedSettings
from counterveil.estimators.ate.weighting_settings import WeightingSettings
from counterveil.estimators.cate.answers import CateAnswers
from counterveil.estimators.cate.front_door import cate
from counterveil.estimators.cate.model import CateModel
from counterveil.estimators.cate.paper.settings import InfluenceSettings, KernelSettings
from counterveil.estimators.cate.query_settings import BinSettings, FoldQuerySettings
from counterveil.estimators.cate.settings import CateSettings, RandomFeatureSettings
from counterveil.estimators.choice import AutoSettings
from counterveil.estimators.estimated import StdError
from counterveil.estimators.front_door import Curator, ate
from counterveil.estimators.groups.curve import targeting_curve
from counterveil.estimators.groups.curve_result import TargetingCurve
from counterveil.estimators.groups.front_door import groups
from counterveil.estimators.groups.policy import Policy, stored_policy
from counterveil.estimators.groups.result import GroupEffect, GroupsResult
from counterveil.estimators.groups.settings import GroupsSettings
from counterveil.estimators.groups.value import policy_value
from counterveil.estimators.groups.value_result import PolicyValue
from counterveil.estimators.methods import method_names, settings_from_text
from counterveil.estimators.pooled.front_door import pool
from counterveil.estimators.pooled.result import PooledResult, PooledSite
from counterveil.estimators.pooled.weight_limits import WeightLimits
from counterveil.estimators.result import Result

__all__ = [
    "ArmEffect",
    "ArmEstimate",
    "ArmsResult",
    "ArmsSettings",
    "AutoSettings",
    "AveragedSettings",
    "BinSettings",
    "CateAnswers",
    "CateModel",
    "CateSettings",
    "CrossFitSettings",
    "Curator",
    "DoublyRobustSettings",
    "FoldQuerySettings",
    "FoldSettings",
    "GroupEffect",
    "GroupsResult",
    "GroupsSettings",
    "IPWSettings",
    "InfluenceSettings",
    "KernelSettings",
    "MatchingSettings",
    "ModelPair",
    "Policy",
    "PolicyValue",
    "PooledResult",
    "PooledSite",
    "RandomFeatureSettings",
    "RecordMatchingSettings",
    "Result",
    "ScoreStrataSettings",
    "StdError",
    "StratifiedSettings",
    "TargetingCurve",
    "WeightLimits",
    "WeightingSettings",
    "arms",
    "ate",
    "cate",
    "groups",
    "method_names",
    "policy_value",
    "pool",
    "settings_from_text",
    "stored_policy",
    "targeting_curve",
]
