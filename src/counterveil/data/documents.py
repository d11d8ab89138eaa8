"""Studies as documents: plain dictionaries, JSON and TOML."""

from __future__ import annotations

import json
from collections.abc import Mapping
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

from counterveil.bounded_reading import UnreadableError
from counterveil.bounded_reading import read_toml as read_tables
from counterveil.data.cluster import arguments_of
from counterveil.data.domains import Binary, Categories, Domain, Range
from counterveil.data.labels import Drop, Fill, MissingRule, plain_number
from counterveil.data.wrong_data import nearest
from counterveil.errors import Refusal, StudyError, shown

if TYPE_CHECKING:
    from counterveil.data.study import Study


_REQUIRED = ("treatment", "outcome", "outcome_range")
_OPTIONAL = (
    "treated",
    "control",
    "randomised",
    "treated_share",
    "arms",
    "reference",
    "covariates",
    "missing",
    "person",
    "cluster",
)


def study_to_dict(study: Study) -> dict[str, Any]:
    """Return the declarations, leaving out what was not declared."""
    document: dict[str, Any] = {
        "treatment": study.treatment,
        "outcome": study.outcome,
        "outcome_range": [plain_number(bound) for bound in study.outcome_range],
    }
    if study.arms is not None:
        document |= {"arms": list(study.arms), "reference": study.reference}
    else:
        document["treated"] = study.treated
    if study.control is not None:
        document["control"] = study.control
    if study.randomised is not None:
        document["randomised"] = study.randomised
    if study.treated_share is not None:
        document["treated_share"] = plain_number(study.treated_share)
    if study.person is not None and not study.person.whole_cluster:
        document["person"] = study.person.to_dict(study)
    if study.cluster is not None:
        document["cluster"] = study.cluster.to_dict(study)
    document["covariates"] = {name: _domain_to_dict(domain) for name, domain in study.covariates.items()}
    document["missing"] = {name: _rule_to_dict(rule) for name, rule in study.missing.items()}
    return document


def study_arguments(document: Mapping[str, Any]) -> dict[str, Any]:
    """Return the keyword arguments of `Study` that a document declares, or raise CV-S013."""
    if not isinstance(document, Mapping):
        raise _malformed("a table of declarations", type(document).__name__, "pass a dictionary")
    known = (*_REQUIRED, *_OPTIONAL)
    for key in document:
        if key not in known:
            raise _malformed("keys of a study", shown(key), nearest(key, known, "a study"))
    for key in ("treatment", "outcome"):
        if key not in document:
            raise _malformed(f"the key {key!r}", "it is missing", f"add {key} = ...")
    tables = ("covariates", "missing", "person", "cluster")
    arguments = {key: value for key, value in document.items() if key not in tables}
    arguments |= _person_arguments(document.get("person")) | _cluster_arguments(document.get("cluster"))
    covariates = document.get("covariates", {})
    if not isinstance(covariates, Mapping):
        raise _malformed("a table of covariates", shown(covariates), "write a [covariates] table")
    arguments["covariates"] = {name: _domain_from(name, value) for name, value in covariates.items()}
    missing = document.get("missing", {})
    if isinstance(missing, Mapping) and "fill" not in missing:
        arguments["missing"] = {name: _rule_from(name, value) for name, value in missing.items()}
    else:
        arguments["missing"] = _rule_from("missing", missing)
    return arguments


def _person_arguments(table: object) -> dict[str, Any]:
    """Return what the table [person] of a study file declares; a bare name is that of the column."""
    if table is None:
        return {}
    if isinstance(table, str):
        return {"person": table}
    names = {"column": "person", "rules": "per_person", "order": "order", "most_rows": "most_rows"}
    if not isinstance(table, Mapping) or "column" not in table or not set(table) <= set(names):
        raise _malformed(
            f"a table [person] of {', '.join(names)}",
            shown(table),
            'write [person] and column = "patient_id"',
        )
    return {names[key]: value for key, value in table.items()}


def _cluster_arguments(table: object) -> dict[str, Any]:
    """Return what the table [cluster] of a study file declares; a bare name is that of the column."""
    if table is None:
        return {}
    if isinstance(table, str):
        return {"cluster": table}
    found = arguments_of(table) if isinstance(table, Mapping) else None
    if found is None:
        raise _malformed(
            "a table [cluster] of column, protected, assigned; and of rules, order, most_rows if it is protected",
            shown(table),
            'write [cluster] and column = "school"',
        )
    return found


def read_toml(path: str | PathLike[str]) -> dict[str, Any]:
    """Return the contents of a TOML file, or raise CV-S014."""
    try:
        return read_tables(path)
    except UnreadableError as error:
        raise StudyError(
            "CV-S014",
            "the study file cannot be read",
            expected="a TOML file in UTF-8",
            got=f"{shown(Path(path).name if isinstance(path, str | PathLike) else path)}: {error}",
            fix="check the path and the syntax; `Study.to_toml()` shows the format",
        ) from None


def to_toml(document: Mapping[str, Any]) -> str:
    """Return the TOML text of a dictionary made of scalars, lists and tables of inline tables."""
    scalars = {key: value for key, value in document.items() if not isinstance(value, Mapping)}
    lines = [f"{_key(key)} = {_value(value)}" for key, value in scalars.items()]
    for key, table in document.items():
        if isinstance(table, Mapping) and table:
            lines += ["", f"[{_key(key)}]"]
            lines += [f"{_key(name)} = {_value(value)}" for name, value in table.items()]
    return "\n".join(lines) + "\n"


def _domain_to_dict(domain: Domain) -> dict[str, Any]:
    if isinstance(domain, Range):
        document: dict[str, Any] = {"range": [plain_number(domain.lo), plain_number(domain.hi)]}
        return document | ({"cuts": [plain_number(cut) for cut in domain.cuts]} if domain.cuts else {})
    if isinstance(domain, Binary):
        return {"binary": {"one": domain.one, "zero": domain.zero}}
    return {"categories": list(domain.labels)}


def _domain_from(name: str, value: Any) -> Domain:
    if value == "binary" or value == {"binary": True}:
        return Binary()
    cuts = value.get("cuts") if isinstance(value, Mapping) else None
    if isinstance(cuts, list | tuple) and set(value) == {"range", "cuts"}:
        bounds = _domain_from(name, {"range": value["range"]})
        return bounds.cut(*cuts) if isinstance(bounds, Range) else bounds
    if isinstance(value, Mapping) and len(value) == 1:
        kind, content = next(iter(value.items()))
        if kind == "range" and isinstance(content, list | tuple) and len(content) == 2:
            return Range(content[0], content[1], name=repr(name))
        if kind == "binary" and isinstance(content, Mapping) and set(content) <= {"one", "zero"}:
            return Binary(**content)
        if kind == "categories":
            return Categories(content)
    raise _malformed(
        f"covariate {name!r} as a range, a binary or a list of categories",
        shown(value),
        'write { range = [0, 1] }, { range = [18, 90], cuts = [30, 60] }, "binary", '
        '{ binary = { one = "yes", zero = "no" } } or { categories = ["a", "b"] }',
    )


def _rule_to_dict(rule: MissingRule) -> Any:
    if isinstance(rule, Drop):
        return "drop"
    return {"fill": rule.value}


def _rule_from(name: str, value: Any) -> MissingRule:
    if value == "drop":
        return Drop()
    if isinstance(value, Mapping) and set(value) == {"fill"}:
        return Fill(value["fill"])
    raise _malformed(f"a rule for {name!r}", shown(value), 'write "drop" or { fill = 0 }')


_malformed = Refusal(
    "CV-S013", "the study declaration is invalid", expected="{expected}", got="{got}", fix="{fix}"
)


def _key(key: str) -> str:
    return key if key.isascii() and key.replace("_", "").replace("-", "").isalnum() else _value(key)


def _value(value: Any) -> str:
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{_key(key)} = {_value(item)}" for key, item in value.items()) + " }"
    if isinstance(value, list):
        return "[" + ", ".join(_value(item) for item in value) + "]"
    # JSON's texts, numbers and truth values are TOML's, except for the raw DEL character.
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
