"""Counterveil: differentially private causal inference."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from counterveil import datasets, drafting, published, results, settings
    from counterveil.accounting import open_ledger
    from counterveil.data import Binary, Categories, Range, Study
    from counterveil.errors import CounterveilError
    from counterveil.privacy import Budget
    from counterveil.questions import (
        Curator,
        Policy,
        arms,
        ate,
        cate,
        event_study,
        groups,
        interim,
        moments,
        outcomes,
        overlap,
        policy_value,
        pool,
        survival,
        targeting_curve,
    )
    from counterveil.questions.plan import plan
    from counterveil.report import plots
    from counterveil.session import SeededNoise


__version__ = "0.1.0"

# Where each public name lives, itself for a module; loaded on first use so that `import counterveil` stays light.
_HOMES = {
    "Binary": "data",
    "Budget": "privacy",
    "Categories": "data",
    "CounterveilError": "errors",
    "Curator": "questions",
    "Policy": "questions",
    "Range": "data",
    "SeededNoise": "session",
    "Study": "data",
    "arms": "questions",
    "ate": "questions",
    "cate": "questions",
    "datasets": "datasets",
    "drafting": "drafting",
    "event_study": "questions",
    "groups": "questions",
    "interim": "questions",
    "moments": "questions",
    "open_ledger": "accounting",
    "outcomes": "questions",
    "overlap": "questions",
    "plan": "questions.plan",
    "plots": "report",
    "policy_value": "questions",
    "pool": "questions",
    "published": "published",
    "results": "results",
    "settings": "settings",
    "survival": "questions",
    "targeting_curve": "questions",
}

__all__ = [
    "Binary",
    "Budget",
    "Categories",
    "CounterveilError",
    "Curator",
    "Policy",
    "Range",
    "SeededNoise",
    "Study",
    "arms",
    "ate",
    "cate",
    "datasets",
    "drafting",
    "event_study",
    "groups",
    "interim",
    "moments",
    "open_ledger",
    "outcomes",
    "overlap",
    "plan",
    "plots",
    "policy_value",
    "pool",
    "published",
    "results",
    "settings",
    "survival",
    "targeting_curve",
]


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        home = import_module(f"counterveil.{_HOMES[name]}")
        return home if _HOMES[name] == name else getattr(home, name)
    raise AttributeError(f"module 'counterveil' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
