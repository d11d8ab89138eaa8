"""What `check` finds, as data: each finding with its code and the line of the study file that would mend it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from counterveil.data.documents import (
    KNOWN_KEYS,
    domain_from,
    open_places,
    study_arguments,
    toml_key,
    toml_value,
)
from counterveil.data.study import Study
from counterveil.errors import CounterveilError

# Declarations that only make sense together are judged together.
_TOGETHER = (
    ("treated", "control"),
    ("arms", "reference"),
    ("randomised", "treated_share"),
    ("person", "before", "before_range", "change_range", "time", "after"),
    ("per", "per_range"),
)
# Several outcomes, in place of one with its range.
SEVERAL = ("outcomes", "earlier")
_RANGE = "[LOW, HIGH]"
_ARMS = ("treated", "control", "arms", "reference", "others")
# Stand for a treatment and an outcome that are not known yet, so that all else can be checked.
NOT_KNOWN = {"treatment": "? treatment", "outcome": "? outcome"}


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that does not fit, or that should be thought of.

    Attributes:
        code: the error code, which `counterveil explain` explains.
        what: one sentence; it names columns, never rows or values.
        column: the column it is about, None where it is about none.
        mend: what to write in the study file.
        blocking: whether a question would be refused; advice is not.
        labels: undeclared labels of a column and how many rows have each, where the holder of the data asked for them.
            They are private.
    """

    code: str
    what: str
    column: str | None = None
    mend: str | None = None
    blocking: bool = True
    labels: Mapping[str, int] | None = None

    @classmethod
    def of(cls, error: CounterveilError, column: str | None = None, mend: str | None = None) -> Finding:
        """Return the finding that an error stands for; without a line of its own, its advice is what mends it."""
        got = f" ({error.got})" if error.code.startswith("CV-S") else ""
        what = f"{error.problem}{got}"
        for name in NOT_KNOWN.values():
            what = what.replace(f" {name!r}", "")
        return cls(
            error.code, what, None if column in NOT_KNOWN.values() else column, mend or f"# {error.fix}"
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the finding as JSON-ready facts."""
        labels = {} if self.labels is None else {"labels": dict(self.labels)}
        return {
            "code": self.code,
            "what": self.what,
            "column": self.column,
            "mend": self.mend,
            "blocking": self.blocking,
        } | labels


def line(name: str, value: Any) -> str:
    """Return a line of a study file."""
    return f"{toml_key(name)} = {toml_value(value)}"


def in_table(table: str, name: str, text: str) -> str:
    """Return a line of a table of a study file, with the table's heading; `text` is written as it is."""
    return f"[{table}]\n{toml_key(name)} = {text}"


# Open questions: what a draft leaves to people.


_QUESTIONS = {
    "treatment": ("which column holds the treatment?", 'treatment = "COLUMN"'),
    "outcome": ("which column holds the outcome?", 'outcome = "COLUMN"'),
    "outcome_range": ("what are the lowest and the highest possible outcome?", f"outcome_range = {_RANGE}"),
    "treated": ("which label means treated?", 'treated = "LABEL"'),
    "control": ("which label means control?", 'control = "LABEL"'),
    "randomised": ("was treatment assigned at random?", "randomised = true  # or false"),
    "person": ("which column says whose a row is?", 'person = "COLUMN"'),
}
_DOMAIN_QUESTIONS = {
    "": ("what may it hold?", '{ range = [LOW, HIGH] }  # or { categories = [...] }, or "binary"'),
    "range": ("what are its lowest and highest possible values?", "{ range = [LOW, HIGH] }"),
    "categories": ("which labels may it hold?", '{ categories = ["LABEL", "LABEL"] }'),
    "binary": ("which of its two labels counts as one?", '{ binary = { one = "LABEL", zero = "LABEL" } }'),
}


def open_questions(document: Mapping[str, Any]) -> list[Finding]:
    """Return the questions that a study file leaves open, each with the line that answers it."""
    found = []
    for place in open_places(document):
        if place[0] == "covariates":
            kind = place[2] if len(place) > 2 else ""
            asked, answer = _DOMAIN_QUESTIONS.get(kind, _DOMAIN_QUESTIONS[""])
            what = f"open question about covariate {place[1]!r}: {asked}"
            found.append(Finding("CV-S120", what, place[1], in_table("covariates", place[1], answer)))
        else:
            asked, answer = _QUESTIONS[place[0]]
            found.append(Finding("CV-S120", f"open question: {asked}", None, answer))
    return found


# Declarations: each is added to those that were sound before, so that one fault does not hide the next.

# Texts of strangers are judged too: after so many faults, or so many declarations read in all, the rest is left.
MOST_FAULTS, _MOST_READ = 50, 50_000
_MORE = Finding(
    "CV-S013", "there may be more faults than these", None, "# mend these first, then check the study again"
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

    A treatment or outcome that is not declared is called by its name in `NOT_KNOWN`. None is returned where not even
    their names make a study.
    """
    if _problem(document) is None:
        return Study(**study_arguments(document)), []
    found = open_questions(document)
    answered = _without_open(document)
    judge = _Judge()
    for error in _unknown_keys(answered):
        judge.faults.append(Finding.of(error))
        if judge.done:
            break
    known = {key: value for key, value in answered.items() if key in KNOWN_KEYS}
    asked = {place[0] for place in open_places(document)}
    judge.faults += [
        Finding("CV-S013", f"the study names no {key}", None, f'{key} = "COLUMN"')
        for key in NOT_KNOWN
        if key not in known and key not in asked and not (key == "outcome" and "outcomes" in known)
    ]
    if "treatment" not in known:
        known = {key: value for key, value in known.items() if key not in _ARMS}
    base = {key: known.get(key, name) for key, name in NOT_KNOWN.items()} | {"outcome_range": [0, 1]}
    if "outcomes" in known:
        base = {key: base[key] for key in ("treatment",)}
        base |= {key: known[key] for key in SEVERAL if key in known}
    problem = _problem(base)
    if problem is not None:
        return None, [*found, *judge.faults, Finding.of(problem)]
    if "outcome_range" not in asked and "outcomes" not in known:
        tried = base | {"outcome_range": known.get("outcome_range")}
        problem = _problem(tried)
        if problem is None:
            base = tried
        else:
            mend = f"outcome_range = {_RANGE}"
            judge.faults.append(Finding.of(problem, str(base["outcome"]), mend))
    for parts in _parts(known):
        alone = [part for part in parts if part.problem is not None]
        judge.faults += [Finding.of(part.problem, part.column, part.mend) for part in alone if part.problem]
        base = _added(base, [part for part in parts if part.problem is None], judge)
    more = [_MORE] if judge.done else []
    return Study(**study_arguments(base)), [*found, *judge.faults[:MOST_FAULTS], *more]


def _added(base: dict[str, Any], parts: list[_Part], judge: _Judge) -> dict[str, Any]:
    """Return the declarations with those parts that are sound beside them; notes the others, found by halves."""
    if not parts or judge.done:
        return base
    whole = _with(base, *(part.declared for part in parts))
    problem = judge.problem(whole)
    if problem is None:
        return whole
    if len(parts) == 1:
        judge.faults.append(Finding.of(problem, parts[0].column, parts[0].mend))
        return base
    half = len(parts) // 2
    return _added(_added(base, parts[:half], judge), parts[half:], judge)


def _without_open(document: Mapping[str, Any]) -> dict[str, Any]:
    places = open_places(document)
    top = {place[0] for place in places if place[0] != "covariates"}
    left = {key: value for key, value in document.items() if key not in top}
    asked = {place[1] for place in places if place[0] == "covariates"}
    for key in ("covariates", "missing"):
        if isinstance(left.get(key), Mapping):
            left[key] = {name: value for name, value in left[key].items() if name not in asked}
    return left


def _unknown_keys(document: Mapping[str, Any]) -> Iterator[CounterveilError]:
    sound = {"treatment": "t", "outcome": "y", "outcome_range": [0, 1]}
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
            if isinstance(value, Mapping):
                joined[key] = joined[key] if isinstance(joined.get(key), dict) else {}
                joined[key].update(value)
            else:
                joined[key] = value
    return joined


@dataclass(frozen=True, slots=True)
class _Part:
    """One declaration, the column it is about, what would mend it, and what is wrong with it whatever else is said."""

    declared: dict[str, Any]
    column: str | None = None
    mend: str | None = None
    problem: CounterveilError | None = None


def _parts(known: Mapping[str, Any]) -> Iterator[list[_Part]]:
    """Yield the declarations in groups, those first that others rely on."""
    covariates = known.get("covariates", {})
    if isinstance(covariates, Mapping):
        yield [_covariate(str(name), value) for name, value in covariates.items()]
    else:
        yield [_Part({"covariates": covariates})]
    together = [{key: known[key] for key in group if key in known} for group in _TOGETHER]
    yield [_Part(declared) for declared in together if declared]
    missing = known.get("missing", {})
    if isinstance(missing, Mapping) and "fill" not in missing:
        yield [_Part({"missing": {name: rule}}, str(name)) for name, rule in missing.items()]
    else:
        yield [_Part({"missing": missing})]
    said = {"treatment", "outcome", "outcome_range", "covariates", "missing", *SEVERAL, *sum(_TOGETHER, ())}
    yield [_Part({key: value}) for key, value in known.items() if key not in said]


def _covariate(name: str, value: object) -> _Part:
    declared = {"covariates": {name: value}}
    try:
        domain_from(name, value)
    except CounterveilError as problem:
        kind = next(iter(value), "") if isinstance(value, Mapping) else ""
        answer = _DOMAIN_QUESTIONS.get(str(kind), _DOMAIN_QUESTIONS[""])[1]
        return _Part(declared, name, in_table("covariates", name, answer), problem)
    return _Part(declared, name, f"# {name!r} has another role: remove this line")
