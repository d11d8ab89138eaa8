"""The papers by their short names; a module is imported when its paper is asked for."""

from __future__ import annotations

from importlib import import_module

from counterveil.errors import refusal
from counterveil_lab.reproduce.page import Paper

# A folder or file of this package each, with its paper as PAPER.
MODULES = {
    "private-matching": "counterveil_lab.reproduce.papers.private_matching",
    "cate": "counterveil_lab.reproduce.papers.cate",
    "dp-cate-designs": "counterveil_lab.reproduce.papers.cate_designs",
    "multi-site": "counterveil_lab.reproduce.papers.multi_site",
    "ipw": "counterveil_lab.reproduce.papers.ipw",
}


def load(name: str) -> Paper:
    """Return the paper of a short name; refuse an unknown name."""
    if name not in MODULES:
        raise refusal("CV-P810", modules=", ".join(MODULES), name=name)
    paper: Paper = import_module(MODULES[name]).PAPER
    return paper
