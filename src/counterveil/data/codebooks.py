"""Codebooks, and what names of columns say. No row of data is read.

Known forms: a REDCap data dictionary (CSV), a Table Schema or a Frictionless package (JSON), the labels of an SPSS,
Stata or SAS file (through pyreadstat), and a plain CSV file with the columns of `FIELDS`, which `template` writes.
"""

from __future__ import annotations

import csv
import importlib.util
import io
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from fractions import Fraction
from os import PathLike
from pathlib import Path
from typing import Any

from counterveil.bounded_reading import UnreadableError, checked_path, parse_json, read_text
from counterveil.data.cells import BLANKS
from counterveil.data.domains import Binary, Categories, Domain, Label, Range, number_of, plain_number
from counterveil.data.row_units import identifiers
from counterveil.errors import refusal

RANGE, BINARY, CATEGORIES, DATE, TEXT, IDENTIFIER = (
    "range",
    "binary",
    "categories",
    "date",
    "text",
    "identifier",
)
KINDS = (RANGE, BINARY, CATEGORIES, DATE, TEXT, IDENTIFIER)
ROLES = ("treatment", "outcome", "event", "covariate", "person", "order", "cluster", "ignored")
FIELDS = ("name", "role", "kind", "low", "high", "labels", "unit", "note")
# Words that people write in a spreadsheet for kinds and roles.
_MEANT = {
    "numeric": RANGE, "number": RANGE, "continuous": RANGE, "categorical": CATEGORIES, "boolean": BINARY,
    "yes/no": BINARY, "id": IDENTIFIER,
}  # fmt: skip
_APART = ("|", ";", "\n", "\t", ",", " / ")
_WRITTEN: dict[str | None, str] = {RANGE: "numeric", CATEGORIES: "categorical"}
_MEANT_ROLES = {"ignore": "ignored", "id": "person", "time": "outcome"}
_STATISTICS = {
    ".sav": "read_sav", ".zsav": "read_sav", ".por": "read_por", ".dta": "read_dta", ".xpt": "read_xport",
    ".sas7bdat": "read_sas7bdat",
}  # fmt: skip
ENDINGS = (*_STATISTICS, ".json", ".csv", ".tsv")
_LONGEST, _MOST_ENTRIES, _LONGEST_TITLE = 5_000_000, 20_000, 200


@dataclass(frozen=True, slots=True)
class Entry:
    """What a codebook says of one column; None where it is silent.

    Attributes:
        kind: "range", "binary", "categories", "date", "text" or "identifier".
        low, high: the public bounds of a number. The `high` of a time to an event is its horizon, that of a person is
            the most rows that count.
        labels: the labels of a column with their meanings, "" where they speak for themselves.
        title: what the column is, in words.
        role: the part it plays in the study, where the codebook says so.
        other: the label that stands for all that are not listed; None where there are no others.
    """

    kind: str | None = None
    low: int | float | str | None = None
    high: int | float | str | None = None
    labels: tuple[tuple[Label, str], ...] = ()
    title: str | None = None
    role: str | None = None
    other: Label | None = None

    def domain(self, name: str) -> Domain:
        """Return the domain of the column, or raise CV-S008 where it is left open; a treatment is then 1 and 0."""
        labels = [label for label, _ in self.labels]
        if self.kind == RANGE and self.low is not None and self.high is not None:
            return Range(self.low, self.high, name=repr(name))
        plainly_two = self.role == "treatment" and self.kind is None and not labels
        if plainly_two or (self.kind == BINARY and len(labels) in (0, 2)):
            plain = not labels or {number_of(label) for label in labels} == {0, 1}
            return Binary() if plain else Binary(*labels)
        if self.kind in (BINARY, CATEGORIES) and len(labels) > 1:
            return Categories(labels, self.other)
        raise refusal(
            "CV-S008", what=f"column {name!r}", got="an entry of a codebook without bounds or labels"
        )


Codebook = Mapping[str, Entry]


def read_codebook(path: str | PathLike[str]) -> dict[str, Entry]:
    """Return the entries of a codebook by the names of their columns, or raise CV-S126."""
    try:
        place = checked_path(path)
        ending = place.suffix.lower()
        if ending in _STATISTICS:
            entries = _from_statistics(place, ending)
        elif ending == ".json":
            entries = _from_schema(parse_json(read_text(place, _LONGEST), _LONGEST))
        elif ending in ENDINGS:
            entries = _from_csv(read_text(place, _LONGEST).removeprefix("\ufeff"))
        else:
            raise UnreadableError(f"a file ending in {ending!r}")
        if not entries or len(entries) > _MOST_ENTRIES:
            raise UnreadableError(f"{len(entries)} columns described")
        return {name: _tidied(entry) for name, entry in entries.items()}
    except UnreadableError as error:
        raise refusal("CV-S126", got=str(error)) from None


def _tidied(entry: Entry) -> Entry:
    """Return an entry whose labels make a kind where none was said, and whose title is one short line."""
    kind = entry.kind
    if kind is None and entry.labels:
        kind = CATEGORIES
    if kind is None and (entry.low is not None or entry.high is not None):
        kind = RANGE
    if kind == CATEGORIES and {number_of(label) for label, _ in entry.labels} == {Fraction(0), Fraction(1)}:
        kind = BINARY
    title = None if entry.title is None else " ".join(re.sub(r"<[^>]{0,200}>", " ", entry.title).split())
    return replace(entry, kind=kind, title=title[:_LONGEST_TITLE] if title else None)


def _number(text: object) -> int | float | str | None:
    """Return the exact number in a cell of a codebook, None where there is none."""
    if isinstance(text, bool) or text is None:
        return None
    number = number_of(text if isinstance(text, int | float) else str(text).strip(BLANKS))
    return None if number is None else plain_number(number)


def _label(text: object) -> Label:
    """Return a label as a number where it is written as one: codes of a codebook are numbers in the data."""
    if isinstance(text, bool):
        return int(text)
    number = _number(text)
    return str(text).strip(BLANKS) if number is None or isinstance(number, str) else number


def _from_csv(text: str) -> dict[str, Entry]:
    delimiter = max(",;\t", key=text.partition("\n")[0].count)
    try:
        rows = list(csv.DictReader(io.StringIO(text), delimiter=delimiter, restval="", restkey="beyond"))
    except csv.Error:
        raise UnreadableError("a CSV file that cannot be parsed") from None
    folded = [{_folded(key): value for key, value in row.items()} for row in rows]
    header = set(folded[0]) if folded else set()
    reader = _redcap if {"field_type"} <= header else _plain
    names = ("variable_field_name", "field_name", "name", "variable", "column")
    key = next((name for name in names if name in header), None)
    if key is None:
        raise UnreadableError("a CSV file without a column called name")
    found: dict[str, Entry] = {}
    for row in folded:
        name = _text(row, key)
        if name:
            found |= reader(name, row)
    return found


def _folded(heading: object) -> str:
    return re.sub(r"[^a-z0-9]+", "_", str(heading).lower()).strip("_")


def _text(row: Mapping[str, Any], *keys: str) -> str:
    """Return the first cell that holds something."""
    held = (row.get(key) for key in keys)
    return next((cell.strip() for cell in held if isinstance(cell, str) and cell.strip()), "")


def _plain(name: str, row: Mapping[str, Any]) -> dict[str, Entry]:
    kind, role = _text(row, "kind", "type").lower(), _text(row, "role").lower()
    kind, role = _MEANT.get(kind, kind), _MEANT_ROLES.get(role, role)
    if kind and kind not in KINDS:
        raise UnreadableError(f"kind {kind!r} of {name!r}; known are {', '.join(KINDS)}")
    if role and role not in ROLES:
        raise UnreadableError(f"role {role!r} of {name!r}; known are {', '.join(ROLES)}")
    title, unit = _text(row, "title", "label", "description", "note"), _text(row, "unit")
    title = f"{title} ({unit})" if title and unit else title or unit
    low, high = _number(_text(row, "low", "min", "minimum")), _number(_text(row, "high", "max", "maximum"))
    labels = choices(_text(row, "labels", "values", "categories"))
    return {name: Entry(kind or None, low, high, labels, title or None, role or None)}


def choices(text: str, sign: str = "=", separators: Sequence[str] = _APART) -> tuple[tuple[Label, str], ...]:
    """Return labels and meanings in a text such as "1=yes; 0=no"; the first separator that it holds counts."""
    separator = next((each for each in separators if each in text), separators[0])
    # In a label such as <=5 the sign says something else.
    parts = [re.split(f"(?<![<>!]){sign}", part, maxsplit=1) for part in text.split(separator)]
    return tuple((_label(code), "".join(said).strip()) for code, *said in parts if code.strip())


def template(entries: Codebook) -> str:
    """Return a codebook to fill in a spreadsheet, one line a column, with what is known of it."""
    text = io.StringIO()
    lines = csv.writer(text, lineterminator="\n")
    lines.writerow(FIELDS)
    for name, each in entries.items():
        labels = "; ".join(f"{label}={said}" if said else str(label) for label, said in each.labels)
        known = (
            name,
            each.role,
            _WRITTEN.get(each.kind, each.kind),
            each.low,
            each.high,
            labels,
            None,
            each.title,
        )
        lines.writerow(["" if cell is None else cell for cell in known])
    return text.getvalue()


_CHOICES = "choices_calculations_or_slider_labels", "select_choices_or_calculations"
_VALIDATION = "text_validation_type_or_show_slider_number"


def _redcap(name: str, row: Mapping[str, Any]) -> dict[str, Entry]:
    """Return the columns of one field of a REDCap data dictionary; a checkbox has one for each choice."""
    kind, validation = _text(row, "field_type").lower(), _text(row, _VALIDATION).lower()
    title = _text(row, "field_label") or None
    low, high = _number(_text(row, "text_validation_min")), _number(_text(row, "text_validation_max"))
    listed = choices(_text(row, *_CHOICES), ",", "|;") if kind in ("radio", "dropdown", "checkbox") else ()
    if _text(row, "identifier").lower() in ("y", "yes"):
        return {name: Entry(IDENTIFIER, title=title)}
    if kind == "checkbox":
        names = {f"{name}___{str(code).lower().replace('-', '_')}": said for code, said in listed}
        return {each: Entry(BINARY, title=f"{title}: {said}") for each, said in names.items()}
    if kind in ("yesno", "truefalse"):
        return {name: Entry(BINARY, labels=((1, "yes"), (0, "no")), title=title)}
    if kind == "slider":
        return {name: Entry(RANGE, 0 if low is None else low, 100 if high is None else high, title=title)}
    if kind == "calc" or validation.startswith(("integer", "number")):
        return {name: Entry(RANGE, low, high, title=title)}
    if validation.startswith(("date", "time")):
        return {name: Entry(DATE, title=title)}
    if kind == "descriptive":
        return {}
    return {name: Entry(CATEGORIES if listed else TEXT, labels=listed, title=title)}


def _from_schema(document: Any) -> dict[str, Entry]:
    found: dict[str, Entry] = {}
    for schema in _schemas(document):
        keys = schema.get("primaryKey", [])
        keys = [keys] if isinstance(keys, str) else keys if isinstance(keys, list) else []
        for field in _listed(schema.get("fields")):
            name = field.get("name")
            if isinstance(name, str) and name:
                entry = _field(field)
                found[name] = replace(entry, kind=IDENTIFIER) if keys == [name] else entry
    return found


def _schemas(document: Any) -> Iterator[Mapping[str, Any]]:
    if not isinstance(document, Mapping):
        raise UnreadableError("a JSON file that holds no schema")
    if "fields" in document:
        yield document
    inner = document.get("schema")
    if isinstance(inner, Mapping):
        yield from _schemas(inner)
    for resource in _listed(document.get("resources")):
        yield from _schemas(resource)


def _listed(value: object) -> list[Mapping[str, Any]]:
    return [each for each in value if isinstance(each, Mapping)] if isinstance(value, list) else []


_NUMBERS, _MOMENTS = ("integer", "number", "year"), ("date", "datetime", "time", "yearmonth", "duration")


def _field(field: Mapping[str, Any]) -> Entry:
    limits = field.get("constraints")
    limits = limits if isinstance(limits, Mapping) else {}
    title = next((field[key] for key in ("title", "description") if isinstance(field.get(key), str)), None)
    labels = tuple(_schema_labels(field.get("categories") or limits.get("enum")))
    kind = field.get("type")
    if kind == "boolean":
        return Entry(BINARY, title=title)
    if labels:
        return Entry(CATEGORIES, labels=labels, title=title)
    if kind in _NUMBERS:
        return Entry(RANGE, _number(limits.get("minimum")), _number(limits.get("maximum")), title=title)
    return Entry(DATE if kind in _MOMENTS else CATEGORIES if kind == "string" else None, title=title)


def _schema_labels(listed: object) -> Iterable[tuple[Label, str]]:
    for each in listed if isinstance(listed, list) else ():
        if isinstance(each, Mapping) and isinstance(each.get("value"), str | int | float):
            yield _label(each["value"]), str(each.get("label") or "")
        elif isinstance(each, str | int | float):
            yield _label(each), ""


def _from_statistics(place: Path, ending: str) -> dict[str, Entry]:
    if importlib.util.find_spec("pyreadstat") is None:
        raise refusal("CV-E090")
    import pyreadstat

    if not place.is_file():
        raise UnreadableError("no such file")
    reader: Callable[..., Any] = getattr(pyreadstat, _STATISTICS[ending])
    try:
        _, meta = reader(str(place), metadataonly=True)
    except Exception:
        # The parser's message may quote the file.
        raise UnreadableError(f"not a file of the kind that its ending {ending!r} says") from None
    return {str(name): _variable(str(name), meta) for name in meta.column_names}


def _variable(name: str, meta: Any) -> Entry:
    title = (getattr(meta, "column_names_to_labels", None) or {}).get(name)
    values = (getattr(meta, "variable_value_labels", None) or {}).get(name, {})
    measure = (getattr(meta, "variable_measure", None) or {}).get(name, "unknown")
    kind = str((getattr(meta, "readstat_variable_types", None) or {}).get(name, ""))
    labels = tuple((_label(code), str(said)) for code, said in values.items())
    moment = re.match(r"DATE|TIME|%t|ADATE|EDATE", str((meta.original_variable_types or {}).get(name, "")))
    if moment:
        return Entry(DATE, title=title)
    # A scale with a few labelled values has labels for missing answers, not for all of its values.
    if labels and measure != "scale":
        return Entry(CATEGORIES, labels=labels, title=title)
    return Entry(CATEGORIES if kind == "string" else RANGE, title=title)


# What the names of columns say of them. Names are public; no row is read.


# Why a column is no covariate unless somebody names it.
AFTER = "after treatment"
ALL = "all"
_FOLDED = 2  # so many names are listed one by one
_AFTER = re.compile(
    r"(?:death|dead|died|deceas|mortal|alive|survi|discharg|follow|post(?!al|code|e|ing|ur)|after|outcome|endpoint|readmi|"
    r"censor|complication|adverse)|(?:dth|mort|cens|fu|fup|los|dsch|disch|tte|ttd)$"
)
# What is known only later, as the whole name says it: a usual end of follow-up in days (t3d30, day_90), a time to.
_LATER = re.compile(
    r"(?:^|[^a-z]|(?<=\d))d(?:ays?)?_?(?:28|30|60|90|100|180|360|365)$|"
    r"(?:^|_)(?:time|days|weeks|months|years)_?to(?:_|$)"
)
_DATE = re.compile(
    r"^(?:dt|dte|dttm|dob|timestamp|datetime|birthday)$|^date|(?<!up)(?<!candi)(?<!man)date$|dte$|[a-z]{2}dt$"
)
_PRIVATE = re.compile(
    r"^(?:name|(?:e_?)?mail|phone|telephone|address|passport|iban|.*(?:first|last|full|sur)_?name|.*email)$"
)
# Words that say what kind of values a column holds: a guess, which the draft marks as such.
_KINDS = (
    (r"is|has|had|ever|any|flag|yn|indicator", r"_|$", BINARY),
    (
        r"age|years?|months?|days?|weeks?|weight|height|bmi|score|count|n|num|number|income|amount|cost|price|rate|pct|"
        r"percent|dose|duration|size|length|pressure|sbp|dbp|glucose|level|hours?|wage|earnings",
        r"_|\d|$",
        RANGE,
    ),
    (
        r"sex|gender|site|region|race|ethnicity|type|status|group|category|class|country|state|education|marital|"
        r"occupation|centre|center|clinic|hospital|stratum",
        r"_|$",
        CATEGORIES,
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
            found[name] = DATE
        elif identifiers([name]) or _PRIVATE.search("_".join(words)):
            found[name] = IDENTIFIER
        elif any(map(_AFTER.match, words)) or _LATER.search(name.lower()):
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
