"""What the holder of data declares: codebooks, drafts of studies, rules for missing values, charters, and checks."""

from counterveil.accounting import Charter
from counterveil.data import Drop, Fill
from counterveil.data.checking import Finding
from counterveil.drafting.buying import buy
from counterveil.drafting.check import check
from counterveil.drafting.codebooks import Entry, read_codebook
from counterveil.drafting.draft import Draft, draft

__all__ = ["Charter", "Draft", "Drop", "Entry", "Fill", "Finding", "buy", "check", "draft", "read_codebook"]
