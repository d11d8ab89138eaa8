"""What the names of columns say of them. Names are public; no row is read."""

from __future__ import annotations

import re
from collections.abc import Iterable
from fnmatch import fnmatchcase

from counterveil.data.person import identifiers
from counterveil.drafting import codebooks

# Why a column is no covariate unless somebody names it.
AFTER = "after treatment"
ALL = "all"
_FOLDED = 2  # so many names are listed one by one
_AFTER = re.compile(
    r"(?:death|dead|died|deceas|mortal|surviv|discharg|follow|post(?!al|code|e|ing|ur)|after|outcome|endpoint|readmi|"
    r"censor|complication|adverse)|(?:dth|fu|fup|los|dsch|disch)$"
)
_DATE = re.compile(
    r"^(?:date|dt|dte|dttm|dob|timestamp|datetime|birthday)$|(?<!up)(?<!candi)(?<!man)date$|dte$"
)
_PRIVATE = re.compile(
    r"^(?:name|(?:e_?)?mail|phone|telephone|address|passport|iban|.*(?:first|last|full|sur)_?name|.*email)$"
)
# Words that say what kind of values a column holds: a guess, which the draft marks as such.
_KINDS = (
    (r"is|has|had|ever|any|flag|yn|indicator", r"_|$", codebooks.BINARY),
    (
        r"age|years?|months?|days?|weeks?|weight|height|bmi|score|count|n|num|number|income|amount|cost|price|rate|pct|"
        r"percent|dose|duration|size|length|pressure|sbp|dbp|glucose|level|hours?|wage|earnings",
        r"_|\d|$",
        codebooks.RANGE,
    ),
    (
        r"sex|gender|site|region|race|ethnicity|type|status|group|category|class|country|state|education|marital|"
        r"occupation|centre|center|clinic|hospital|stratum",
        r"_|$",
        codebooks.CATEGORIES,
    ),
)


def guessed_kind(name: str) -> str | None:
    """Return the kind of values that a name suggests, None where it says nothing."""
    return next(
        (kind for words, end, kind in _KINDS if re.search(rf"(?:^|_)(?:{words})(?:{end})", name, re.I)), None
    )


def suspected(names: Iterable[str]) -> dict[str, str]:
    """Return the columns that look like identifiers, dates or what was measured after treatment, and as which."""
    found = {}
    for name in names:
        # In camel case words are told apart by their capitals.
        words = re.findall(r"[a-z]+", re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower())
        if any(_DATE.search(word) for word in words):
            found[name] = codebooks.DATE
        elif identifiers([name]) or _PRIVATE.search("_".join(words)):
            found[name] = codebooks.IDENTIFIER
        elif any(map(_AFTER.match, words)):
            found[name] = AFTER
    return found


def matching(pattern: str, names: Iterable[str]) -> list[str]:
    """Return the column of this name, else all that fit the pattern: `lab_*`, or "all"."""
    listed = list(names)
    if pattern in listed:
        return [pattern]
    return [name for name in listed if pattern == ALL or fnmatchcase(name, str(pattern))]


def folded(names: Iterable[str]) -> str:
    """Return a list of names in which those that differ by a number at their end stand as a pattern: lab_* (30)."""
    groups: dict[str, list[str]] = {}
    for name in names:
        groups.setdefault(re.sub(r"\d+$", "*", name), []).append(name)
    return ", ".join(
        f"{pattern} ({len(found)})" if len(found) > _FOLDED else ", ".join(found)
        for pattern, found in groups.items()
    )
