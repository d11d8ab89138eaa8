"""Study files: how a study is written as a dictionary, JSON or TOML, and read back.

Every part of a study has a key: `treatment`, `outcome`, `covariates`, `assignment`, `people`, `clusters`, `missing`,
`where`, `estimated`. There is one way to write each study, in which what holds by default is left out: a treatment,
people or clusters of which only the column is declared are its name, all others a table. One file may hold several
studies, in tables [study.NAME]; what stands above them holds for all.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import MISSING, fields
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

from counterveil.bounded_reading import UnreadableError
from counterveil.bounded_reading import read_toml as read_tables
from counterveil.data.assignment import Assignment, Observational, Propensity, Trial
from counterveil.data.cells import nearest
from counterveil.data.domains import Drop, Fill, MissingRule, domain_from, plain_ends, plain_number
from counterveil.data.follow_up import TimeToEvent
from counterveil.data.outcomes import Change, Outcome, OutcomePart, Outcomes, Ratio
from counterveil.data.row_units import Clusters, People
from counterveil.data.treatment import TREATED, Treatment
from counterveil.errors import CounterveilError, refusal, shown

if TYPE_CHECKING:
    from counterveil.data.study import Study

KNOWN_KEYS = (
    "treatment", "outcome", "covariates", "assignment", "people", "clusters", "missing", "where", "estimated",
)  # fmt: skip
# What a study file says beside the study: columns that play no part, for those who read it.
BESIDE = ("ignored",)
# What a draft writes where people have to decide.
OPEN = "?"
TRIAL, OBSERVATIONAL = "trial", "observational"
_LONGEST_PATH = 4096
_OUTCOMES: tuple[type[OutcomePart], ...] = (Outcome, Change, Ratio, TimeToEvent, Outcomes)
# Keys of which one alone says which outcome a table declares.
_TOLD_BY = {
    "event": TimeToEvent,
    "ranges": Outcomes,
    "numerator": Ratio,
    "denominator": Ratio,
    "before": Change,
}
_OUTCOME_KEYS = tuple(dict.fromkeys(each.name for part in _OUTCOMES for each in fields(part)))
# Tables whose tables have headings of their own, since they may hold many lines.
_DEEP = {"outcome": ("ranges", "baseline")}
# Keys that are no key of a study, and what to write.
_TWO_ARMS = '[treatment] with column = "arm", treated = "new", control = "old"'
_ARMS = '[treatment] with column = "arm", arms = ["a", "b", "c"], reference = "a"'
_CHANGE = '[outcome] with column = "score", range = [0, 10], before = "score_before"'
_RATIO = '[outcome] with numerator = "clicks", range = [0, 9], denominator = "sessions", denominator_range = [1, 5]'
_EVENT = '[outcome] with time = "days", event = "died", horizon = 365'
_ROWS = '[people] with column = "patient_id", order = "visit", max_rows = 5'
_WRITTEN = {
    **dict.fromkeys(("treated", "control", "others"), _TWO_ARMS),
    **dict.fromkeys(("arms", "reference"), _ARMS),
    "outcome_range": '[outcome] with column = "score", range = [0, 10]',
    **dict.fromkeys(("before", "before_range", "change_range", "time", "after"), _CHANGE),
    **dict.fromkeys(("denominator", "denominator_range"), _RATIO),
    **dict.fromkeys(("event", "horizon", "grid", "causes"), _EVENT),
    **dict.fromkeys(("outcomes", "baseline"), "[outcome.ranges] with visits = [0, 30], spend = [0, 500]"),
    **dict.fromkeys(("randomised", "randomized"), 'assignment = "trial" or "observational"'),
    "treated_share": "assignment = { share = 0.5 }",
    "score": 'assignment = { propensity = "score" }',
    **dict.fromkeys(("person", "per_person"), 'people = "patient_id"'),
    **dict.fromkeys(("order", "max_rows_per_person"), _ROWS),
    **dict.fromkeys(
        ("cluster", "protects_cluster", "assigned_by_cluster", "per_cluster"), 'clusters = "school"'
    ),
}


def study_arguments(document: Mapping[str, Any]) -> dict[str, Any]:
    """Return the keyword arguments of `Study` that a document declares, or raise CV-S013."""
    if not isinstance(document, Mapping):
        raise invalid("a table of declarations", type(document).__name__, "pass a dictionary")
    document = {key: value for key, value in document.items() if key not in BESIDE}
    left_open = len(open_places(document))
    if left_open:
        raise refusal("CV-S120", open=OPEN, count=left_open)
    for key in document:
        if key not in KNOWN_KEYS and key in _WRITTEN:
            raise invalid("keys of a study", shown(key), f"write {_WRITTEN[key]}")
        if key not in KNOWN_KEYS:
            raise invalid("keys of a study", shown(key), nearest(key, KNOWN_KEYS, "a study"))
    for key, line in (("treatment", 'treatment = "COLUMN"'), ("outcome", "an [outcome] table")):
        if key not in document:
            raise invalid(f"the key {key!r}", "it is missing", f"add {line}")
    arguments: dict[str, Any] = {key: document[key] for key in ("where", "estimated") if key in document}
    arguments["treatment"] = _treatment_from(document["treatment"])
    arguments["outcome"] = _outcome_from(document["outcome"])
    arguments["assignment"] = _assignment_from(document.get("assignment"))
    arguments["people"] = _part_from("people", document.get("people"), People, "patient_id")
    arguments["clusters"] = _part_from("clusters", document.get("clusters"), Clusters, "school")
    covariates = document.get("covariates", {})
    if not isinstance(covariates, Mapping):
        raise invalid("a table of covariates", shown(covariates), "write a [covariates] table")
    arguments["covariates"] = {name: domain_from(name, value) for name, value in covariates.items()}
    missing = document.get("missing", {})
    if isinstance(missing, Mapping) and "fill" not in missing:
        arguments["missing"] = {name: _rule_from(name, value) for name, value in missing.items()}
    else:
        arguments["missing"] = _rule_from("missing", missing)
    return arguments


def _treatment_from(told: object) -> Treatment:
    if isinstance(told, Mapping) and isinstance(told.get("arms"), Mapping):
        told = {**told, "arms": domain_from("arms", told["arms"])}
    part: Treatment | None = _part_from("treatment", told, Treatment, "treated")
    if part is None:
        raise invalid("the column of the treatment", shown(told), 'write treatment = "treated"')
    return part


def _part_from(key: str, told: object, part: type[Any], example: str) -> Any:
    """Return a part that is declared as a table, or as the name of its column; None where nothing is."""
    if told is None:
        return None
    if not isinstance(told, Mapping):
        return part(told)
    names = tuple(each.name for each in fields(part))
    _check_keys(key, told, names)
    if "column" not in told:
        raise invalid(
            f"a table [{key}] with a column", shown(told), f'write [{key}] and column = "{example}"'
        )
    return part(**told)


def _outcome_from(told: object) -> OutcomePart:
    if isinstance(told, str):
        raise refusal("CV-S170b", name=told)
    if not isinstance(told, Mapping):
        raise invalid(
            "a table [outcome]", shown(told), 'write [outcome] with column = "score", range = [0, 10]'
        )
    _check_keys("outcome", told, _OUTCOME_KEYS)
    changes = ("before_range", "change_range", "time", "after")
    part: type[Any] = next((part for key, part in _TOLD_BY.items() if key in told), Outcome)
    if part is Outcome and any(key in told for key in changes):
        part = Change
    names = tuple(each.name for each in fields(part))
    _check_keys("outcome", told, names)
    lacking = [each.name for each in fields(part) if each.default is MISSING and each.name not in told]
    if lacking == ["range"]:
        raise refusal("CV-S170b", name=told.get("column", told.get("numerator")))
    if lacking:
        raise invalid(f"{lacking[0]} in the table [outcome]", "it is missing", f"add {lacking[0]} = ...")
    return part(**told)  # type: ignore[no-any-return]


def _check_keys(key: str, told: Mapping[Any, Any], names: tuple[str, ...]) -> None:
    for name in told:
        if name not in names:
            raise invalid(
                f"keys of [{key}]: {', '.join(names)}", shown(name), nearest(name, names, f"[{key}]")
            )


def _assignment_from(told: object) -> Assignment | None:
    if told is None:
        return None
    if _says(told, TRIAL):
        return Trial()
    if _says(told, OBSERVATIONAL):
        return Observational()
    if isinstance(told, Mapping) and set(told) == {"share"}:
        return Trial(told["share"])
    if isinstance(told, Mapping) and set(told) == {"propensity"}:
        return Propensity(told["propensity"])
    expected = f'"{TRIAL}", "{OBSERVATIONAL}", {{ share = 0.5 }} or {{ propensity = "COLUMN" }}'
    raise invalid(expected, shown(told), f'write assignment = "{TRIAL}" or "{OBSERVATIONAL}"')


def _rule_from(name: str, value: Any) -> MissingRule:
    if _says(value, "drop"):
        return Drop()
    if isinstance(value, Mapping) and set(value) == {"fill"}:
        return Fill(value["fill"])
    raise invalid(f"a rule for {name!r}", shown(value), 'write "drop" or { fill = 0 }')


def open_places(document: Mapping[str, Any]) -> list[tuple[str, ...]]:
    """Return where a document holds an open question: a key, a key of a table, or a covariate and perhaps its kind."""
    found: list[tuple[str, ...]] = []
    for key in KNOWN_KEYS:
        if _says(document.get(key), OPEN):
            found.append((key,))
        elif key in ("treatment", "outcome", "assignment", "people", "clusters"):
            found += [(key, *place) for place in _open_in(document.get(key))]
    covariates = document.get("covariates")
    for name, value in covariates.items() if isinstance(covariates, Mapping) else ():
        if _says(value, OPEN):
            found.append(("covariates", str(name)))
        elif isinstance(value, Mapping):
            found += [
                ("covariates", str(name), str(kind)) for kind, told in value.items() if _says(told, OPEN)
            ]
    return found


def _open_in(told: object) -> list[tuple[str, ...]]:
    """Return where a table, or a table in it, holds an open question."""
    found: list[tuple[str, ...]] = []
    for name, value in told.items() if isinstance(told, Mapping) else ():
        if _says(value, OPEN):
            found.append((str(name),))
        elif isinstance(value, Mapping):
            found += [(str(name), str(each)) for each, inner in value.items() if _says(inner, OPEN)]
    return found


def _says(value: object, word: str) -> bool:
    """Return whether a value is this word; an array, compared with it, has no one truth value."""
    return isinstance(value, str) and value == word


def is_trial(document: Mapping[str, Any]) -> bool:
    """Return whether a document declares a randomised trial."""
    told = document.get("assignment")
    return _says(told, TRIAL) or (isinstance(told, Mapping) and "share" in told)


def propensity_of(document: Mapping[str, Any]) -> Any:
    """Return the column of the known propensity that a document declares, None where it declares none."""
    told = document.get("assignment")
    return told.get("propensity") if isinstance(told, Mapping) else None


def column_of(told: object, *names: str) -> str | None:
    """Return the column that a part of a document declares by its name, or in a table under one of these keys."""
    if isinstance(told, Mapping):
        told = next((told[name] for name in (names or ("column",)) if name in told), None)
    return told if isinstance(told, str) and told != OPEN else None


def outcome_columns(told: object) -> tuple[str, ...]:
    """Return the columns that the outcome of a document is made of, as far as it names them."""
    if not isinstance(told, Mapping):
        return ()
    found: list[object] = [told.get(key) for key in ("column", "numerator", "denominator", "event")]
    if "event" in told:
        found.append(told.get("time"))
    before = told.get("before")
    if "time" not in told:
        found += before if isinstance(before, list | tuple) else [before]
    for key in ("ranges", "baseline"):
        table = told.get(key)
        found += [*(table if key == "ranges" else table.values())] if isinstance(table, Mapping) else []
    return tuple(name for name in found if isinstance(name, str) and name != OPEN)


def study_document(study: Study) -> dict[str, Any]:
    """Return the declarations of a study, leaving out what was not declared and what holds by default."""
    document: dict[str, Any] = {"treatment": _treatment(study), "outcome": _outcome(study)}
    if study.covariates:
        document["covariates"] = {name: domain.to_dict() for name, domain in study.covariates.items()}
    time = None if study.before is None else study.before.time
    rows = None if study.person is None else study.person.to_dict(study.roles, time)
    whole = study.cluster is not None and study.cluster.whole
    more: dict[str, Any] = {"assignment": _assignment(study), "people": None if whole else _short(rows)}
    if study.cluster is not None:
        more["clusters"] = _short(study.cluster.to_dict() | ((rows or {}) if whole else {}))
    more["missing"] = {name: rule.to_dict() for name, rule in study.missing.items()} or None
    more["where"] = None if study.where is None else study.where.text
    more["estimated"] = dict(study.estimated) or None
    return document | {name: value for name, value in more.items() if value is not None}


def _short(table: dict[str, Any] | None) -> dict[str, Any] | str | None:
    """Return the name of the column alone where nothing else is declared."""
    return table["column"] if table is not None and set(table) == {"column"} else table


def _treatment(study: Study) -> dict[str, Any] | str | None:
    found: dict[str, Any] = {"column": study.treatment}
    if study.arms is not None:
        found["arms"] = list(study.arms) if study.doses is None else study.doses.to_dict()
        return found | {"reference": study.reference}
    found |= {} if study.treated == TREATED and isinstance(study.treated, int) else {"treated": study.treated}
    return _short(found | ({} if study.control is None else {"control": study.control}))


def _outcome(study: Study) -> dict[str, Any]:
    if study.several is not None:
        return study.several.to_dict()
    if study.event is not None:
        return {"time": study.outcome} | study.event.to_dict()
    ends = study.outcome_range if study.before is None else study.before.outcome_range
    if study.denominator is not None:
        return {"numerator": study.outcome, "range": plain_ends(ends)} | study.denominator.to_dict()
    change = {} if study.before is None else study.before.to_dict()
    return {"column": study.outcome, "range": plain_ends(ends)} | change


def _assignment(study: Study) -> dict[str, Any] | str | None:
    if study.score is not None:
        return {"propensity": study.score}
    if study.treated_share is not None:
        return {"share": plain_number(study.treated_share)}
    return None if study.randomised is None else TRIAL if study.randomised else OBSERVATIONAL


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
        raise invalid("tables [study.NAME]", "another `study`", "write [study.NAME] above each study")
    return dict(tables)


def _merged(common: dict[str, Any], own: Mapping[str, Any]) -> dict[str, Any]:
    """Return a study's own declarations with those that all studies of the file share; its own come first."""
    merged = common | dict(own)
    for key in ("covariates", "missing"):
        both = [table for table in (common.get(key), own.get(key)) if table is not None]
        if len(both) == 2 and all(isinstance(table, Mapping) and "fill" not in table for table in both):
            merged[key] = both[0] | both[1]
    # Covariates of the file that a study leaves out.
    left_out = merged.pop("without", [])
    if not isinstance(left_out, list) or not all(isinstance(name, str) for name in left_out):
        raise invalid("without: a list of covariates", shown(left_out), 'write without = ["age"]')
    roles = {*left_out, *outcome_columns(merged.get("outcome")), column_of(merged.get("treatment"))}
    for key in ("covariates", "missing"):
        if isinstance(merged.get(key), Mapping) and key not in own:
            merged[key] = {name: value for name, value in merged[key].items() if name not in roles}
    return merged


def to_toml(document: Mapping[str, Any]) -> str:
    """Return the TOML text of a dictionary made of scalars, lists and tables of inline tables."""
    scalars = {key: value for key, value in document.items() if not isinstance(value, Mapping)}
    lines = [f"{toml_key(key)} = {toml_value(value)}" for key, value in scalars.items()]
    for key, table in document.items():
        if isinstance(table, Mapping) and table:
            lines += _toml_table(key, table)
    return "\n".join(lines) + "\n"


def _toml_table(key: str, table: Mapping[str, Any]) -> list[str]:
    """Return the lines of a table, and of those in it that have headings of their own."""
    deep = {
        name: value
        for name, value in table.items()
        if name in _DEEP.get(key, ()) and isinstance(value, Mapping)
    }
    flat = {name: value for name, value in table.items() if name not in deep}
    lines = ["", f"[{toml_key(key)}]"] if flat else []
    lines += [f"{toml_key(name)} = {toml_value(value)}" for name, value in flat.items()]
    for name, inner in deep.items():
        lines += ["", f"[{toml_key(key)}.{toml_key(name)}]"]
        lines += [f"{toml_key(each)} = {toml_value(value)}" for each, value in inner.items()]
    return lines


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


def invalid(expected: str, got: str, fix: str) -> CounterveilError:
    """Return CV-S013, the refusal of a document that declares no study."""
    return refusal("CV-S013", expected=expected, got=got, fix=fix)
