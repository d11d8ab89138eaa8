"""Counterveil: differentially private causal inference."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from counterveil.accounting import Charter, open_ledger
    from counterveil.curator import SeededNoise
    from counterveil.data import Binary, Categories, Drop, Fill, Range, Study, Table
    from counterveil.errors import CounterveilError
    from counterveil.estimators import (
        ArmsResult,
        ArmsSettings,
        AutoSettings,
        AveragedSettings,
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
        InfluenceSettings,
        IPWSettings,
        KernelSettings,
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
    from counterveil.privacy import Budget, Guarantee
    from counterveil.rehearsal import Rehearsal, rehearse
    from counterveil.report import plots

__version__ = "0.1.0"

# Where each public name lives; loaded on first use so that `import counterveil` stays light.
_HOMES = {
    "ArmsResult": "estimators",
    "ArmsSettings": "estimators",
    "AutoSettings": "estimators",
    "AveragedSettings": "estimators",
    "BinSettings": "estimators",
    "Binary": "data",
    "Budget": "privacy",
    "CateAnswers": "estimators",
    "CateModel": "estimators",
    "CateSettings": "estimators",
    "Categories": "data",
    "Charter": "accounting",
    "CounterveilError": "errors",
    "CrossFitSettings": "estimators",
    "Curator": "estimators",
    "DoublyRobustSettings": "estimators",
    "Drop": "data",
    "Fill": "data",
    "FoldQuerySettings": "estimators",
    "FoldSettings": "estimators",
    "GroupsResult": "estimators",
    "GroupsSettings": "estimators",
    "Guarantee": "privacy",
    "IPWSettings": "estimators",
    "InfluenceSettings": "estimators",
    "KernelSettings": "estimators",
    "MatchingSettings": "estimators",
    "ModelPair": "estimators",
    "Policy": "estimators",
    "PolicyValue": "estimators",
    "PooledResult": "estimators",
    "Range": "data",
    "RandomFeatureSettings": "estimators",
    "RecordMatchingSettings": "estimators",
    "Rehearsal": "rehearsal",
    "Result": "estimators",
    "ScoreStrataSettings": "estimators",
    "SeededNoise": "curator",
    "StratifiedSettings": "estimators",
    "Study": "data",
    "Table": "data",
    "TargetingCurve": "estimators",
    "WeightLimits": "estimators",
    "WeightingSettings": "estimators",
    "arms": "estimators",
    "ate": "estimators",
    "cate": "estimators",
    "groups": "estimators",
    "open_ledger": "accounting",
    "plots": "report",
    "policy_value": "estimators",
    "pool": "estimators",
    "rehearse": "rehearsal",
    "targeting_curve": "estimators",
}

__all__ = [
    "ArmsResult",
    "ArmsSettings",
    "AutoSettings",
    "AveragedSettings",
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
    "InfluenceSettings",
    "KernelSettings",
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
    "rehearse",
    "targeting_curve",
]


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(import_module(f"counterveil.{_HOMES[name]}"), name)
    raise AttributeError(f"module 'counterveil' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
