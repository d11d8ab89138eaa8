"""Whether data fit a study: everything that does not, at once, for the holder of the data."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from functools import partial
from os import PathLike
from typing import Any

import numpy as np

from counterveil.data.batches import check_columns
from counterveil.data.cells import Coded, Column, Mask, Numbers, meant, no_such_column, row_in_place_of_names
from counterveil.data.conditions import only_subset
from counterveil.data.domains import (
    Binary,
    Categories,
    LabelIndex,
    Range,
    domain_from,
    gaps,
    index_of,
    number_of,
    plain_number,
)
from counterveil.data.people import one_row_per_person
from counterveil.data.row_units import identifiers
from counterveil.data.silencing import silence
from counterveil.data.sources import read, source_in_database
from counterveil.data.sources.dispatch import check, columns_of
from counterveil.data.study import Study
from counterveil.data.study_documents import (
    KNOWN_KEYS,
    OPEN,
    TRIAL,
    column_of,
    open_places,
    outcome_columns,
    read_study,
    study_arguments,
    toml_key,
    toml_value,
)
from counterveil.data.table import Survey, Table, numeric_columns
from counterveil.errors import CounterveilError, DataError, refusal

# Declarations that only make sense together are judged together: periods are of people.
_TOGETHER = (("treatment",), ("assignment",), ("people", "outcome"))
# Tables with a line for each column.
_BY_COLUMN = ("covariates", "missing", "estimated")
_RANGE = "[LOW, HIGH]"
# Stand for a treatment and an outcome that are not known yet, so that all else can be checked.
NOT_KNOWN = {"treatment": "? treatment", "outcome": "? outcome"}


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that does not fit between data and study, or that should be considered.

    Attributes
    ----------
    code : str
        Code of the error; ``counterveil explain CODE`` prints its page.
    what : str
        One sentence; it names columns, never rows or values.
    column : str or None
        The column that it is about.
    fix : str or None
        What to write in the study file.
    blocking : bool
        Whether a question would be refused; advice is not blocking.
    labels : mapping of str to int or None
        Undeclared labels of a column with their numbers of rows, if the holder of the data asked for them.
        Private.
    counts : mapping of str to int or None
        Number of rows without a value, by column. Private.
    rows : int or None
        Number of rows without a value in any of these columns. Private.
    """

    code: str
    what: str
    column: str | None = None
    fix: str | None = None
    blocking: bool = True
    labels: Mapping[str, int] | None = None
    counts: Mapping[str, int] | None = None
    rows: int | None = None

    @classmethod
    def _of(cls, error: CounterveilError, column: str | None = None, fix: str | None = None) -> Finding:
        """Return the finding that an error stands for; without a line of its own, its advice is the fix."""
        got = f" ({error.got})" if error.code.startswith("CV-S") else ""
        what = f"{error.problem}{got}"
        for name in NOT_KNOWN.values():
            what = what.replace(f" {name!r}", "")
        return cls(
            error.code, what, None if column in NOT_KNOWN.values() else column, fix or f"# {error.fix}"
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the finding as JSON-ready facts.

        Returns
        -------
        dict
            The attributes by name; `labels`, `counts` and `rows`, which are private, only where they are set.
        """
        private = ("labels", "counts", "rows")
        return {
            name: value for name, value in asdict(self).items() if name not in private or value is not None
        }


def line(name: str, value: Any) -> str:
    """Return a line of a study file."""
    return f"{toml_key(name)} = {toml_value(value)}"


def in_table(table: str, name: str, text: str) -> str:
    """Return a line of a table of a study file, with the table's heading; `text` is written as it is."""
    return f"[{table}]\n{toml_key(name)} = {text}"


# What a draft leaves to people, by the key or the key of a table.
_QUESTIONS = {
    ("treatment",): ("which column holds the treatment?", 'treatment = "COLUMN"'),
    ("outcome",): ("which column holds the outcome?", f'[outcome]\ncolumn = "COLUMN"\nrange = {_RANGE}'),
    ("outcome", "column"): ("which column holds the outcome?", '[outcome]\ncolumn = "COLUMN"'),
    ("outcome", "time"): ("which column holds the outcome?", '[outcome]\ntime = "COLUMN"'),
    ("outcome", "range"): (
        "what are the lowest and the highest possible outcome?",
        f"[outcome]\nrange = {_RANGE}",
    ),
    ("outcome", "horizon"): ("when does follow-up end?", "[outcome]\nhorizon = NUMBER"),
    ("treatment", "treated"): ("which label means treated?", '[treatment]\ntreated = "LABEL"'),
    ("treatment", "control"): ("which label means control?", '[treatment]\ncontrol = "LABEL"'),
    ("treatment", "reference"): (
        "which arm are the others compared with?",
        '[treatment]\nreference = "LABEL"',
    ),
    ("assignment",): ("was treatment assigned at random?", 'assignment = "trial"  # or "observational"'),
    ("people",): ("which column is the person ID?", 'people = "COLUMN"'),
    ("covariates",): ("which columns are covariates?", "[covariates]\n# COLUMN = { range = [LOW, HIGH] }"),
}
_DOMAIN_QUESTIONS = {
    "": ("numeric, binary or labels?", '{ range = [LOW, HIGH] }  # or { categories = [...] }, or "binary"'),
    "range": ("what are its lowest and highest possible values?", "{ range = [LOW, HIGH] }"),
    "categories": ("which labels may it hold?", '{ categories = ["LABEL", "LABEL"] }'),
    "binary": ("which of its two labels counts as one?", '{ binary = { one = "LABEL", zero = "LABEL" } }'),
}


def open_questions(document: Mapping[str, Any]) -> list[Finding]:
    """Return the questions that a study file leaves open, each with the line that answers it."""
    found = []
    for place in open_places(document):
        if place[0] == "covariates" and len(place) > 1:
            kind = place[2] if len(place) > 2 else ""
            asked, answer = _DOMAIN_QUESTIONS.get(kind, _DOMAIN_QUESTIONS[""])
            what = f"covariate {place[1]!r}: {asked}"
            found.append(Finding("CV-S120", what, place[1], in_table("covariates", place[1], answer)))
        elif place[:2] == ("outcome", "ranges") and len(place) > 2:
            what = f"outcome {place[2]!r}: {_DOMAIN_QUESTIONS['range'][0]}"
            found.append(Finding("CV-S120", what, place[2], in_table("outcome.ranges", place[2], _RANGE)))
        elif place in _QUESTIONS:
            asked, answer = _QUESTIONS[place]
            found.append(Finding("CV-S120", asked, None, answer))
        else:
            what = f"[{place[0]}]: {'.'.join(place[1:])}?" if len(place) > 1 else f"{place[0]}?"
            mend = in_table(place[0], place[1], '"COLUMN"') if len(place) > 1 else line(place[0], "...")
            found.append(Finding("CV-S120", what, None, mend))
    return found


# Texts of strangers are judged too: after so many faults, or so many declarations read in all, the rest is left.
MOST_FAULTS, _MOST_READ = 50, 50_000
_MORE = Finding(
    "CV-S013", "there may be more faults than these", None, "# fix these first, then check the study again"
)


class _Judge:
    """Notes the faults of declarations that are tried."""

    def __init__(self) -> None:
        self.faults: list[Finding] = []
        self._read = 0

    @property
    def done(self) -> bool:
        """Whether nothing more is tried."""
        return len(self.faults) >= MOST_FAULTS or self._read > _MOST_READ

    def problem(self, document: Mapping[str, Any]) -> CounterveilError | None:
        """Return why declarations make no study, None where they do."""
        tables = (document.get(name) for name in ("covariates", "missing"))
        self._read += 1 + sum(len(table) for table in tables if isinstance(table, Mapping))
        return _problem(document)


def sound_study(document: Mapping[str, Any]) -> tuple[Study | None, list[Finding]]:
    """Return the study that the sound declarations make, and what is wrong with the others.

    Each is added to those that were sound before, so that one fault does not hide the next. A treatment or outcome that
    is not declared is called by its name in `NOT_KNOWN`. None is returned where not even their names make a study.
    """
    if _problem(document) is None:
        return Study(**study_arguments(document)), []
    found = open_questions(document)
    answered = _without_open(document)
    judge = _Judge()
    for error in _unknown_keys(answered):
        judge.faults.append(Finding._of(error))
        if judge.done:
            break
    known = {key: value for key, value in answered.items() if key in KNOWN_KEYS}
    asked = {place[0] for place in open_places(document)}
    judge.faults += [
        Finding("CV-S013", f"the study names no {key}", None, f'{key} = "COLUMN"')
        for key in NOT_KNOWN
        if key not in known and key not in asked
    ]
    column = column_of(known.get("treatment")) or NOT_KNOWN["treatment"]
    base: dict[str, Any] = {"treatment": column, "outcome": _plain_outcome(known.get("outcome"))}
    problem = _problem(base)
    if problem is not None:
        return None, [*found, *judge.faults, Finding._of(problem)]
    for parts in _parts(known):
        alone = [part for part in parts if part.problem is not None]
        judge.faults += [Finding._of(part.problem, part.column, part.fix) for part in alone if part.problem]
        base = _added(base, [part for part in parts if part.problem is None], judge)
    more = [_MORE] if judge.done else []
    return Study(**study_arguments(base)), [*found, *judge.faults[:MOST_FAULTS], *more]


def _plain_outcome(told: object) -> dict[str, Any]:
    """Return an outcome that stands for a declared one while all else is judged: its first column, from 0 to 1."""
    names = outcome_columns(told)
    if isinstance(told, Mapping) and "event" in told:
        names = tuple(name for name in names if name != told["event"])
    return {"column": names[0] if names else NOT_KNOWN["outcome"], "range": [0, 1]}


def _added(base: dict[str, Any], parts: list[_Part], judge: _Judge) -> dict[str, Any]:
    """Return the declarations with those parts that are sound beside them; notes the others, found by halves."""
    if not parts or judge.done:
        return base
    whole = _with(base, *(part.declared for part in parts))
    problem = judge.problem(whole)
    if problem is None:
        return whole
    if len(parts) == 1:
        judge.faults.append(Finding._of(problem, parts[0].column, parts[0].fix))
        return base
    half = len(parts) // 2
    return _added(_added(base, parts[:half], judge), parts[half:], judge)


def _without_open(document: Mapping[str, Any]) -> dict[str, Any]:
    """Return the declarations without what is open; something stands for what others need to be judged."""
    places = open_places(document)
    top = {place[0] for place in places if len(place) == 1}
    left = {key: value for key, value in document.items() if key not in top}
    for key, *path in places:
        if key in ("treatment", "outcome", "people", "clusters") and path:
            left[key] = _closed(key, left[key], path)
    asked = {place[1] for place in places if place[0] == "covariates" and len(place) > 1}
    for key in ("covariates", "missing"):
        if isinstance(left.get(key), Mapping):
            left[key] = {name: value for name, value in left[key].items() if name not in asked}
    return left


def _closed(key: str, told: Any, path: list[str]) -> Any:
    """Return a table in which something stands for what is open; people are known by their column alone."""
    if key in ("people", "clusters"):
        return column_of(told) if isinstance(told, Mapping) else told
    if key == "treatment":
        # Arms without a reference, or labels that are not known, are judged when they are.
        return told.get("column", OPEN) if isinstance(told, Mapping) else told
    stand = {"range": [0, 1], "horizon": 1, "column": NOT_KNOWN["outcome"], "time": NOT_KNOWN["outcome"]}
    if path[0] == "ranges":
        return {**told, "ranges": {**told["ranges"], path[1]: [0, 1]}} if len(path) > 1 else {}
    closed = {name: value for name, value in told.items() if name != path[0]}
    return closed | ({path[0]: stand[path[0]]} if path[0] in stand else {})


def _unknown_keys(document: Mapping[str, Any]) -> Iterator[CounterveilError]:
    sound = {"treatment": "t", "outcome": {"column": "y", "range": [0, 1]}}
    for key in document:
        if key not in KNOWN_KEYS:
            problem = _problem(sound | {key: document[key]})
            if problem is not None:
                yield problem


def _problem(document: Mapping[str, Any]) -> CounterveilError | None:
    try:
        Study(**study_arguments(document))
    except CounterveilError as error:
        return error
    return None


def _with(base: Mapping[str, Any], *parts: Mapping[str, Any]) -> dict[str, Any]:
    """Return the declarations with further ones; tables are joined, in copies of their own."""
    joined = {key: dict(value) if isinstance(value, Mapping) else value for key, value in base.items()}
    for part in parts:
        for key, value in part.items():
            if isinstance(value, Mapping) and key in _BY_COLUMN:
                joined[key] = joined[key] if isinstance(joined.get(key), dict) else {}
                joined[key].update(value)
            else:
                joined[key] = value
    return joined


@dataclass(frozen=True, slots=True)
class _Part:
    """One declaration, the column it is about, what would fix it, and what is wrong with it whatever else is said."""

    declared: dict[str, Any]
    column: str | None = None
    fix: str | None = None
    problem: CounterveilError | None = None


def _parts(known: Mapping[str, Any]) -> Iterator[list[_Part]]:
    """Yield the declarations that are not judged yet, in groups, those first that others rely on."""
    said = {"covariates", "missing", *sum(_TOGETHER, ())}
    covariates = known.get("covariates", {})
    if isinstance(covariates, Mapping):
        yield [_covariate(str(name), value) for name, value in covariates.items()]
    else:
        yield [_Part({"covariates": covariates})]
    together = [{key: known[key] for key in group if key in known} for group in _TOGETHER]
    yield [_part(declared) for declared in together if declared]
    missing = known.get("missing", {})
    if isinstance(missing, Mapping) and "fill" not in missing:
        yield [_Part({"missing": {name: rule}}, str(name)) for name, rule in missing.items()]
    else:
        yield [_Part({"missing": missing})]
    yield [_Part({key: value}) for key, value in known.items() if key not in said]


def _part(declared: dict[str, Any]) -> _Part:
    """Return the part that declares the treatment, the outcome, people or the assignment."""
    outcome = declared.get("outcome")
    if not isinstance(outcome, Mapping) or {"event", "ranges"} & set(outcome):
        return _Part(declared)
    column = next(iter(outcome_columns(outcome)), None)
    return _Part(declared, column, f"[outcome]\nrange = {_RANGE}")


def _covariate(name: str, value: object) -> _Part:
    declared = {"covariates": {name: value}}
    try:
        domain_from(name, value)
    except CounterveilError as problem:
        kind = next(iter(value), "") if isinstance(value, Mapping) else ""
        answer = _DOMAIN_QUESTIONS.get(str(kind), _DOMAIN_QUESTIONS[""])[1]
        return _Part(declared, name, in_table("covariates", name, answer), problem)
    return _Part(declared, name, f"# {name!r} has another role: remove this line")


# What a missing value is called where it is a label of its own.
_MISSING_LABELS = ("missing", "(missing)", "((missing))")
_OTHERS = '[treatment]\nothers = "drop"'
# Undeclared labels of one column that are listed, the most frequent first.
_MOST_LABELS = 50
# Codes that are about labels of a column.
_ABOUT_LABELS = ("CV-D005", "CV-D006", "CV-D007", "CV-D017")


@dataclass(frozen=True, slots=True)
class Checked:
    """What a check found, and the number of rows of the study where they fit it."""

    findings: tuple[Finding, ...]
    study: Study | None
    rows: int | None = None

    @property
    def fits(self) -> bool:
        """Whether a question about these data and this study would be taken."""
        return not any(finding.blocking for finding in self.findings)


def declarations(study: Study | str | PathLike[str]) -> tuple[Mapping[str, Any], Study | None, list[Finding]]:
    """Return a study's document, the study that its sound declarations make, and what is wrong with the others."""
    if isinstance(study, Study):
        return study.to_dict(), study, []
    try:
        document = read_study(study)
    except CounterveilError as error:
        return {}, None, [Finding._of(error)]
    return document, *sound_study(document)


@silence()
def check_data(source: Any, document: Mapping[str, Any], study: Study, show_labels: bool) -> Checked:
    """Return everything about the data that does not fit the study, and what should be thought of."""
    try:
        known = columns_of(source)
    except CounterveilError as error:
        return Checked((Finding._of(error),), study)
    no_names = row_in_place_of_names(known)
    # Where few names fit, the first row of data may stand in place of the names: it is not shown.
    if no_names is not None and 2 * len({*study.read_columns} & {*known}) < len(study.read_columns):
        return Checked((Finding._of(no_names),), study)
    found = [
        Finding._of(no_such_column(name, known), name, _renamed(name, study, known))
        for name in study.read_columns
        if name not in known and name not in NOT_KNOWN.values()
    ]
    advice = _advice(known, document, study)
    if source_in_database(source):
        found += _refused(lambda: check_columns(source, study)) if not found else []
        return Checked((*found, *advice), study)
    wrong = [name for name in study.read_columns if name not in known and name not in NOT_KNOWN.values()]
    unreadable = _unreadable(source, [name for name in study.read_columns if name in known], study)
    found += unreadable.values()
    faults, rows, lost = _rows(source, _without(study, {*wrong, *unreadable}), show_labels)
    advice += lost
    # Labels of the arms are compared with what nobody said yet: the open question is enough.
    labels_open = {("treatment", "treated"), ("treatment", "control")} & set(open_places(document))
    undeclared = {"CV-D005"} if labels_open else set()
    found += [fault for fault in faults if fault.code not in undeclared]
    undecided = set(NOT_KNOWN.values()) & set(study.columns)
    return Checked((*found, *advice), None if undecided else study, None if found or undecided else rows)


def _unreadable(source: Any, names: list[str], study: Study) -> dict[str, Finding]:
    """Return the columns of a type that no role can use."""
    order = None if study.person is None else study.person.order
    wanted = [name for name in names if name != order]
    if not _refused(lambda: check(source, tuple(wanted))):
        return {}
    each = {name: _refused(partial(check, source, (name,)), name) for name in wanted}
    return {name: faults[0] for name, faults in each.items() if faults}


def _refused(attempt: Callable[[], object], name: str | None = None) -> list[Finding]:
    try:
        attempt()
    except CounterveilError as error:
        return [Finding._of(error, name)]
    return []


def _fewer_outcomes(outcome: Mapping[str, Any], lost: set[str]) -> dict[str, Any]:
    """Return the declaration of several outcomes without those that are lost; one that is left is the outcome."""
    left = {name: ends for name, ends in outcome["ranges"].items() if name not in lost}
    baseline = outcome.get("baseline", {})
    if len(left) >= 2:
        kept = {name: column for name, column in baseline.items() if name in left and column not in lost}
        return {"ranges": left} | ({"baseline": kept} if kept else {})
    name, ends = next(iter(left.items()), (NOT_KNOWN["outcome"], [0, 1]))
    return {"column": name, "range": ends}


def _without(study: Study, lost: set[str]) -> Study:
    """Return the study without what cannot be read, so that the rest can be checked."""
    if not lost:
        return study
    document = study.to_dict()
    people = () if study.person is None else study.person.columns
    if study.several is not None:
        document["outcome"] = _fewer_outcomes(document["outcome"], lost)
    elif lost & {*people, *study.outcomes}:
        document["outcome"] = _alone(study, lost)
    if study.score in lost:
        del document["assignment"]
    for key in ("covariates", "missing"):
        if key in document:
            document[key] = {name: value for name, value in document[key].items() if name not in lost}
    if lost & {*people, *study.outcomes[1:]}:
        document.pop("people", None)
    if lost & {*people, *study.cluster_columns}:
        document.pop("clusters", None)
    if study.where is not None and lost & set(study.where.columns):
        del document["where"]
    if study.treatment in lost:
        document["treatment"] = NOT_KNOWN["treatment"]
        if study.treated_share is not None:
            document["assignment"] = TRIAL
    return Study.from_dict(document)


def _alone(study: Study, lost: set[str]) -> dict[str, Any]:
    """Return one outcome in place of one that is made of columns of which some are lost."""
    ends = study.outcome_range if study.before is None else study.before.outcome_range
    bounds = [0, 1] if study.event is not None else [plain_number(end) for end in ends]
    return {"column": NOT_KNOWN["outcome"] if study.outcome in lost else study.outcome, "range": bounds}


def _rows(source: Any, study: Study, show_labels: bool) -> tuple[list[Finding], int | None, list[Finding]]:
    """Return what does not fit, the number of rows where all does, and what rules for missing values do."""
    try:
        columns = only_subset(_columns(source, study), study.where)
        if study.person is not None:
            columns = one_row_per_person(columns, study)
        survey = Survey(study)
        Table.of_columns(columns, study, survey)
    except DataError as error:
        return [Finding._of(error)], None, []
    missing = _missing(columns, study)
    faults = [
        _finding(error, study, columns, missing, show_labels)
        for error in survey.problems()
        if not _of_gaps_alone(error, study, columns, missing)
    ]
    return faults, survey.rows, _losses(study, missing)


def _of_gaps_alone(
    error: CounterveilError, study: Study, columns: Mapping[str, Column], missing: Mapping[str, Mask]
) -> bool:
    """Return whether labels that nobody declared are missing values, of which another finding tells."""
    if error.code not in ("CV-D006", "CV-D007"):
        return False
    name = _about(error, study)
    return name in missing and not _undeclared(columns[name], index_of(_declared(study, name)))


def _about(error: CounterveilError, study: Study) -> str:
    """Return the column that a problem names, the treatment where it names none."""
    return next((each for each in study.columns if f"{each!r}" in error.problem), study.treatment)


def _missing(columns: Mapping[str, Column], study: Study) -> dict[str, Mask]:
    """Return the rows without a value, by column, of those columns that have such rows."""
    found = {name: gaps(columns[name]) for name in study.columns}
    return {name: rows for name, rows in found.items() if rows.any()}


def _losses(study: Study, missing: Mapping[str, Mask]) -> list[Finding]:
    """Return how many rows each rule for missing values leaves out or fills; these counts are private."""
    found = []
    for kind, code in (("drop", "CV-P830"), ("fill", "CV-P831")):
        rows = {
            name: missing[name]
            for name, rule in study.missing_kinds.items()
            if rule == kind and name in missing
        }
        if rows:
            counts = {name: int(one.sum()) for name, one in rows.items()}
            said = refusal(code, listed=", ".join(map(repr, counts)))
            together = int(np.any(list(rows.values()), axis=0).sum())
            fix = "\n".join(
                _labelled(study, name) for name in counts if kind == "drop" and _has_labels(study, name)
            )
            advice = fix or f"# {said.fix}"
            found.append(Finding(code, said.problem, None, advice, False, counts=counts, rows=together))
    return found


def _has_labels(study: Study, name: str) -> bool:
    return isinstance(study.covariates.get(name), Binary | Categories)


def _labelled(study: Study, name: str) -> str:
    """Return the lines that make a missing value of a covariate with labels a label of its own."""
    domain = study.covariates[name]
    assert not isinstance(domain, Range)
    label = next(word for word in _MISSING_LABELS if word not in domain.labels)
    declared = toml_value(
        domain.to_dict() | {"categories": [*domain.labels, label]}
        if isinstance(domain, Categories)
        else {"categories": [*domain.labels, label]}
    )
    return (
        f"{in_table('covariates', name, declared)}\n{in_table('missing', name, toml_value({'fill': label}))}"
    )


def _columns(source: Any, study: Study) -> dict[str, Column]:
    """Return the study's columns; those of a treatment or outcome that is not known yet raise no question."""
    undecided = set(NOT_KNOWN.values())
    names = tuple(name for name in study.read_columns if name not in undecided)
    order = None if study.person is None else study.person.order
    found = read(source, names, numeric_columns(study), order) if names else {}
    rows = max((len(column) for column in found.values()), default=0)
    for name in undecided & set(study.columns):
        found[name] = Numbers(np.arange(rows) % 2, np.zeros(rows, dtype=np.bool_))
    return found


def _finding(
    error: CounterveilError,
    study: Study,
    columns: Mapping[str, Column],
    missing: Mapping[str, Mask],
    show: bool,
) -> Finding:
    """Return the finding of a problem with rows, with the labels that nobody declared where they are to be shown."""
    name = _about(error, study)
    labels = None
    if show and error.code in _ABOUT_LABELS:
        labels = _undeclared(columns[name], index_of(_declared(study, name)))
    fix = _fix(error.code, name, study, labels)
    rows = int(missing[name].sum()) if error.code == "CV-D003" and name in missing else None
    return Finding(error.code, error.problem, name, fix or f"# {error.fix}", labels=labels, rows=rows)


def _declared(study: Study, name: str) -> tuple[Any, ...]:
    domain = study.covariates.get(name)
    return study.treatment_labels if domain is None or isinstance(domain, Range) else domain.labels


def _undeclared(column: Column, index: LabelIndex) -> dict[str, int]:
    """Return how many rows have each label that is not declared, the most frequent first."""
    held = column.keep(~gaps(column))
    if isinstance(held, Coded):
        counts = Counter({held.cells[code]: int(n) for code, n in _counted(held.codes)})
    else:
        counts = Counter(dict(_counted(held.values)))
    found = [(str(cell), count) for cell, count in counts.most_common() if index.code(cell) is None]
    return dict(found[:_MOST_LABELS])


def _counted(values: Any) -> list[tuple[Any, int]]:
    kinds, counts = np.unique(values, return_counts=True)
    return list(zip(kinds.tolist(), counts.tolist(), strict=True))


def _fix(code: str, name: str, study: Study, labels: Mapping[str, int] | None) -> str | None:
    """Return the line that fixes a problem with a column's cells."""
    domain = study.covariates.get(name)
    if code == "CV-D003":
        return _without_rule(study, name)
    if code == "CV-D002" and name in study.outcomes:
        return None
    if code == "CV-D002":
        return in_table("covariates", name, '{ categories = ["LABEL", "LABEL"] }')
    if code in ("CV-D006", "CV-D007"):
        assert domain is not None
        assert not isinstance(domain, Range)
        more = [_as_written(label) for label in labels] if labels else ["LABEL"]
        both = isinstance(domain, Categories) or bool(labels)
        if both:
            return in_table("covariates", name, toml_value({"categories": [*domain.labels, *more]}))
        return in_table("covariates", name, '{ binary = { one = "LABEL", zero = "LABEL" } }')
    if code == "CV-D005":
        told = [toml_value(_as_written(label)) for label in labels or ()]
        one_of = f"  # one of {', '.join(told[:6])}" if told else ""
        lines = (
            f"[treatment]\ncolumn = {toml_value(study.treatment)}\n"
            f"treated = {toml_value(study.treated)}  # the label that means treated\n"
            f'control = "LABEL"{one_of}\nothers = "drop"'
        )
        return _OTHERS if study.control is not None else lines
    return _OTHERS if code == "CV-D017" else None


def _as_written(label: str) -> Any:
    """Return a label as a study file writes it: a number where it reads as one."""
    number = number_of(label)
    return label if number is None else plain_number(number)


def _without_rule(study: Study, name: str) -> str:
    """Return what a study may say of missing values: a label of their own, a value of the protocol, or to leave out.

    No value is proposed: the middle of a range or the first label is a guess about people.
    """
    if _has_labels(study, name):
        return _labelled(study, name)
    chosen = "VALUE" if name == study.treatment else "NUMBER"
    beside = (
        f", beside a further column of 0 and 1 where {name!r} is missing" if name in study.covariates else ""
    )
    out = in_table("missing", name, '"drop"  # leaves these rows out: the effect is then that of the others')
    return f"{out}\n# or {toml_key(name)} = {{ fill = {chosen} }}, as the protocol names it{beside}"


def _renamed(name: str, study: Study, known: Iterable[str]) -> str | None:
    """Return the line with the name that was probably meant."""
    probably = meant(name, known)
    if probably is None:
        return None
    if study.several is not None and name in study.several.names:
        return in_table("outcome.ranges", probably, toml_value(study.to_dict()["outcome"]["ranges"][name]))
    if name == study.treatment:
        table = isinstance(study.to_dict()["treatment"], Mapping)
        return in_table("treatment", "column", toml_value(probably)) if table else line("treatment", probably)
    if name == study.outcome:
        key = "time" if study.event is not None else "column" if study.denominator is None else "numerator"
        return in_table("outcome", key, toml_value(probably))
    if name in study.covariates:
        return in_table("covariates", probably, toml_value(study.covariates[name].to_dict()))
    return f"# did you mean {probably!r}?"


def _advice(known: Iterable[str], document: Mapping[str, Any], study: Study) -> list[Finding]:
    """Return what should be thought of: people with several rows, and columns that nobody placed."""
    placed = {*study.read_columns, *_names(document.get("covariates")), *_names(document.get("ignored"))}
    beside = [name for name in known if name not in study.read_columns]
    people = identifiers(beside) if study.person is None else []
    found = []
    if people:
        said = refusal("CV-D120", name=people[0])
        found.append(Finding(said.code, said.problem, people[0], line("people", people[0]), blocking=False))
    left = [name for name in beside if name not in placed and name not in people]
    # Files with columns of other studies are common: only a file that lists some as ignored means to place them all.
    if left and "ignored" in document:
        listed = ", ".join(map(repr, left[:8])) + (", ..." if len(left) > 8 else "")
        said = refusal("CV-D121", count=len(left), listed=listed)
        fix = line("ignored", [*_names(document["ignored"]), *left])
        found.append(Finding(said.code, said.problem, None, fix, blocking=False))
    return found


def _names(listed: object) -> list[str]:
    return [str(name) for name in listed] if isinstance(listed, list | tuple | Mapping) else []
