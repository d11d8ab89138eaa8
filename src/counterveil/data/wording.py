"""Suggestions for mistyped names; names of columns are public."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

_LISTED = 12


def nearest(name: object, known: Iterable[object], owner: str) -> str:
    """Return advice on which known name was probably meant."""
    names = [str(candidate) for candidate in known]
    folded = {candidate.casefold(): candidate for candidate in names}
    close = difflib.get_close_matches(str(name).casefold(), folded, n=1, cutoff=0.6)
    if close:
        return f"did you mean {folded[close[0]]!r}?"
    listed = ", ".join(repr(candidate) for candidate in names[:_LISTED])
    more = ", ..." if len(names) > _LISTED else ""
    return f"{owner} has: {listed}{more}" if names else f"{owner} has no columns"
