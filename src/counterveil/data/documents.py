"""Studies as documents: plain dictionaries, JSON and TOML."""

from __future__ import annotations

import json
from collections.abc import Mapping
from os import PathLike
from pathlib import Path
from typing import Any

from counterveil.bounded_reading import UnreadableError
from counterveil.bounded_reading import read_toml as read_tables
from counterveil.data.domains import domain_from
from counterveil.data.labels import Drop, Fill, MissingRule
from counterveil.data.outcomes import Before, Per, Several
from counterveil.data.time_to_event import TimeToEvent
from counterveil.data.wrong_data import nearest
from counterveil.errors import CounterveilError, refusal, shown

KNOWN_KEYS = (
    "treatment", "outcome", "outcome_range", "treated", "control", "randomised", "treated_share", "score", "arms",
    "reference", "covariates", "missing", "person", *Before.KEYS, *Per.KEYS, *TimeToEvent.KEYS, *Several.KEYS, "where",
    "others", "estimated", "cluster",
)  # fmt: skip
_LONGEST_PATH = 4096
# What a draft writes where people have to decide.
OPEN = "?"
_OPEN_KEYS = (
    "treatment", "treated", "control", "reference", "outcome", "outcome_range", "horizon", "randomised", "person",
    "covariates",
)  # fmt: skip
# What a study file says beside the study: columns that play no part, for those who read it.
_BESIDE = ("ignored",)


def study_arguments(document: Mapping[str, Any]) -> dict[str, Any]:
    """Return the keyword arguments of `Study` that a document declares, or raise CV-S013."""
    if not isinstance(document, Mapping):
        raise refusal(
            "CV-S013",
            expected="a table of declarations",
            got=type(document).__name__,
            fix="pass a dictionary",
        )
    document = {key: value for key, value in document.items() if key not in _BESIDE}
    left_open = len(open_places(document))
    if left_open:
        raise _open(left_open)
    for key in document:
        if key not in KNOWN_KEYS:
            raise refusal(
                "CV-S013", expected="keys of a study", got=shown(key), fix=nearest(key, KNOWN_KEYS, "a study")
            )
    for key in ("treatment", "outcome"):
        if key not in document and not (key == "outcome" and "outcomes" in document):
            raise refusal("CV-S013", expected=f"the key {key!r}", got="it is missing", fix=f"add {key} = ...")
    tables = ("covariates", "missing", "person", "cluster")
    arguments = {key: value for key, value in document.items() if key not in tables}
    arguments |= _unit_arguments(document)
    covariates = document.get("covariates", {})
    if not isinstance(covariates, Mapping):
        raise refusal(
            "CV-S013",
            expected="a table of covariates",
            got=shown(covariates),
            fix="write a [covariates] table",
        )
    arguments["covariates"] = {name: domain_from(name, value) for name, value in covariates.items()}
    missing = document.get("missing", {})
    if isinstance(missing, Mapping) and "fill" not in missing:
        arguments["missing"] = {name: _rule_from(name, value) for name, value in missing.items()}
    else:
        arguments["missing"] = _rule_from("missing", missing)
    return arguments


def open_places(document: Mapping[str, Any]) -> list[tuple[str, ...]]:
    """Return where a document holds an open question: a key, a key of a table, or a covariate and perhaps its kind."""
    found: list[tuple[str, ...]] = [(key,) for key in _OPEN_KEYS if _says(document.get(key), OPEN)]
    for key in ("person", "outcomes"):
        table = document.get(key)
        told = table.items() if isinstance(table, Mapping) else ()
        found += [(key, str(name)) for name, value in told if _says(value, OPEN)]
    covariates = document.get("covariates")
    for name, value in covariates.items() if isinstance(covariates, Mapping) else ():
        if _says(value, OPEN):
            found.append(("covariates", str(name)))
        elif isinstance(value, Mapping):
            found += [
                ("covariates", str(name), str(kind)) for kind, told in value.items() if _says(told, OPEN)
            ]
    return found


def _says(value: object, word: str) -> bool:
    """Return whether a value is this word; an array, compared with it, has no one truth value."""
    return isinstance(value, str) and value == word


def _open(count: int) -> CounterveilError:
    return refusal("CV-S120", open=OPEN, count=count)


# What the tables [person] and [cluster] of a study file declare, as arguments of `Study`.
_PERSON = {
    "column": "person",
    "rules": "per_person",
    "order": "order",
    "max_rows_per_person": "max_rows_per_person",
}
_CLUSTER = {"column": "cluster", "protected": "protects_cluster", "assigned": "assigned_by_cluster"}
_WHOLE = _CLUSTER | {"rules": "per_cluster", "order": "order", "max_rows_per_person": "max_rows_per_person"}


def _unit_arguments(document: Mapping[str, Any]) -> dict[str, Any]:
    """Return what the tables of people and clusters declare; a bare name is that of the column."""
    found: dict[str, Any] = {}
    for key, expected, example in (
        ("person", f"a table [person] of {', '.join(_PERSON)}", "patient_id"),
        (
            "cluster",
            "a table [cluster] of column, protected, assigned; of rules, order, max_rows_per_person if it is protected",
            "school",
        ),
    ):
        table = document.get(key)
        if table is None:
            continue
        told = {"column": table} if isinstance(table, str) else table
        whole = isinstance(told, Mapping) and told.get("protected") is True
        names = _PERSON if key == "person" else _WHOLE if whole else _CLUSTER
        if not isinstance(told, Mapping) or "column" not in told or not set(told) <= set(names):
            raise refusal(
                "CV-S013", expected=expected, got=shown(table), fix=f'write [{key}] and column = "{example}"'
            )
        found |= {names[each]: value for each, value in told.items()}
    return found


def read_toml(path: str | PathLike[str]) -> dict[str, Any]:
    """Return the contents of a TOML file, or raise CV-S014."""
    try:
        return read_tables(path)
    except UnreadableError as error:
        raise refusal(
            "CV-S014b", name=Path(path).name if isinstance(path, str | PathLike) else path, error=error
        ) from None


def read_study(path: str | PathLike[str]) -> dict[str, Any]:
    """Return the declarations of a study file, or of one of the studies in it where the path ends in #NAME."""
    place, name = _place_and_name(path)
    return named_study(read_toml(place), name)


def named_study(document: Mapping[str, Any], name: str | None) -> dict[str, Any]:
    """Return the declarations of one of the studies of a document, or of its only one, or raise CV-S125."""
    known = _studies(document)
    if name is None and not known:
        return dict(document)
    if name is None and len(known) == 1:
        name = next(iter(known))
    if name not in known:
        listed = ", ".join(map(repr, known)) or "no tables [study.NAME]"
        raise refusal(
            "CV-S125",
            problem="the study file has no study of this name"
            if name is not None
            else "no study of the file was named",
            listed=listed,
            got="no name" if name is None else shown(name),
        )
    return _merged({key: value for key, value in document.items() if key != "study"}, known[name])


def study_names(path: str | PathLike[str]) -> tuple[str, ...]:
    """Return the names of the studies in a file, none where it holds one study without a name."""
    return names_in(read_toml(_place_and_name(path)[0]))


def names_in(document: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the names of the studies of a document, none where it holds one study without a name."""
    return tuple(_studies(document))


def _place_and_name(path: Any) -> tuple[Any, str | None]:
    """Return the file and the name of a study in it; a file whose own name has a # in it comes first."""
    if not isinstance(path, str | PathLike):
        return path, None
    text = str(path)
    place, sign, name = text.rpartition("#")
    if not sign or not place or not name or "\0" in text or len(text) > _LONGEST_PATH or Path(text).exists():
        return path, None
    return place, name


def _studies(document: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    tables = document.get("study", {})
    if not isinstance(tables, Mapping) or not all(isinstance(table, Mapping) for table in tables.values()):
        raise refusal(
            "CV-S013",
            expected="tables [study.NAME]",
            got="another `study`",
            fix="write [study.NAME] above each study",
        )
    return dict(tables)


def _merged(common: dict[str, Any], own: Mapping[str, Any]) -> dict[str, Any]:
    """Return a study's own declarations with those that all studies of the file share; its own come first."""
    found = common | dict(own)
    for key in ("covariates", "missing"):
        both = [table for table in (common.get(key), own.get(key)) if table is not None]
        if len(both) == 2 and all(isinstance(table, Mapping) and "fill" not in table for table in both):
            found[key] = both[0] | both[1]
    # Covariates of the file that a study leaves out.
    left_out = found.pop("without", [])
    if not isinstance(left_out, list) or not all(isinstance(name, str) for name in left_out):
        raise refusal(
            "CV-S013",
            expected="without: a list of covariates",
            got=shown(left_out),
            fix='write without = ["age"]',
        )
    roles = {*left_out}
    for key in ("treatment", "outcome", "before", "per"):
        named = found.get(key)
        roles |= {name for name in (named if isinstance(named, list) else [named]) if isinstance(name, str)}
    for key in ("covariates", "missing"):
        if isinstance(found.get(key), Mapping) and key not in own:
            found[key] = {name: value for name, value in found[key].items() if name not in roles}
    return found


def to_toml(document: Mapping[str, Any]) -> str:
    """Return the TOML text of a dictionary made of scalars, lists and tables of inline tables."""
    scalars = {key: value for key, value in document.items() if not isinstance(value, Mapping)}
    lines = [f"{toml_key(key)} = {toml_value(value)}" for key, value in scalars.items()]
    for key, table in document.items():
        if isinstance(table, Mapping) and table:
            lines += ["", f"[{toml_key(key)}]"]
            lines += [f"{toml_key(name)} = {toml_value(value)}" for name, value in table.items()]
    return "\n".join(lines) + "\n"


def _rule_from(name: str, value: Any) -> MissingRule:
    if _says(value, "drop"):
        return Drop()
    if isinstance(value, Mapping) and set(value) == {"fill"}:
        return Fill(value["fill"])
    raise refusal(
        "CV-S013", expected=f"a rule for {name!r}", got=shown(value), fix='write "drop" or { fill = 0 }'
    )


def toml_key(key: str) -> str:
    """Return a key as TOML writes it."""
    return key if key.isascii() and key.replace("_", "").replace("-", "").isalnum() else toml_value(key)


def toml_value(value: Any) -> str:
    """Return a value as TOML writes it."""
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{toml_key(key)} = {toml_value(item)}" for key, item in value.items()) + " }"
    if isinstance(value, list):
        return "[" + ", ".join(toml_value(item) for item in value) + "]"
    # JSON's texts, numbers and truth values are TOML's, except for the raw DEL character.
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
