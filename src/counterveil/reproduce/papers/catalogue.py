"""The papers by their short names; a module is imported when its paper is asked for."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec

from counterveil.errors import MissingExtraError, ParameterError, installing, shown
from counterveil.reproduce.protocol import Paper

# A folder or file of this package each, with its paper as PAPER.
MODULES = {
    "private-matching": "counterveil.reproduce.papers.private_matching",
    "cate": "counterveil.reproduce.papers.cate",
    "dp-cate-designs": "counterveil.reproduce.papers.cate_designs",
    "multi-site": "counterveil.reproduce.papers.multi_site",
    "ipw": "counterveil.reproduce.papers.ipw",
}


def load(name: str) -> Paper:
    """Return the paper of a short name; refuse an unknown name, and an installation that cannot draw."""
    if name not in MODULES:
        raise ParameterError(
            "CV-P810",
            "there is no paper of this name",
            expected=f"one of {', '.join(MODULES)}",
            got=shown(name),
            fix="take a name that `counterveil reproduce --list` shows",
        )
    absent = [library for library in ("pandas", "matplotlib") if find_spec(library) is None]
    if absent:
        raise MissingExtraError(
            "CV-E100",
            "tables and figures of papers need pandas and matplotlib",
            expected="the extras pandas and plots",
            got=f"no module named {absent[0]}",
            fix=installing("pandas,plots"),
        )
    paper: Paper = import_module(MODULES[name]).PAPER
    return paper
