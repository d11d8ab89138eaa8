"""Which part each column of a file plays, from its name, its type, a codebook and people's answers; no row is read."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from counterveil.data.documents import OPEN
from counterveil.data.domains import Binary, Categories, Range, domain_from
from counterveil.data.labels import number_of
from counterveil.data.person import identifiers
from counterveil.data.sources.dispatch import BOOLEAN, MOMENT, NUMBER, OTHER, TEXT
from counterveil.data.where import Where
from counterveil.data.wrong_data import nearest
from counterveil.drafting import codebooks
from counterveil.drafting.codebooks import Codebook, Entry
from counterveil.errors import CounterveilError, refusal, shown

ANSWERS = (
    "treatment", "treated", "control", "arms", "reference", "outcome", "outcome_range", "randomised", "treated_share",
    "person", "where", "covariates", "ignored",
)  # fmt: skip
# Words in names of columns that say what kind of values they hold; a guess, which the draft marks as such.
_YES_NO = re.compile(r"(?:^|_)(?:is|has|had|ever|any|flag|yn|indicator)(?:_|$)", re.I)
_MEASURE = re.compile(
    r"(?:^|_)(?:age|years?|months?|days?|weeks?|weight|height|bmi|score|count|n|num|number|income|amount|cost|price|"
    r"rate|pct|percent|dose|duration|size|length|pressure|sbp|dbp|glucose|level|hours?|wage|earnings)(?:_|\d|$)",
    re.I,
)
_GROUPING = re.compile(
    r"(?:^|_)(?:sex|gender|site|region|race|ethnicity|type|status|group|category|class|country|state|education|marital|"
    r"occupation|centre|center|clinic|hospital|stratum)(?:_|$)",
    re.I,
)
_TYPES = {
    BOOLEAN: codebooks.BINARY,
    NUMBER: codebooks.RANGE,
    TEXT: codebooks.CATEGORIES,
    MOMENT: codebooks.DATE,
}
_NOT_USED = (codebooks.DATE, codebooks.TEXT, codebooks.IDENTIFIER)


@dataclass(frozen=True, slots=True)
class Placed:
    """One column: the part it plays, what is known of it, and where that comes from."""

    name: str
    role: str
    entry: Entry
    guessed: bool = False  # the kind comes from the column's name


def check_answers(answers: Mapping[str, Any] | None, columns: Mapping[str, Any]) -> dict[str, Any]:
    """Return people's answers, those alone that were given, or raise CV-P721."""
    given = {key: value for key, value in (answers or {}).items() if value is not None}
    for key in given:
        if key not in ANSWERS:
            raise _unusable(f"answers: {', '.join(ANSWERS)}", shown(key), nearest(key, ANSWERS, "a draft"))
    listed: dict[str, list[str]] = {
        key: [given[key]] for key in ("treatment", "outcome", "person") if key in given
    }
    listed |= {key: list(given[key]) for key in ("covariates", "ignored") if key in given}
    seen: dict[str, str] = {}
    for key, names in listed.items():
        for name in names:
            if name not in columns:
                raise _unusable(
                    f"{key}: a column of the data", shown(name), nearest(name, columns, "the data")
                )
            if name in seen:
                raise _unusable(
                    "one role for each column", f"{name!r} as {seen[name]} and {key}", "choose one"
                )
            seen[name] = key
    if "where" in given:
        given["where"] = Where.of(given["where"]).text
    return given


def _unusable(expected: str, got: str, fix: str) -> CounterveilError:
    return refusal("CV-P721c", expected=expected, got=got, fix=fix)


def placed_columns(
    columns: Mapping[str, str | None], codebook: Codebook, answers: Mapping[str, Any]
) -> list[Placed]:
    """Return every column with the part it plays; treatment and outcome are never guessed."""
    roles: dict[str, str] = {
        answers[key]: key for key in ("treatment", "outcome", "person") if key in answers
    }
    for part in ("treatment", "outcome", "person"):
        told = [name for name in columns if name in codebook and codebook[name].role == part]
        if part not in answers and len(told) == 1:
            roles.setdefault(told[0], part)
    roles |= dict.fromkeys(answers.get("ignored", ()), "ignored")
    chosen = answers.get("covariates")
    # A list, or a mapping some of whose domains are not given, names all covariates; other mappings describe some.
    only_these = chosen is not None and (not isinstance(chosen, Mapping) or None in chosen.values())
    people = set(identifiers(columns))
    found = []
    for name, kind in columns.items():
        entry, guessed = _described(name, kind, codebook.get(name))
        role: str | None = roles.get(name)
        if role is None and chosen is not None and (name in chosen or only_these):
            role = "covariate" if name in chosen else "ignored"
        if role is None:
            no_use = entry.kind in _NOT_USED or kind == OTHER or (name in people and not entry.labels)
            role = entry.role if entry.role in ("covariate", "ignored") else None
            role = role or ("ignored" if no_use else "covariate")
        found.append(Placed(name, role, entry, guessed))
    return found


def _described(name: str, kind: str | None, entry: Entry | None) -> tuple[Entry, bool]:
    """Return what is known of a column, its kind by the codebook, else by its type, else guessed by its name."""
    known = Entry() if entry is None else entry
    if known.kind is not None:
        return known, False
    if kind in _TYPES:
        return replace(known, kind=_TYPES[kind]), False
    hints = ((_YES_NO, codebooks.BINARY), (_MEASURE, codebooks.RANGE), (_GROUPING, codebooks.CATEGORIES))
    guess = next((found for pattern, found in hints if pattern.search(name)), None)
    return replace(known, kind=guess), guess is not None


def declared_domain(placed: Placed, answers: Mapping[str, Any]) -> Any:
    """Return what a study file says of a covariate, with an open question where its bounds or labels are not known."""
    chosen = answers.get("covariates")
    if isinstance(chosen, Mapping) and chosen.get(placed.name) is not None:
        return _answered(placed.name, chosen[placed.name])
    entry = placed.entry
    labels = [label for label, _ in entry.labels]
    told: Any = OPEN
    if entry.kind == codebooks.RANGE:
        known = entry.low is not None and entry.high is not None
        told = {"range": [entry.low, entry.high] if known else OPEN}
    elif entry.kind == codebooks.BINARY:
        told = _two_labels(labels)
    elif entry.kind == codebooks.CATEGORIES or labels:
        told = {"categories": labels if len(labels) > 1 else OPEN}
        if entry.other is not None and len(labels) > 1:
            told["other"] = entry.other
    return told if _sound(placed.name, told) else ({next(iter(told)): OPEN} if told != "binary" else OPEN)


def _two_labels(labels: list[Any]) -> Any:
    if not labels or {number_of(label) for label in labels} == {0, 1}:
        return "binary"
    return {"binary": {"one": labels[0], "zero": labels[1]} if len(labels) == 2 else OPEN}


def _sound(name: str, told: Any) -> bool:
    """Whether a study would take this, or leaves it open."""
    if told == OPEN or (
        isinstance(told, Mapping) and OPEN in [value for value in told.values() if value == OPEN]
    ):
        return True
    try:
        domain_from(name, told)
    except CounterveilError:
        return False
    return True


def _answered(name: str, answer: Any) -> Any:
    """Return a domain as a study file declares it, from a domain, two bounds, a list of labels or such a text."""
    if isinstance(answer, Range | Binary | Categories):
        return answer.to_dict()
    if isinstance(answer, tuple) and len(answer) == 2:
        answer = {"range": list(answer)}
    elif isinstance(answer, list | tuple):
        answer = {"categories": list(answer)}
    # In one form, whatever numbers and texts it was given in.
    return domain_from(name, answer).to_dict()
