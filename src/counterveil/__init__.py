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
        Curator,
        MatchingSettings,
        RecordMatchingSettings,
        Result,
        ScoreStrataSettings,
        arms,
        ate,
    )
    from counterveil.privacy import Budget, Guarantee

__version__ = "0.1.0"

# Where each public name lives; loaded on first use so that `import counterveil` stays light.
_HOMES = {
    "ArmsResult": "estimators",
    "ArmsSettings": "estimators",
    "Binary": "data",
    "Budget": "privacy",
    "Categories": "data",
    "CounterveilError": "errors",
    "Curator": "estimators",
    "Drop": "data",
    "Fill": "data",
    "Guarantee": "privacy",
    "MatchingSettings": "estimators",
    "Range": "data",
    "RecordMatchingSettings": "estimators",
    "Result": "estimators",
    "ScoreStrataSettings": "estimators",
    "SeededNoise": "curator",
    "Study": "data",
    "Table": "data",
    "WeightingSettings": "estimators",
    "arms": "estimators",
    "ate": "estimators",
    "open_ledger": "accounting",
}

__all__ = [
    "ArmsResult",
    "ArmsSettings",
    "Binary",
    "Budget",
    "Categories",
    "CounterveilError",
    "Curator",
    "Drop",
    "Fill",
    "Guarantee",
    "MatchingSettings",
    "Range",
    "RecordMatchingSettings",
    "Result",
    "ScoreStrataSettings",
    "SeededNoise",
    "Study",
    "Table",
    "WeightingSettings",
    "arms",
    "ate",
    "open_ledger",
]


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(import_module(f"counterveil.{_HOMES[name]}"), name)
    raise AttributeError(f"module 'counterveil' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
