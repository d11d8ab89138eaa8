"""Counterveil: differentially private causal inference."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from counterveil.accounting import open_ledger
    from counterveil.curator import SeededNoise
    from counterveil.data import Binary, Categories, Drop, Fill, Range, Study, Table
    from counterveil.errors import CounterveilError
    from counterveil.estimators import Curator, Result, ate
    from counterveil.privacy import Budget, Guarantee

__version__ = "0.1.0"

# Where each public name lives; loaded on first use so that `import counterveil` stays light.
_HOMES = {
    "Binary": "data",
    "Budget": "privacy",
    "Categories": "data",
    "CounterveilError": "errors",
    "Curator": "estimators",
    "Drop": "data",
    "Fill": "data",
    "Guarantee": "privacy",
    "Range": "data",
    "Result": "estimators",
    "SeededNoise": "curator",
    "Study": "data",
    "Table": "data",
    "ate": "estimators",
    "open_ledger": "accounting",
}

__all__ = [
    "Binary",
    "Budget",
    "Categories",
    "CounterveilError",
    "Curator",
    "Drop",
    "Fill",
    "Guarantee",
    "Range",
    "Result",
    "SeededNoise",
    "Study",
    "Table",
    "ate",
    "open_ledger",
]


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(import_module(f"counterveil.{_HOMES[name]}"), name)
    raise AttributeError(f"module 'counterveil' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
