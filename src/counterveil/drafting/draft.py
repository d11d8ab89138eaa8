"""A draft of a study file: every column placed, and every question that people have to answer marked.

Which part each column of a file plays, from its name, its type, a codebook and people's answers; no row is read.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import Any

from counterveil.bounded_reading import parse_toml
from counterveil.data import Study
from counterveil.data.checking import Finding, open_questions
from counterveil.data.documents import OPEN, toml_key, toml_value
from counterveil.data.domains import Binary, Categories, Range, domain_from
from counterveil.data.labels import Label, LabelIndex, number_of, plain_number
from counterveil.data.person import identifiers
from counterveil.data.sources.dispatch import BOOLEAN, MOMENT, NUMBER, OTHER, TEXT, columns_of
from counterveil.data.where import Where
from counterveil.data.wrong_data import nearest
from counterveil.drafting import codebooks
from counterveil.drafting.codebooks import Codebook, Entry, read_codebook
from counterveil.errors import CounterveilError, printable, refusal, shown
from counterveil.privacy import SIMULATED, exact

ANSWERS = (
    "treatment", "treated", "control", "arms", "reference", "outcome", "outcome_range", "randomised", "treated_share",
    "score", "person", "where", "covariates", "ignored",
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


_MOST_CANDIDATES = 6


@dataclass(frozen=True)
class Draft:
    """A drafted study: its text, where each column went, and what is still open.

    Attributes:
        columns: every column of the source, with the part it plays and what is known of it.
        answers: what people decided.
        origin: where the draft comes from, in words.
        bought: columns whose range or labels were released from the data, and what that cost.
        simulated: whether the noise of what was bought came from a seed, so that it protects nobody.
    """

    columns: tuple[Placed, ...]
    answers: Mapping[str, Any]
    origin: str
    bought: Mapping[str, str]
    simulated: bool = False

    @cached_property
    def toml(self) -> str:
        """The text of the study file; open questions are written as "?"."""
        return "\n".join(_lines(self)) + "\n"

    @cached_property
    def document(self) -> dict[str, Any]:
        """The study file as a dictionary."""
        return parse_toml(self.toml)

    @cached_property
    def open_questions(self) -> tuple[Finding, ...]:
        """What people have to decide, each with the line that answers it."""
        return tuple(open_questions(self.document))

    @property
    def places(self) -> dict[str, str]:
        """The part that each column plays: treatment, outcome, covariate, person or ignored."""
        return {each.name: each.role for each in self.columns}

    def study(self) -> Study:
        """Return the study, or raise CV-S120 where questions are open."""
        return Study.from_dict(self.document)

    def save(self, path: str | PathLike[str]) -> None:
        """Write the study file."""
        Path(path).write_text(self.toml, encoding="utf-8")

    def __str__(self) -> str:
        return self.toml

    def role(self, role: str) -> Placed | None:
        """Return the column that plays a part, None where that is open."""
        return next((each for each in self.columns if each.role == role), None)


def draft(
    source: Any,
    codebook: str | PathLike[str] | Codebook | None = None,
    answers: Mapping[str, Any] | None = None,
) -> Draft:
    """Return a draft of a study file from the header and types of data, a codebook and answers; no row is read.

    Args:
        source: data as for `counterveil.ate`, or a list of the names of columns.
        codebook: a REDCap data dictionary (.csv), a Table Schema or data package (.json), an SPSS, Stata or SAS file
            (with the extra `codebooks`), a .csv file with the columns name, kind, low, high, labels; or entries.
        answers: what people decided, by the names of a study's declarations: treatment, treated, control, arms,
            reference, outcome, outcome_range, randomised, treated_share, score, person, where; `covariates` (a list
            of names, or a mapping from names to domains) and `ignored` (a list of names).
    """
    columns = columns_of(source)
    known: Codebook = codebook if isinstance(codebook, Mapping) else {}
    if codebook is not None and not isinstance(codebook, Mapping):
        known = read_codebook(codebook)
    given = check_answers(answers, columns)
    name = Path(source).name if isinstance(source, str | PathLike) else "the data"
    said = (
        "a codebook" if isinstance(codebook, Mapping) else None if codebook is None else Path(codebook).name
    )
    origin = f"the columns of {name}" + ("" if said is None else f" and {said}")
    return Draft(tuple(placed_columns(columns, known, given)), given, origin, {})


# The text.


def _lines(made: Draft) -> Iterator[str]:
    count = {role: sum(each.role == role for each in made.columns) for role in ("covariate", "ignored")}
    read = (
        "No row was read." if not made.bought else "Ranges and labels under [bought] were released privately."
    )
    if made.simulated:
        yield f"# {SIMULATED}"
    yield f"# Drafted from {_safe(made.origin)}. {read}"
    yield f'# Answer every "{OPEN}", then run: counterveil check DATA --study FILE'
    yield ""
    yield from _treatment(made)
    yield ""
    yield from _outcome(made)
    yield ""
    yield _said(
        "randomised",
        made.answers.get("randomised", OPEN),
        "true for a trial, false for an observational study",
    )
    for key in ("treated_share", "score", "where"):
        if key in made.answers:
            yield _said(key, _plain(made.answers[key]))
    person = made.role("person")
    if person is not None:
        yield _said("person", person.name, "a person with all their rows is protected")
    ignored = [each.name for each in made.columns if each.role == "ignored"]
    yield ""
    yield f"# {count['ignored']} columns that play no part: identifiers, dates, free text and what was left out."
    yield _said("ignored", ignored)
    if count["covariate"]:
        yield ""
        yield f"# {count['covariate']} covariates. Remove what was measured after treatment began."
        yield "[covariates]"
        yield from (_covariate(each, made) for each in made.columns if each.role == "covariate")
    yield ""
    yield "# Rules for missing values; without one, a missing value is refused."
    yield '# age = { fill = 50 }   or   age = "drop"'
    yield "[missing]"
    if made.bought:
        yield ""
        yield "# Released from these data and charged apart, not known beforehand."
        yield "[bought]"
        yield from (_said(name, cost) for name, cost in made.bought.items())


def _treatment(made: Draft) -> Iterator[str]:
    placed = made.role("treatment")
    if placed is None:
        yield _said("treatment", OPEN, _candidates(made, (codebooks.BINARY, codebooks.CATEGORIES, None)))
        yield _said("treated", made.answers.get("treated", OPEN), "the label that means treated")
        return
    yield _said("treatment", placed.name, _about(placed))
    if "arms" in made.answers:
        yield _said("arms", list(made.answers["arms"]))
        yield _said("reference", made.answers.get("reference", OPEN))
        return
    labels = [label for label, _ in placed.entry.labels]
    numbers: dict[Any, Label] = {number_of(label): label for label in labels}
    treated, control = made.answers.get("treated"), made.answers.get("control")
    zero_one = set(numbers) == {0, 1} or (placed.entry.kind == codebooks.BINARY and not labels)
    if treated is None and zero_one:
        treated, control = numbers.get(1, 1), numbers.get(0, 0) if control is None else control
    if control is None and treated is not None and len(labels) == 2:
        control = _other(labels, treated)
    yield _said("treated", OPEN if treated is None else treated, _listed_labels(placed))
    if control is not None:
        yield _said("control", control)
        # Some labels of the codebook are neither: their rows are left out.
        if len(labels) > 2:
            yield _said("others", "leave out", "rows of the other arms")


def _other(labels: list[Label], treated: Any) -> Label | None:
    """Return the other of two labels, None where the treated one is neither."""
    place = LabelIndex(labels).code(treated)
    return None if place is None else labels[1 - place]


def _outcome(made: Draft) -> Iterator[str]:
    placed = made.role("outcome")
    if placed is None:
        yield _said("outcome", OPEN, _candidates(made, (codebooks.RANGE, codebooks.BINARY, None)))
    else:
        yield _said("outcome", placed.name, _about(placed))
    given = made.answers.get("outcome_range")
    entry = None if placed is None else placed.entry
    if given is None and entry is not None and entry.kind == codebooks.BINARY:
        given = (0, 1)
    if given is None and entry is not None and entry.low is not None and entry.high is not None:
        given = (entry.low, entry.high)
    known = None if given is None else [plain_number(bound) for bound in _bounds(given)]
    yield _said(
        "outcome_range",
        OPEN if known is None else known,
        "lowest and highest possible value; beyond, it is clamped",
    )


def _bounds(given: Any) -> tuple[Any, Any]:
    if not isinstance(given, tuple | list) or len(given) != 2:
        raise refusal("CV-P721b", kind=type(given).__name__)
    bounds = Range(given[0], given[1], "the outcome")
    return bounds.lo, bounds.hi


def _covariate(placed: Placed, made: Draft) -> str:
    comment = _about(placed)
    told = declared_domain(placed, made.answers)
    entry = placed.entry
    if told == {"range": OPEN} and (entry.low is not None or entry.high is not None):
        low, high = ("?" if bound is None else bound for bound in (entry.low, entry.high))
        comment = "; ".join(filter(None, (comment, f"the codebook says {low} to {high}")))
    return _said(placed.name, told, comment)


def _about(placed: Placed) -> str:
    """Return what is known of a column, for the comment behind its line."""
    said = [] if placed.entry.title is None else [placed.entry.title]
    meanings = [f"{label} = {meaning}" for label, meaning in placed.entry.labels if meaning]
    said += [", ".join(meanings[:8]) + (", ..." if len(meanings) > 8 else "")] if meanings else []
    said += ["kind guessed from its name"] if placed.guessed else []
    return "; ".join(said)


def _listed_labels(placed: Placed) -> str:
    listed = ", ".join(toml_value(label) for label, _ in placed.entry.labels[:_MOST_CANDIDATES])
    return f"one of {listed}" if listed else "the label that means treated"


def _candidates(made: Draft, kinds: tuple[str | None, ...]) -> str:
    """Return columns that could play an open part, in the order of the file."""
    fit = [each.name for each in made.columns if each.role == "covariate" and each.entry.kind in kinds]
    listed = ", ".join(fit[:_MOST_CANDIDATES]) + (", ..." if len(fit) > _MOST_CANDIDATES else "")
    return f"one of: {listed}" if fit else "name the column"


def _said(key: str, value: Any, comment: str = "") -> str:
    return f"{toml_key(key)} = {toml_value(value)}" + (f"  # {_safe(comment)}" if comment else "")


def _safe(comment: str) -> str:
    """Return a comment as one line without control characters."""
    return " ".join(printable(comment).split())


def _plain(value: Any) -> Any:
    return value if isinstance(value, str) else plain_number(exact(value, "treated_share"))
