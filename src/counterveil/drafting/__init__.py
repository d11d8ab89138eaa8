"""What the holder of data declares: codebooks, drafts, rules for missing values, access policies, and checks."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from counterveil.accounting import AccessPolicy
from counterveil.data.checking import Finding
from counterveil.data.codebooks import Entry, read_codebook
from counterveil.drafting.draft import Draft, answers_in, check, draft

if TYPE_CHECKING:
    from counterveil.drafting.estimating import estimate_ranges

__all__ = [
    "AccessPolicy",
    "Draft",
    "Entry",
    "Finding",
    "answers_in",
    "check",
    "draft",
    "estimate_ranges",
    "read_codebook",
]


def __getattr__(name: str) -> Any:
    if name == "estimate_ranges":  # it loads statistics, which a check does not need
        return import_module("counterveil.drafting.estimating").estimate_ranges
    raise AttributeError(f"module 'counterveil.drafting' has no attribute {name!r}")
