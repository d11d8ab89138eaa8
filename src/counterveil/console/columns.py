"""A study as a table, one row a column with its role, kind, bounds and labels; and the study file of a table."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from counterveil.bounded_reading import UnreadableError, parse_toml
from counterveil.console.visit import wrong
from counterveil.data.codebooks import BINARY, CATEGORIES, RANGE
from counterveil.data.domains import Label, number_of, plain_number
from counterveil.data.study_documents import OPEN, TRIAL, to_toml, toml_key, toml_value
from counterveil.data.treatment import TREATED
from counterveil.drafting import Draft
from counterveil.errors import CounterveilError, printable

# Roles that one column has, or none, and how the choice of roles names them all.
_ONCE = {
    "treatment": "treatment",
    "primary": "primary outcome",
    "event": "event (1) or censored (0)",
    "before": "outcome before treatment",
    "denominator": "denominator of the outcome",
    "person": "person ID",
    "order": "order of a person's rows",
}
_CLUSTERS = {
    "cluster": ("cluster", {}),
    "cluster_assigned": ("cluster, one arm each", {"assigned": True}),
    "cluster_protected": ("cluster, protected as a whole", {"protected": True}),
}
# Roles whose values are not part of a study.
_NO_VALUES = ("ignored", "person", "order", *_CLUSTERS)
ROLES = {
    "ignored": "not used",
    "treatment": "treatment",
    "outcome": "outcome",
    "covariate": "covariate",
} | _ONCE
ROLES |= {name: words for name, (words, _) in _CLUSTERS.items()}
KINDS = {"": "not said", RANGE: "number", BINARY: "yes or no", CATEGORIES: "labels"}
RULES = ("", "mean", "sum", "max", "min", "any", "ever", "first", "last", "constant")
FIELDS = ("name", "role", "kind", "low", "high", "labels", "missing", "rule")
DESIGN = ("treated", "control", "assignment", "share", "where")
# Of more columns no table is shown.
MOST = 1_000
_DROP, _LONGEST_NOTE = "drop", 200
# What has fields of its own: keys of a study file, and of its tables.
_WHOLE = ("where", "people", "clusters", "covariates", "ignored", "missing")
_FIELDS = {
    "treatment": ("column", "treated", "control", "arms", "reference"),
    "outcome": (
        *("column", "range", "ranges", "time", "event", "horizon", "numerator"),
        *("denominator", "denominator_range", "before", "before_range"),
    ),
    "assignment": ("share",),
}
# Keys whose value is a column, and the tables where they stand; "" for above all tables.
_DECLARED = (
    "treatment",
    "people",
    "clusters",
    "column",
    "time",
    "event",
    "numerator",
    "before",
    "denominator",
)
_TABLES = ("", "[treatment]", "[outcome]", "[people]", "[clusters]")
_BY_COLUMN = ("[covariates]", "[ignored]", "[outcome.ranges]")


@dataclass(frozen=True, slots=True)
class ColumnRow:
    """One column as the fields of a form have it; "" where nothing is said."""

    name: str
    role: str = "ignored"
    kind: str = ""
    low: str = ""
    high: str = ""
    labels: str = ""
    missing: str = ""
    rule: str = ""
    note: str = ""

    @property
    def open(self) -> bool:
        """Whether the role needs something that is not said."""
        if self.role in ("outcome", "primary"):
            return self.kind != BINARY and not self.high
        known = {RANGE: bool(self.low and self.high), BINARY: True, CATEGORIES: bool(self.labels)}
        return self.role == "covariate" and not known.get(self.kind, False)


@dataclass(frozen=True, slots=True)
class StudyForm:
    """A study as a form has it: its columns, what is said of its design, and declarations that have no field."""

    rows: tuple[ColumnRow, ...]
    design: Mapping[str, str] = field(default_factory=dict)
    more: str = ""

    def sorted(self, faulty: set[str]) -> list[tuple[int, ColumnRow]]:
        """Return rows with their places: those that need something first, those that are not used last."""
        order = list(ROLES)

        def key(each: tuple[int, ColumnRow]) -> tuple[bool, bool, bool, int]:
            name, role = each[1].name, each[1].role
            needs = name in faulty or each[1].open
            return not needs, role == "ignored", role == "covariate", order.index(role)

        return sorted(enumerate(self.rows), key=key)


def form_of(text: str, document: Mapping[str, Any]) -> StudyForm | None:
    """Return a study as a form, None where a table cannot hold it: too many columns, or tables that are none."""
    tables = ("covariates", "outcome", "treatment", "missing")
    if not all(isinstance(document.get(name, {}), Mapping | str) for name in tables) or "study" in document:
        return None
    rows = {row.name: row for row in _rows(document) if row.name}
    if len(rows) > MOST or not all(isinstance(name, str) for name in rows):
        return None
    notes, missing = _notes(text), document.get("missing", {})
    if not isinstance(missing, Mapping) or "fill" in missing:
        missing = {name: missing for name, row in rows.items() if row.role not in _NO_VALUES}
    rules = _table(document, "people").get("rules") or _table(document, "clusters").get("rules") or {}
    found = []
    for name, row in rows.items():
        told = missing.get(name, "")
        filled = _text(told.get("fill") if isinstance(told, Mapping) else told)
        found.append(replace(row, missing=filled, rule=_text(rules.get(name, "")), note=notes.get(name, "")))
    beside = _beside(document)
    try:
        more = _written(beside) if beside else ""
    except CounterveilError:
        return None
    return StudyForm(tuple(found), _design(document), more)


def _design(document: Mapping[str, Any]) -> dict[str, str]:
    """Return what a study file says of the design, as fields have it."""
    treatment, assignment = _table(document, "treatment"), document.get("assignment", OPEN)
    share = assignment.get("share", "") if isinstance(assignment, Mapping) else ""
    return {
        "treated": _text(treatment.get("treated", "")) or "1",
        "control": _text(treatment.get("control", treatment.get("reference", ""))),
        "assignment": TRIAL if share != "" else _text(assignment),
        "share": _text(share),
        "where": _text(document.get("where", "")),
    }


def form_of_draft(made: Draft) -> StudyForm:
    """Return a draft as a form: covariates are those that the codebook calls so, other columns are not used."""
    rows = []
    for each in made.columns:
        told, role = each.entry, each.role
        chosen = role in ROLES and (role != "covariate" or told.role == role)
        # Nothing is said by the name of a column alone: bounds or labels make a kind.
        kind = told.kind if told.kind in KINDS and told.kind and not each.guessed else ""
        meanings = ", ".join(f"{label} = {meaning}" for label, meaning in told.labels[:8] if meaning)
        note = "; ".join(filter(None, (told.title, meanings)))[:_LONGEST_NOTE]
        labels = _labels_text([label for label, _ in told.labels])
        low, high = ("" if end is None else str(end) for end in (told.low, told.high))
        role = role if chosen else "ignored"
        rows.append(ColumnRow(each.name, role, kind, low, high, labels, note=note))
    return StudyForm(tuple(rows), {"treated": "1"})


def _beside(document: Mapping[str, Any]) -> dict[str, Any]:
    """Return the declarations of a study file that have no field."""
    beside: dict[str, Any] = {}
    for key, told in document.items():
        if key in _WHOLE or (not isinstance(told, Mapping) and key in _FIELDS):
            continue
        kept = (
            {name: value for name, value in told.items() if name not in _managed(key, told)}
            if key in _FIELDS
            else told
        )
        if key not in _FIELDS or kept:
            beside[key] = kept
    return beside


def _managed(key: str, table: Mapping[str, Any]) -> set[str]:
    """Return the keys of a table that have fields; of doses and of changes between periods not all do."""
    managed = {*_FIELDS[key]}
    if isinstance(table.get("arms"), Mapping):
        managed -= {"arms", "reference"}
    if "time" in table and "event" not in table:
        managed -= {"time", "before", "before_range"}
    elif not isinstance(table.get("before", ""), str):
        managed -= {"before", "before_range"}
    return managed


def _rows(document: Mapping[str, Any]) -> Iterator[ColumnRow]:
    """Yield the columns that a study file names; a name comes once more where it has two roles."""
    treatment, outcome = _table(document, "treatment"), document.get("outcome", {})
    arms = treatment.get("arms")
    if "column" in treatment:
        labels = _labels_text(arms) if isinstance(arms, list) else ""
        yield ColumnRow(_text(treatment["column"]), "treatment", labels=labels)
    outcome = outcome if isinstance(outcome, Mapping) else {}
    several = outcome.get("ranges", {})
    for place, (name, ends) in enumerate(several.items() if isinstance(several, Mapping) else ()):
        yield ColumnRow(name, "outcome" if place else "primary", RANGE, *_ends(ends))
    for key in ("column", "numerator", "time"):
        if key in outcome and (key != "time" or "event" in outcome):
            ends = outcome.get("range", ["", outcome.get("horizon", "")])
            yield ColumnRow(_text(outcome[key]), "outcome", RANGE, *_ends(ends))
    managed = _managed("outcome", outcome)
    for role in ("event", "before", "denominator"):
        if role in outcome and role in managed:
            yield ColumnRow(_text(outcome[role]), role, RANGE, *_ends(outcome.get(f"{role}_range")))
    for key, one in (("people", "person"), ("clusters", "cluster")):
        table = _table(document, key)
        role = "cluster_protected" if table.get("protected") else one
        if table:
            yield ColumnRow(_text(table.get("column")), "cluster_assigned" if table.get("assigned") else role)
        if "order" in table:
            yield ColumnRow(_text(table["order"]), "order")
    for role in ("covariate", "ignored"):
        table = document.get({"covariate": "covariates"}.get(role, role), {})
        for name in table if isinstance(table, list | Mapping) else ():
            told = table[name] if isinstance(table, Mapping) else OPEN
            yield ColumnRow(name, role, **_domain_fields(told))


def _table(document: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    told = document.get(key, {})
    return told if isinstance(told, Mapping) else {"column": told}


def _domain_fields(told: Any) -> dict[str, str]:
    """Return kind, bounds and labels as fields."""
    if told == BINARY:
        return {"kind": BINARY}
    if not isinstance(told, Mapping) or not {RANGE, BINARY, CATEGORIES} & set(told):
        return {}
    kind = next(each for each in (RANGE, BINARY, CATEGORIES) if each in told)
    value = told[kind]
    if kind == RANGE:
        return dict(zip(("kind", "low", "high"), (kind, *_ends(value)), strict=True))
    if kind == BINARY and isinstance(value, Mapping):
        value = [value.get("one"), value.get("zero")]
    return {"kind": kind, "labels": _labels_text(value) if isinstance(value, list) else ""}


def _ends(told: object) -> tuple[str, str]:
    return (_text(told[0]), _text(told[1])) if isinstance(told, list) and len(told) == 2 else ("", "")


def _text(value: object) -> str:
    return str(value) if isinstance(value, str | int | float) and value != OPEN else ""


def _labels_text(labels: list[Any]) -> str:
    text = io.StringIO()
    csv.writer(text, delimiter=";", lineterminator="").writerow(map(_text, labels))
    # A blank after each sign that separates; within quotes nothing is changed.
    return "; ".join(text.getvalue().split(";")) if '"' not in text.getvalue() else text.getvalue()


def _notes(text: str) -> dict[str, str]:
    """Return what stands behind the lines of columns."""
    found: dict[str, str] = {}
    for line in text.splitlines()[: 2 * MOST]:
        left, sign, note = line.rpartition("  # ")
        if sign:
            try:
                ((key, value),) = parse_toml(left).items()
            except (UnreadableError, ValueError):
                continue
            found[value if key in _DECLARED and isinstance(value, str) else key] = note[:_LONGEST_NOTE]
    return found


def form_given(given: Mapping[str, str]) -> StudyForm:
    """Return what was sent as a form."""
    rows: list[ColumnRow] = []
    while f"name-{len(rows)}" in given and len(rows) <= MOST:
        cells = {name: given.get(f"{name}-{len(rows)}", "").strip() for name in FIELDS}
        role = cells["role"] if cells["role"] in ROLES else "ignored"
        kind = cells["kind"] if cells["kind"] in KINDS else ""
        if not kind and cells["labels"]:
            kind = CATEGORIES
        elif not kind and cells["low"] and cells["high"]:
            kind = RANGE
        rows.append(ColumnRow(**cells | {"role": role, "kind": kind}))
    named = tuple(row for row in rows if row.name)
    design = {name: given.get(name, "").strip() for name in DESIGN}
    return StudyForm(named, design, given.get("more", ""))


def with_described(form: StudyForm) -> StudyForm:
    """Return the form with every unused column whose kind, bounds or labels are known as a covariate."""
    tried = [(row, replace(row, role="covariate") if row.role == "ignored" else row) for row in form.rows]
    return replace(form, rows=tuple(row if new.open else new for row, new in tried))


def text_of(form: StudyForm, before: Mapping[str, Any], text: str = "") -> str:
    """Return the study file of a form, or raise CV-W004; `before` and `text` are what the form was made from."""
    names = [row.name for row in form.rows]
    if len(names) > MOST or len(set(names)) < len(names):
        raise wrong(f"at most {MOST:,} columns, each once", "a column twice, or more of them")
    try:
        more = parse_toml(form.more)
    except UnreadableError as error:
        raise wrong("further declarations in TOML", str(error)) from None
    made = _document(form, before)
    notes = _notes(text) | {row.name: row.note for row in form.rows if row.note}
    return _written(_joined(made, more), notes)


def _joined(made: dict[str, Any], more: Mapping[str, Any]) -> dict[str, Any]:
    """Return the declarations of a form with further ones, or raise CV-W004 for one that has a field."""
    joined = dict(made)
    for key, told in more.items():
        own = made.get(key)
        if key in _FIELDS and isinstance(told, Mapping):
            if isinstance(told.get("arms"), Mapping):
                # Of a dose no label means treated.
                own = {"column": own["column"]} if isinstance(own, Mapping) else own
            if isinstance(own, str):
                own = {"column": own} if own != OPEN and key == "treatment" else {}
            twice = next((name for name in told if name in (own or {}) or name in _managed(key, told)), None)
            joined[key] = {**(own or {}), **told}
        else:
            twice = key if key in (*made, *_WHOLE, *_FIELDS) else None
            joined[key] = told
        if twice is not None:
            raise wrong("further declarations that have no field of their own", repr(twice))
    return joined


def _document(form: StudyForm, before: Mapping[str, Any]) -> dict[str, Any]:
    only = {role: _only(form, role) for role in _ONCE}
    made = _arms(form, only["treatment"]) | _outcomes(form, only)
    share, where = form.design.get("share", ""), form.design.get("where", "")
    assignment: Any = form.design.get("assignment", "") or OPEN
    if share and assignment in (OPEN, TRIAL):
        assignment = {"share": _value(share)}
    # A study file need not say it.
    if assignment != OPEN or not before or "assignment" in before:
        made["assignment"] = assignment
    made |= {"where": where} if where else {}
    made |= _units(form, only, before)
    declared = {row.name: row for row in form.rows if row.role == "covariate"}
    known = before.get("covariates")
    old = known if isinstance(known, Mapping) else {}
    made["covariates"] = {name: _domain(row, old.get(name)) for name, row in declared.items()}
    unused = {row.name: _domain(row, None) for row in form.rows if row.role == "ignored"}
    described = any(told != OPEN for told in unused.values())
    made["ignored"] = unused if described else list(unused)
    used = [row for row in form.rows if row.missing and row.role not in _NO_VALUES]
    rules = {row.name: {"fill": _value(row.missing)} if row.missing != _DROP else _DROP for row in used}
    return made | {"missing": rules}


def _only(form: StudyForm, role: str) -> ColumnRow | None:
    """Return the row of a role that one column has."""
    found = [row for row in form.rows if row.role == role]
    if len(found) > 1:
        raise wrong(f"one column at most as {ROLES[role]}", ", ".join(row.name for row in found[:5]))
    return found[0] if found else None


def _arms(form: StudyForm, row: ColumnRow | None) -> dict[str, Any]:
    if row is None:
        return {"treatment": OPEN}
    labels = _labels(row.labels)
    made: dict[str, Any] = {"column": row.name}
    treated, control = (_value(form.design.get(name, "")) for name in ("treated", "control"))
    if len(labels) > 2:
        return {"treatment": made | {"arms": labels, "reference": OPEN if control == "" else control}}
    if len(labels) == 2 and treated not in labels:
        treated = labels[0]
    if treated == TREATED and control == "":
        return {"treatment": row.name}
    made |= {} if treated == TREATED else {"treated": OPEN if treated == "" else treated}
    return {"treatment": made | ({} if control == "" else {"control": control})}


def _outcomes(form: StudyForm, only: Mapping[str, ColumnRow | None]) -> dict[str, Any]:
    first = only["primary"]
    found = [first] * (first is not None) + [row for row in form.rows if row.role == "outcome"]
    made: dict[str, Any] = {}
    if len(found) > 1:
        made["ranges"] = {row.name: _range(row) for row in found if row is not None}
    else:
        row = found[0] if found else None
        key = (
            "time"
            if only["event"] is not None
            else "numerator"
            if only["denominator"] is not None
            else "column"
        )
        made[key] = OPEN if row is None else row.name
        if only["event"] is None:
            made["range"] = OPEN if row is None else _range(row)
        elif row is not None and row.high:
            made["horizon"] = _value(row.high)
    for role in ("event", "before", "denominator"):
        row = only[role]
        if row is not None:
            made[role] = row.name
            told = _range(row)
            made |= {} if role == "event" or told == OPEN else {f"{role}_range": told}
    return {"outcome": OPEN if made == {"column": OPEN, "range": OPEN} else made}


def _units(
    form: StudyForm, only: Mapping[str, ColumnRow | None], before: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the tables of people and clusters; what has no field is as it was."""
    person, order = only["person"], only["order"]
    clusters = [row for row in form.rows if row.role in _CLUSTERS]
    if len(clusters) > 1:
        raise wrong("one column at most as cluster", ", ".join(row.name for row in clusters[:5]))
    cluster = clusters[0] if clusters else None
    whole = cluster is not None and cluster.role == "cluster_protected"
    if order is not None and person is None and not whole:
        raise wrong("a person ID beside the column that orders a person's rows", order.name)
    rules = {row.name: row.rule for row in form.rows if row.rule and row.role not in _NO_VALUES}
    more: dict[str, Any] = {} if order is None else {"order": order.name}
    more |= {"rules": rules} if rules else {}
    made: dict[str, Any] = {}
    for key, row, flags, own in (
        ("people", person, {}, more),
        ("clusters", cluster, {} if cluster is None else _CLUSTERS[cluster.role][1], more if whole else {}),
    ):
        if row is not None:
            old = _table(before, key)
            kept = {name: old[name] for name in ("max_rows",) if name in old and order is not None}
            table = {"column": row.name} | flags | own | kept
            made[key] = row.name if len(table) == 1 else table
    return made


def _range(row: ColumnRow) -> Any:
    if row.kind == BINARY:
        return [0, 1]
    if not row.low and not row.high:
        return OPEN
    return [_value(end) if end else OPEN for end in (row.low, row.high)]


def _domain(row: ColumnRow, old: Any) -> Any:
    """Return what a study file says of a column; what has no field, cuts and a label for all others, is as it was."""
    labels = _labels(row.labels)
    kept: Mapping[str, Any] = old if isinstance(old, Mapping) else {}
    if row.kind == RANGE:
        return {RANGE: _range(row)} | {key: kept[key] for key in ("cuts",) if key in kept}
    if row.kind == BINARY:
        if not labels or {number_of(label) for label in labels} == {0, 1}:
            return BINARY
        return {BINARY: {"one": labels[0], "zero": labels[1]} if len(labels) == 2 else OPEN}
    if row.kind == CATEGORIES:
        other = {key: kept[key] for key in ("other",) if kept.get(key) in labels}
        return {CATEGORIES: labels if len(labels) > 1 else OPEN} | other
    return OPEN


def _value(text: str) -> Label:
    """Return a number where one is written, else the text."""
    number = number_of(text) if text[:1] in "+-.0123456789" and text else None
    return text if number is None else plain_number(number)


def _labels(text: str) -> list[Label]:
    """Return labels that people separate by semicolons, bars or commas; one with such a sign stands in quotes."""
    sign = next((each for each in ";|" if each in text), ",")
    rows = csv.reader([text.replace("\n", sign)], delimiter=sign, skipinitialspace=True)
    return [_value(cell.strip()) for cell in next(rows, []) if cell.strip()]


def _written(document: Mapping[str, Any], notes: Mapping[str, str] | None = None) -> str:
    """Return the TOML of a document, notes behind the lines of their columns, or raise CV-W004."""
    try:
        text = to_toml(document)
        parse_toml(text)
    except (TypeError, ValueError, UnreadableError):
        raise wrong("texts, numbers, truth values, lists and tables", "another value") from None
    noted, table, lines = notes or {}, "", []
    named = {f"{key} = {toml_value(name)}": note for name, note in noted.items() for key in _DECLARED}
    keyed = {toml_key(name): note for name, note in noted.items()}
    for line in text.splitlines():
        table = line if line.startswith("[") else table
        note = named.get(line, "") if table in _TABLES else ""
        if table in _BY_COLUMN:
            note = keyed.get(line.partition(" = ")[0], "")
        lines.append(f"{line}  # {' '.join(printable(note).split())}" if note else line)
    return "\n".join(lines) + "\n"
