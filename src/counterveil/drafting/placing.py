"""Which part each column of a file plays, from its name, its type, a codebook and people's answers; no row is read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from counterveil.data.documents import OPEN
from counterveil.data.domains import Binary, Categories, Range, domain_from
from counterveil.data.labels import number_of
from counterveil.data.sources.dispatch import BOOLEAN, MOMENT, NUMBER, OTHER, TEXT
from counterveil.data.where import Where
from counterveil.data.wrong_data import nearest
from counterveil.drafting import codebooks, names
from counterveil.drafting.codebooks import Codebook, Entry
from counterveil.errors import CounterveilError, refusal, shown

ANSWERS = (
    "treatment", "treated", "control", "others", "arms", "reference", "outcome", "outcomes", "outcome_range", "event",
    "horizon", "grid", "randomised", "treated_share", "score", "person", "cluster", "where", "covariates", "columns",
    "ignored", "missing", "estimated",
)  # fmt: skip
# Answers that name several columns, and the part that these play; ignored ones first, so that patterns pass them by.
_SEVERAL = {"ignored": "ignored", "outcomes": "outcome", "covariates": "covariate"}
_TYPES = {
    BOOLEAN: codebooks.BINARY,
    NUMBER: codebooks.RANGE,
    TEXT: codebooks.CATEGORIES,
    MOMENT: codebooks.DATE,
}
_NOT_USED = (codebooks.DATE, codebooks.TEXT, codebooks.IDENTIFIER)
_ZERO_ONE = {"one": 1, "zero": 0}
# A column that could be a covariate, while nobody has chosen any.
CANDIDATE = "candidate"


@dataclass(frozen=True, slots=True)
class Placed:
    """One column: the part it plays, what is known of it, and where that comes from."""

    name: str
    role: str
    entry: Entry
    guessed: bool = False  # the kind comes from the column's name
    told: Any = None  # the domain as people said it, as a study file writes it
    aside: str | None = None  # why it is no covariate unless somebody names it


def check_answers(answers: Mapping[str, Any] | None, columns: Mapping[str, Any]) -> dict[str, Any]:
    """Return people's answers in one form, those alone that were given, or raise CV-P721.

    Names of several columns become lists, and what was said of single columns goes to `columns`.
    """
    given = {key: value for key, value in (answers or {}).items() if value is not None}
    for key in given:
        if key not in ANSWERS:
            raise _unusable(f"answers: {', '.join(ANSWERS)}", shown(key), nearest(key, ANSWERS, "a draft"))
    described = dict(given.pop("columns", {}))
    if "outcome" in given:
        given["outcomes"] = given.pop("outcome")
    for key in _SEVERAL:
        if isinstance(given.get(key), Mapping):
            described |= {name: told for name, told in given[key].items() if told is not None}
        if key in given:
            given[key] = list(given[key]) if isinstance(given[key], list | tuple | Mapping) else [given[key]]
    seen: dict[str, str] = {}
    listed = [(key, name) for key in _SEVERAL for name in given.get(key, ())]
    for key, name in (*_named(given), *listed):
        if name not in columns and (key not in _SEVERAL or not names.matching(name, columns)):
            raise _unusable(f"{key}: a column of the data", shown(name), nearest(name, columns, "the data"))
        if name in columns and name in seen:
            raise _unusable("one role for each column", f"{name!r} as {seen[name]} and {key}", "choose one")
        seen[name] = key
    for pattern in described:
        if not names.matching(pattern, columns):
            raise _unusable("columns of the data", shown(pattern), nearest(pattern, columns, "the data"))
    if described:
        given["columns"] = described
    if "where" in given:
        given["where"] = Where.of(given["where"]).text
    return given


def _named(given: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield the roles that one column plays, and its name."""
    for key in ("treatment", "event", "person", "cluster"):
        told = given.get(key)
        if isinstance(told, Mapping):
            yield from ((part, told[part]) for part in ("order",) if told.get(part) is not None)
            told = told.get("column")
        if told is not None:
            yield key, told


def _unusable(expected: str, got: str, fix: str) -> CounterveilError:
    return refusal("CV-P721c", expected=expected, got=got, fix=fix)


def placed_columns(
    columns: Mapping[str, str | None], codebook: Codebook, answers: Mapping[str, Any]
) -> list[Placed]:
    """Return every column with the part it plays; treatment, outcome and covariates are never guessed."""
    described = {
        name: told
        for pattern, told in answers.get("columns", {}).items()
        for name in names.matching(pattern, columns)
    }
    suspected = names.suspected(columns)
    found = []
    for name, kind in columns.items():
        told = None if described.get(name) is None else _answered(name, described[name])
        entry, guessed = _described(name, kind, codebook.get(name), told)
        aside = (
            entry.kind
            if entry.kind in _NOT_USED
            else codebooks.TEXT
            if kind == OTHER
            else suspected.get(name)
        )
        if aside == codebooks.IDENTIFIER != entry.kind and entry.labels:
            aside = None
        found.append(Placed(name, CANDIDATE, entry, guessed, None if is_open(told) else told, aside))
    roles = _roles({each.name: each.aside for each in found}, codebook, answers)
    chosen = "covariates" in answers or any(
        entry.role not in (None, "ignored") for name, entry in codebook.items() if name in columns
    )
    rest = "ignored" if chosen else CANDIDATE
    return [replace(each, role=roles.get(each.name, "ignored" if each.aside else rest)) for each in found]


def _roles(aside: Mapping[str, str | None], codebook: Codebook, answers: Mapping[str, Any]) -> dict[str, str]:
    """Return the parts that answers give to columns, by name before pattern, then those that the codebook gives."""
    roles = {name: role for role, name in _named(answers)}
    for by_name in (True, False):
        for key, role in _SEVERAL.items():
            for pattern in answers.get(key, ()):
                if (pattern in aside) == by_name:
                    fit = names.matching(pattern, aside)
                    # A pattern chooses no column that was set aside, but an outcome is measured after treatment.
                    use = (None, names.AFTER) if role == "outcome" else (None,) if role == "covariate" else ()
                    roles = {
                        name: role
                        for name in fit
                        if by_name
                        or ((not use or aside[name] in use) and _role_in(codebook, name) in (None, role))
                    } | roles
    for role in codebooks.ROLES:
        told = [name for name in aside if _role_in(codebook, name) == role]
        alone = role not in ("outcome", "covariate", "ignored")
        if role in ("covariate", "ignored") or (role not in roles.values() and not (alone and len(told) > 1)):
            roles = dict.fromkeys(told, role) | roles
    return roles


def _role_in(codebook: Codebook, name: str) -> str | None:
    return codebook[name].role if name in codebook else None


def _described(name: str, kind: str | None, entry: Entry | None, told: Any) -> tuple[Entry, bool]:
    """Return what is known of a column by answers, the codebook and its type; else its kind is guessed by its name."""
    known = Entry() if entry is None else entry
    if told is not None and told != OPEN:
        known = _told_entry(known, told)
    if known.kind is not None:
        return known, False
    if kind in _TYPES:
        return replace(known, kind=_TYPES[kind]), False
    guess = names.guessed_kind(name)
    return replace(known, kind=guess), guess is not None


def _told_entry(known: Entry, told: Any) -> Entry:
    """Return an entry with what people said of the column; of an open answer its kind, where there was none."""
    told = {told: _ZERO_ONE} if isinstance(told, str) else told
    kind = next(iter(told))
    if is_open(told):
        return known if known.kind is not None else replace(known, kind=kind)
    if kind == codebooks.RANGE:
        low, high = told[kind]
        return replace(known, kind=kind, low=low, high=high, labels=())
    labels = told[kind].values() if kind == codebooks.BINARY else told[kind]
    meanings = dict(known.labels)
    return replace(known, kind=kind, labels=tuple((label, meanings.get(label, "")) for label in labels))


def is_open(told: Any) -> bool:
    """Whether something is left open in what a study file says of a column."""
    values = list(told.values()) if isinstance(told, Mapping) else [told]
    return any(isinstance(value, str) and value == OPEN for value in values)


def declared_domain(placed: Placed) -> Any:
    """Return what a study file says of a covariate, with an open question where its bounds or labels are not known."""
    if placed.told is not None:
        return placed.told
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
    if is_open(told):
        return True
    try:
        domain_from(name, told)
    except CounterveilError:
        return False
    return True


def _answered(name: str, answer: Any) -> Any:
    """Return a domain as a study file declares it, from a domain, two bounds, a list of labels or such a text."""
    if is_open(answer):
        return answer
    if isinstance(answer, Range | Binary | Categories):
        return answer.to_dict()
    if isinstance(answer, tuple) and len(answer) == 2:
        answer = {"range": list(answer)}
    elif isinstance(answer, list | tuple):
        answer = {"categories": list(answer)}
    # In one form, whatever numbers and texts it was given in.
    told = domain_from(name, answer).to_dict()
    return "binary" if told == {"binary": _ZERO_ONE} else told
