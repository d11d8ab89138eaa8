"""Counterveil: differentially private causal inference."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from counterveil.accounting import open_ledger
    from counterveil.curator import SeededNoise
    from counterveil.data import Binary, Categories, Drop, Fill, Range, Study, Table
    from counterveil.errors import CounterveilError
    from counterveil.estimators import (
        ArmsResult,
        ArmsSettings,
        AveragedSettings,
        Curator,
        DoublyRobustSettings,
        FoldSettings,
        IPWSettings,
        MatchingSettings,
        ModelPair,
        PooledResult,
        RecordMatchingSettings,
        Result,
        ScoreStrataSettings,
        StratifiedSettings,
        WeightingSettings,
        arms,
        ate,
        pool,
    )
    from counterveil.privacy import Budget, Guarantee

__version__ = "0.1.0"

# Where each public name lives; loaded on first use so that `import counterveil` stays light.
_HOMES = {
    "ArmsResult": "estimators",
    "ArmsSettings": "estimators",
    "AveragedSettings": "estimators",
    "Binary": "data",
    "Budget": "privacy",
    "Categories": "data",
    "CounterveilError": "errors",
    "Curator": "estimators",
    "DoublyRobustSettings": "estimators",
    "Drop": "data",
    "Fill": "data",
    "FoldSettings": "estimators",
    "Guarantee": "privacy",
    "IPWSettings": "estimators",
    "MatchingSettings": "estimators",
    "ModelPair": "estimators",
    "PooledResult": "estimators",
    "Range": "data",
    "RecordMatchingSettings": "estimators",
    "Result": "estimators",
    "ScoreStrataSettings": "estimators",
    "SeededNoise": "curator",
    "StratifiedSettings": "estimators",
    "Study": "data",
    "Table": "data",
    "WeightingSettings": "estimators",
    "arms": "estimators",
    "ate": "estimators",
    "open_ledger": "accounting",
    "pool": "estimators",
}

__all__ = [
    "ArmsResult",
    "ArmsSettings",
    "AveragedSettings",
    "Binary",
    "Budget",
    "Categories",
    "CounterveilError",
    "Curator",
    "DoublyRobustSettings",
    "Drop",
    "Fill",
    "FoldSettings",
    "Guarantee",
    "IPWSettings",
    "MatchingSettings",
    "ModelPair",
    "PooledResult",
    "Range",
    "RecordMatchingSettings",
    "Result",
    "ScoreStrataSettings",
    "SeededNoise",
    "StratifiedSettings",
    "Study",
    "Table",
    "WeightingSettings",
    "arms",
    "ate",
    "open_ledger",
    "pool",
]


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(import_module(f"counterveil.{_HOMES[name]}"), name)
    raise AttributeError(f"module 'counterveil' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
