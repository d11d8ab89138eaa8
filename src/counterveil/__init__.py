"""Counterveil: differentially private causal inference."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from counterveil import published
    from counterveil.accounting import Charter, open_ledger
    from counterveil.data import Binary, Categories, Drop, Fill, Range, Study, Table
    from counterveil.errors import CounterveilError
    from counterveil.privacy import Budget, Guarantee
    from counterveil.questions import (
        ArmsResult,
        ArmsSettings,
        AutoSettings,
        BinSettings,
        CateAnswers,
        CateModel,
        CateSettings,
        CrossFitSettings,
        Curator,
        DoublyRobustSettings,
        FoldQuerySettings,
        FoldSettings,
        GroupsResult,
        GroupsSettings,
        IPWSettings,
        MatchingSettings,
        ModelPair,
        Policy,
        PolicyValue,
        PooledResult,
        RandomFeatureSettings,
        RecordMatchingSettings,
        Result,
        ScoreStrataSettings,
        StratifiedSettings,
        TargetingCurve,
        TrialSettings,
        WeightingSettings,
        WeightLimits,
        arms,
        ate,
        cate,
        groups,
        policy_value,
        pool,
        targeting_curve,
    )
    from counterveil.questions.plan import Rehearsal, rehearse
    from counterveil.report import plots
    from counterveil.session import SeededNoise


__version__ = "0.1.0"

# Where each public name lives; loaded on first use so that `import counterveil` stays light.
_HOMES = {
    "ArmsResult": "questions",
    "ArmsSettings": "questions",
    "AutoSettings": "questions",
    "BinSettings": "questions",
    "Binary": "data",
    "Budget": "privacy",
    "CateAnswers": "questions",
    "CateModel": "questions",
    "CateSettings": "questions",
    "Categories": "data",
    "Charter": "accounting",
    "CounterveilError": "errors",
    "CrossFitSettings": "questions",
    "Curator": "questions",
    "DoublyRobustSettings": "questions",
    "Drop": "data",
    "Fill": "data",
    "FoldQuerySettings": "questions",
    "FoldSettings": "questions",
    "GroupsResult": "questions",
    "GroupsSettings": "questions",
    "Guarantee": "privacy",
    "IPWSettings": "questions",
    "MatchingSettings": "questions",
    "ModelPair": "questions",
    "Policy": "questions",
    "PolicyValue": "questions",
    "PooledResult": "questions",
    "Range": "data",
    "RandomFeatureSettings": "questions",
    "RecordMatchingSettings": "questions",
    "Rehearsal": "questions.plan",
    "Result": "questions",
    "ScoreStrataSettings": "questions",
    "SeededNoise": "session",
    "StratifiedSettings": "questions",
    "Study": "data",
    "Table": "data",
    "TargetingCurve": "questions",
    "TrialSettings": "questions",
    "WeightLimits": "questions",
    "WeightingSettings": "questions",
    "arms": "questions",
    "ate": "questions",
    "cate": "questions",
    "groups": "questions",
    "open_ledger": "accounting",
    "plots": "report",
    "policy_value": "questions",
    "pool": "questions",
    "published": "published",
    "rehearse": "questions.plan",
    "targeting_curve": "questions",
}

__all__ = [
    "ArmsResult",
    "ArmsSettings",
    "AutoSettings",
    "BinSettings",
    "Binary",
    "Budget",
    "CateAnswers",
    "CateModel",
    "CateSettings",
    "Categories",
    "Charter",
    "CounterveilError",
    "CrossFitSettings",
    "Curator",
    "DoublyRobustSettings",
    "Drop",
    "Fill",
    "FoldQuerySettings",
    "FoldSettings",
    "GroupsResult",
    "GroupsSettings",
    "Guarantee",
    "IPWSettings",
    "MatchingSettings",
    "ModelPair",
    "Policy",
    "PolicyValue",
    "PooledResult",
    "RandomFeatureSettings",
    "Range",
    "RecordMatchingSettings",
    "Rehearsal",
    "Result",
    "ScoreStrataSettings",
    "SeededNoise",
    "StratifiedSettings",
    "Study",
    "Table",
    "TargetingCurve",
    "TrialSettings",
    "WeightLimits",
    "WeightingSettings",
    "arms",
    "ate",
    "cate",
    "groups",
    "open_ledger",
    "plots",
    "policy_value",
    "pool",
    "published",
    "rehearse",
    "targeting_curve",
]


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        home = import_module(f"counterveil.{_HOMES[name]}")
        return home if _HOMES[name] == name else getattr(home, name)
    raise AttributeError(f"module 'counterveil' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
