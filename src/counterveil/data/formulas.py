"""Formulas of effects, "outcome ~ treatment | covariates": they choose the columns of a study."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from counterveil.data.wrong_data import nearest
from counterveil.errors import CounterveilError, refusal

_LONGEST = 20_000
_NAME = r"\s*(?:`([^`]+)`|([^`~|+]*[^`~|+\s]))\s*"
_FORMULA = re.compile(rf"{_NAME}~{_NAME}(?:\|(.*))?", re.S)
_TERM = re.compile(rf"{_NAME}(?:\+|$)", re.S)
ALL = "."


@dataclass(frozen=True, slots=True)
class EffectFormula:
    """The names that a formula has; covariates of "." are all there are."""

    outcome: str
    treatment: str
    covariates: tuple[str, ...]

    @classmethod
    def read(cls, text: object, known: Sequence[str]) -> EffectFormula:
        """Return the names in a formula, those of covariates among the known ones, or raise CV-S150."""
        found = _FORMULA.fullmatch(text) if isinstance(text, str) and len(text) <= _LONGEST else None
        if found is None:
            raise _unreadable(text)
        outcome, treatment = (found[1] or found[2], found[3] or found[4])
        names = _terms(found[5], text) if found[5] is not None else []
        if names == [ALL]:
            names = [name for name in known if name not in (outcome, treatment)]
        if len({outcome, treatment, *names}) < 2 + len(names):
            raise _unreadable(text)
        for name in (outcome, *names):
            if name not in known:
                raise refusal("CV-S150b", name=name, fix=nearest(name, known, "the study"))
        return cls(outcome, treatment, tuple(names))


def _terms(part: str, text: object) -> list[str]:
    names, place = [], 0
    while place < len(part):
        found = _TERM.match(part, place)
        if found is None:
            raise _unreadable(text)
        names.append(found[1] or found[2])
        place = found.end()
    if not names or part.rstrip().endswith("+"):
        raise _unreadable(text)
    return names


def _unreadable(text: object) -> CounterveilError:
    return refusal("CV-S150", text=text)
