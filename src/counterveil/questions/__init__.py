"""Questions: `ate`, `cate` and the others, each answered through a curator."""

from counterveil.questions import interim
from counterveil.questions.arms import arms
from counterveil.questions.ate import ate, method_names
from counterveil.questions.cate.cate import cate
from counterveil.questions.curator import Curator
from counterveil.questions.event_study import event_study
from counterveil.questions.groups.groups import groups
from counterveil.questions.moments import moments
from counterveil.questions.outcomes import outcomes
from counterveil.questions.overlap import overlap
from counterveil.questions.policy.policy import Policy, policy_value, stored_policy, targeting_curve
from counterveil.questions.pooled.pool import PooledNeeded, PooledResult, PooledSite, pool
from counterveil.questions.survival import survival
from counterveil.questions.typed_settings import settings_from_text
from counterveil.results.arms import ArmsResult
from counterveil.results.event_study import EventStudyResult
from counterveil.results.functions import CateAnswers, CateModel
from counterveil.results.groups import GroupsResult, PolicyValue, TargetingCurve
from counterveil.results.outcomes import OutcomesResult
from counterveil.results.ratio import RatioResult
from counterveil.results.result import MeasureResult, Result
from counterveil.results.survival import SurvivalResult

__all__ = [
    "ArmsResult",
    "CateAnswers",
    "CateModel",
    "Curator",
    "EventStudyResult",
    "GroupsResult",
    "MeasureResult",
    "OutcomesResult",
    "Policy",
    "PolicyValue",
    "PooledNeeded",
    "PooledResult",
    "PooledSite",
    "RatioResult",
    "Result",
    "SurvivalResult",
    "TargetingCurve",
    "arms",
    "ate",
    "cate",
    "event_study",
    "groups",
    "interim",
    "method_names",
    "moments",
    "outcomes",
    "overlap",
    "policy_value",
    "pool",
    "settings_from_text",
    "stored_policy",
    "survival",
    "targeting_curve",
]
