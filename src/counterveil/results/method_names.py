"""Names that methods have in other packages and papers, for people who look for them here."""

from __future__ import annotations

from collections.abc import Sequence

_ELSEWHERE = {
    "aipw": "doubly_robust",
    "dml": "doubly_robust",
    "dr": "doubly_robust",
    "cross_fitting": "cross_fit",
    "iptw": "ipw",
    "psm": "matching",
    "cem": "stratified",
    "exact_matching": "stratified",
    "dim": "difference_in_means",
}


def called_here(method: object, known: Sequence[str]) -> str:
    """Return what a method of another name is called here, an empty text where it is not among the known ones."""
    found = _ELSEWHERE.get(str(method).lower().replace("-", "_").replace(" ", "_"))
    return f"here it is called {found!r}; " if found in known else ""
