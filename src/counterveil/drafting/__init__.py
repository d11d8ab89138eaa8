"""What the holder of data declares: codebooks, drafts of studies, rules for missing values, charters, and checks."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from counterveil.accounting import Charter
from counterveil.data import Drop, Fill
from counterveil.data.checking import Finding
from counterveil.drafting.check import check
from counterveil.drafting.codebooks import Entry, read_codebook
from counterveil.drafting.draft import Draft, draft

if TYPE_CHECKING:
    from counterveil.drafting.buying import buy

__all__ = ["Charter", "Draft", "Drop", "Entry", "Fill", "Finding", "buy", "check", "draft", "read_codebook"]


def __getattr__(name: str) -> Any:
    if name == "buy":  # it loads statistics, which a check does not need
        return import_module("counterveil.drafting.buying").buy
    raise AttributeError(f"module 'counterveil.drafting' has no attribute {name!r}")
