"""Formulas of effects, "outcome ~ treatment | covariate + covariate": which column plays which role.

The outcome may be a time to an event, Surv(days, death): its public range ends at the end of follow-up. Names are those
of declared columns. C(site), factor(site) and i(site) are the labels of a declared column. What other packages write in
formulas and this one does not read is refused with the line to write in its place.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from counterveil.data.cells import meant, nearest
from counterveil.errors import CounterveilError, refusal

_LONGEST = 20_000
_NAME = r"\s*(?:`([^`]+)`|([^`~|+]*[^`~|+\s]))\s*"
_WHOLE = re.compile(rf"{_NAME}~{_NAME}(?:\|(.*))?", re.S)
_TERM = re.compile(rf"{_NAME}(?:\+|$)", re.S)
# The reference of labels does not matter to what adjusts for them.
_REFERENCE = r"(?:,\s*(?:Treatment\(.*\)|ref\w*\s*=.*))?"
_LABELS = re.compile(rf"(?:C|i|factor|as\.factor)\(\s*([^(),\s]+)\s*{_REFERENCE}\)")
_TIME = re.compile(r"Surv\(\s*([^(),]+?)\s*,\s*([^(),]+?)\s*\)")
_FUNCTION = re.compile(r"[A-Za-z][\w.]*\(.*\)|.*(?:\^|\*\*).*", re.S)
_ALL = "."
# Names in a line that a message proposes.
_SHOWN = 8


@dataclass(frozen=True, slots=True)
class EffectFormula:
    """The names that a formula has; covariates of "." are all there are, `event` is that of Surv(time, event)."""

    outcome: str
    treatment: str
    covariates: tuple[str, ...]
    event: str | None = None

    @classmethod
    def read(
        cls, text: object, known: Sequence[str], has_labels: Callable[[str], bool], *, ranges: bool
    ) -> EffectFormula:
        """Return the names in a formula, or raise CV-S150.

        Parameters
        ----------
        text : str
            The formula.
        known : sequence of str
            Declared columns; outcome and covariates are to be among them.
        has_labels : callable
            Whether a declared column holds labels, which C() and factor() need.
        ranges : bool
            Whether a mapping of ranges declares the columns, rather than a study.
        """
        found = _WHOLE.fullmatch(text) if isinstance(text, str) and len(text) <= _LONGEST else None
        if found is None:
            raise _unreadable(text)
        timed = None if found[2] in known else _TIME.fullmatch(found[2] or "")
        event = None if timed is None else timed[2]
        outcome = timed[1] if timed else found[1] or _column(found[2], known, found[2], has_labels)
        treatment = found[3] or _column(found[4], known, outcome, None)
        names = (
            _terms(found[5], text, known, (outcome, treatment), has_labels) if found[5] is not None else []
        )
        if names == [_ALL]:
            names = [name for name in known if name not in (outcome, treatment, event)]
        roles = [outcome, treatment, *names, *([] if event is None else [event])]
        if len(set(roles)) < len(roles):
            raise _unreadable(text)
        unknown = [name for name in (outcome, *names) if name not in known]
        for name in unknown:
            if not ranges or meant(
                name, [each for each in known if each not in (outcome, treatment, *names)]
            ):
                raise refusal("CV-S150b", name=name, fix=nearest(name, known, "the study"))
        if unknown:
            lacking = ", ".join(f'"{name}": ...' for name in unknown[:_SHOWN])
            raise refusal("CV-S150r", names=", ".join(map(repr, unknown)), lacking=lacking)
        return cls(outcome, treatment, tuple(names), event)


def without_ranges(text: str, data: object) -> CounterveilError:
    """Return the refusal of a formula that came without a study and without ranges."""
    found = _WHOLE.fullmatch(text) if len(text) <= _LONGEST else None
    names = []
    if found is not None:
        timed = _TIME.fullmatch(found[2] or "")
        names = [timed[1] if timed else found[1] or found[2]]
    if found is not None and found[5] is not None:
        names += [first or second for first, second in _TERM.findall(found[5]) if (first or second) != _ALL]
    plain = [inside[1] if (inside := _LABELS.fullmatch(name)) else name for name in names]
    entries = ", ".join(f'"{name}": (lowest, highest)' for name in plain[:_SHOWN]) or '"y": (lowest, highest)'
    return refusal("CV-S015f", formula=text, entries=entries, kind=type(data).__name__)


def _terms(
    part: str, text: object, known: Sequence[str], roles: tuple[str, str], has_labels: Callable[[str], bool]
) -> list[str]:
    names: list[str] = []
    place = 0
    while place < len(part):
        found = _TERM.match(part, place)
        if found is None:
            raise _unreadable(text)
        plain = found[2]
        if plain == _ALL:
            names.append(_ALL)
        else:
            names.append(found[1] or _column(plain, known, roles[0], has_labels, roles[1]))
        place = found.end()
    if not names or part.rstrip().endswith("+"):
        raise _unreadable(text)
    return names


def _column(
    term: str,
    known: Sequence[str],
    outcome: str,
    has_labels: Callable[[str], bool] | None,
    treatment: str = "",
) -> str:
    """Return the column that a term without backticks names, or raise CV-S150 for what is no column."""
    if term in known:
        return term
    labels = _LABELS.fullmatch(term)
    if labels is not None:
        name = labels[1]
        if has_labels is not None and name in known and not has_labels(name):
            raise refusal("CV-P791", groups="a column that is declared by its labels", name=name)
        return name
    if _FUNCTION.fullmatch(term):
        raise refusal("CV-S150i", term=term)
    sign = next((sign for sign in "*:" if sign in term), None)
    if sign is not None:
        first, second = (part.strip() for part in term.split(sign, 1))
        pair = f"{first}:{second}" if not treatment else f"{treatment}:{second}"
        raise refusal(
            "CV-S150p",
            term=term,
            outcome=outcome,
            second=second,
            pair=pair,
            regressors=pair.replace(":", "*"),
        )
    return term


def _unreadable(text: object) -> CounterveilError:
    """Return CV-S150, with the line to write where it is clear what was meant."""
    if isinstance(text, str) and len(text) <= _LONGEST:
        sides = [side.strip() for side in text.split("~")]
        if len(sides) == 3 and "|" in sides[1] and all(sides):
            terms, _, endogenous = (part.strip() for part in sides[1].rpartition("|"))
            formula = f"{sides[0]} ~ {terms} + [{endogenous} ~ {sides[2]}]"
            return refusal("CV-S150v", text=text, formula=formula)
        if len(sides) == 2 and "|" not in text and "+" in sides[1] and all(sides):
            first, _, rest = (part.strip() for part in sides[1].partition("+"))
            if first and rest:
                return refusal("CV-S150l", text=text, formula=f"{sides[0]} ~ {first} | {rest}")
    return refusal("CV-S150", text=text)
