"""The words with which an answer may begin: each method has its own, and a site can say no others.

Every rendering of a pooled result repeats them before any number.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from itertools import product
from typing import Any

from counterveil.federation.messages import Ask
from counterveil.privacy import Unit
from counterveil.results import method_words as said
from counterveil.results.result import Result

# Nothing, or one of a few texts; those of numbers have them as patterns of a format.
_Words = tuple[str | None, ...]
_SILENT: _Words = (None,)
_NUMBER = r"-?[0-9][0-9.e+-]{0,12}"
_LINEAR = [said.linear_in(*more) for more in product((False, True), repeat=2)]
_MODELS: _Words = (
    *(said.OVERLAP_SCORES + linear for linear in _LINEAR),
    *(said.ARM_SCORES + linear + bends for linear in _LINEAR for bends in (said.FOLLOWED, said.UNDETECTED)),
)


def fits(ask: Ask, declaration: Mapping[str, Any], result: Result) -> bool:
    """Return whether a result begins with words that the method can say of the declared study."""
    if result.population is not None:  # a question has no trim
        return False
    allowed = _allowed(ask, declaration)
    return all(
        any(_is(getattr(result, name), word) for word in allowed.get(name, _SILENT))
        for name in ("interval_of", "condition", "assumes")
    )


def _is(text: str | None, word: str | None) -> bool:
    if text is None or word is None:
        return text is word
    parts = re.split(r"\{[^}]*\}", word)
    return re.fullmatch(_NUMBER.join(map(re.escape, parts)), text) is not None


def _allowed(ask: Ask, declaration: Mapping[str, Any]) -> dict[str, _Words]:
    if Unit(ask.protects) is Unit.OUTCOME:
        return {}
    known = _of_records(ask, declaration)
    if ask.method != "auto":
        return known.get(ask.method, {})
    found: dict[str, _Words] = {}
    for words in known.values():
        found = {name: (*_SILENT, *found.get(name, ()), *words.get(name, ())) for name in {*found, *words}}
    return found


def _of_records(ask: Ask, declaration: Mapping[str, Any]) -> dict[str, dict[str, _Words]]:
    """Return what methods for private records say by name: what intervals are for, depend on and assume."""
    is_trial = declaration.get("randomised") is True
    kappa = ask.settings.get("kappa")
    bounded = isinstance(kappa, int | float) and not isinstance(kappa, bool)
    bound = float(kappa or 0.0) if bounded else 0.0
    return {
        "trial": {"interval_of": _SILENT if is_trial else (said.CONFOUNDED,)},
        "doubly_robust": {
            "condition": (None, said.not_adjusted(bound)) if bounded else _SILENT,
            "assumes": _SILENT if is_trial else (None, *_MODELS),
        },
        "fold_aggregation": {"assumes": _SILENT if is_trial else (None, *said.OF_FOLDS.values())},
    }
