"""From a file to a study: codebooks, drafts, checks, and private ranges and labels."""

from counterveil.data.findings import Finding
from counterveil.drafting.buying import buy
from counterveil.drafting.check import check
from counterveil.drafting.codebooks import Entry, read_codebook
from counterveil.drafting.draft import Draft, draft

__all__ = ["Draft", "Entry", "Finding", "buy", "check", "draft", "read_codebook"]
