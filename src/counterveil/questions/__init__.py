"""The front door: estimators that compute a statistic and release it through the curator."""

from counterveil.published.cate_settings import InfluenceSettings, KernelSettings
from counterveil.questions.arms import arms
from counterveil.questions.ate import method_names, settings_from_text
from counterveil.questions.auto import AutoSettings
from counterveil.questions.cate.cate import cate
from counterveil.questions.curator import Curator, ate
from counterveil.questions.groups.groups import groups
from counterveil.questions.policy.curve import targeting_curve
from counterveil.questions.policy.policy import Policy, stored_policy
from counterveil.questions.policy.value import policy_value
from counterveil.questions.pooled.agreement import WeightLimits
from counterveil.questions.pooled.pool import PooledResult, PooledSite, pool
from counterveil.results.arms import ArmsResult
from counterveil.results.arms_question import ArmsSettings
from counterveil.results.cate_answers import CateAnswers
from counterveil.results.cate_model import CateModel
from counterveil.results.groups import GroupsResult
from counterveil.results.policy import PolicyValue, TargetingCurve
from counterveil.results.result import Result
from counterveil.statistics.folds.clip import FoldSettings
from counterveil.statistics.folds.learners import ModelPair
from counterveil.statistics.folds.queries import BinSettings, FoldQuerySettings
from counterveil.statistics.linear.matching_design import MatchingSettings
from counterveil.statistics.linear.weighting_design import WeightingSettings
from counterveil.statistics.moments.cate_design import CateSettings, RandomFeatureSettings
from counterveil.statistics.moments.cross_fit_models import CrossFitSettings
from counterveil.statistics.moments.doubly_robust_settings import DoublyRobustSettings
from counterveil.statistics.moments.groups_settings import GroupsSettings
from counterveil.statistics.moments.ipw_nuisances import IPWSettings
from counterveil.statistics.moments.record_matching import RecordMatchingSettings
from counterveil.statistics.moments.score_strata import ScoreStrataSettings
from counterveil.statistics.moments.trial import TrialSettings
from counterveil.statistics.strata.data import StratifiedSettings

__all__ = [
    "ArmsResult",
    "ArmsSettings",
    "AutoSettings",
    "BinSettings",
    "CateAnswers",
    "CateModel",
    "CateSettings",
    "CrossFitSettings",
    "Curator",
    "DoublyRobustSettings",
    "FoldQuerySettings",
    "FoldSettings",
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
    "StratifiedSettings",
    "TargetingCurve",
    "TrialSettings",
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
