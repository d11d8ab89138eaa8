"""A draft: which part each column plays, the study file that is written, and its checks. No row is read."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import Any

from counterveil.accounting import Ledger, open_ledger
from counterveil.bounded_reading import parse_toml
from counterveil.data import Study, codebooks
from counterveil.data import codebooks as names
from counterveil.data.cells import nearest, row_in_place_of_names
from counterveil.data.checking import Checked, Finding, check_data, declarations, open_questions
from counterveil.data.codebooks import Codebook, Entry, read_codebook
from counterveil.data.conditions import Where
from counterveil.data.domains import (
    Binary,
    Categories,
    Label,
    LabelIndex,
    Range,
    domain_from,
    number_of,
    plain_number,
)
from counterveil.data.sources.dispatch import BOOLEAN, MOMENT, NUMBER, OTHER, TEXT, columns_of
from counterveil.data.study_documents import OBSERVATIONAL, OPEN, TRIAL, toml_key, toml_value
from counterveil.errors import CounterveilError, printable, refusal, shown
from counterveil.privacy import SIMULATED, Unit, exact

ANSWERS = (
    "treatment", "treated", "control", "others", "arms", "reference", "outcome", "outcomes", "outcome_range", "event",
    "horizon", "grid", "assignment", "people", "clusters", "where", "covariates", "columns", "ignored", "missing",
    "estimated",
)  # fmt: skip
# Answers that name one column, and the part that it plays.
_ONE = {"treatment": "treatment", "event": "event", "people": "person", "clusters": "cluster"}
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
    for key, role in _ONE.items():
        told = given.get(key)
        if isinstance(told, Mapping):
            yield from ((name, told[name]) for name in ("order",) if told.get(name) is not None)
            told = told.get("column")
        if told is not None:
            yield role, told


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


_MOST_CANDIDATES = 6
# Meanings of labels by which a codebook says which arm others are compared with.
_CONTROL = ("control", "reference")


def lines(made: Draft) -> Iterator[str]:
    """Yield the lines of the study file; open questions are written as "?"."""
    count = Counter(made.places.values())
    read = (
        "Ranges and labels under [estimated] were released privately."
        if made.estimated
        else "No row was read."
    )
    if made.simulated:
        yield f"# {SIMULATED}"
    yield f"# Drafted from {_safe(made.origin)}. {read}"
    yield f'# Answer every "{OPEN}", then run: counterveil check DATA --study FILE'
    yield ""
    if made.role("treatment") is None:
        candidates = _candidates(made, (codebooks.BINARY, codebooks.CATEGORIES, None))
        yield _said("treatment", OPEN, candidates)
    if not made.all_of("outcome") and made.role("event") is None:
        yield _said("outcome", OPEN, _candidates(made, (codebooks.RANGE, codebooks.BINARY, None)))
    yield _said("assignment", made.answers.get("assignment", OPEN), f'"{TRIAL}" or "{OBSERVATIONAL}"')
    if "where" in made.answers:
        yield _said("where", made.answers["where"])
    yield from _units(made)
    if isinstance(made.answers.get("missing"), str):
        yield _said("missing", made.answers["missing"])
    yield ""
    yield f"# Unused columns: {count['ignored']}."
    for reason in dict.fromkeys(made.set_aside.values()):
        listed = ", ".join(name for name, why in made.set_aside.items() if why == reason)
        yield f"# Set aside ({reason}): {_safe(listed)}"
    yield _said("ignored", [each.name for each in made.columns if each.role == "ignored"])
    if count[CANDIDATE]:
        yield ""
        yield f"# Candidates: {_safe(', '.join(each.name for each in made.all_of(CANDIDATE)))}"
        yield _said("covariates", OPEN, 'choose them: --covariate NAME, --covariate "lab_*", --covariate all')
    yield from _tables(made)


def _tables(made: Draft) -> Iterator[str]:
    if made.role("treatment") is not None:
        yield ""
        yield "[treatment]"
        yield from _treatment(made)
    several = made.all_of("outcome")
    if several or made.role("event") is not None:
        yield ""
        yield "[outcome.ranges]" if len(several) > 1 else "[outcome]"
    if len(several) > 1:
        yield from (_said(each.name, _range(each, made), _about(each)) for each in several)
    elif several or made.role("event") is not None:
        yield from _outcome(made)
    if CANDIDATE not in made.places.values():
        covariates = made.all_of("covariate")
        yield ""
        yield f"# Covariates: {len(covariates)}, all of which must be measured before treatment began."
        yield "[covariates]"
        yield from map(_covariate, covariates)
    yield ""
    yield "# Rules for missing values; without one, a missing value is refused."
    yield '# age = { fill = 50 }   or   age = "drop"'
    missing = made.answers.get("missing", {})
    if isinstance(missing, Mapping):
        yield "[missing]"
        yield from (_said(name, rule) for name, rule in missing.items())
    if made.estimated:
        yield ""
        yield "# Released from these data and charged apart, not known beforehand."
        yield "[estimated]"
        yield from (_said(name, cost) for name, cost in made.estimated.items())


def _treatment(made: Draft) -> Iterator[str]:
    given, placed = made.answers, made.role("treatment")
    assert placed is not None
    yield _said("column", placed.name, _about(placed))
    labels: list[Label] = [label for label, _ in placed.entry.labels]
    treated, control = given.get("treated"), given.get("control", given.get("reference"))
    marked = [label for label, said in placed.entry.labels if said.lower() in _CONTROL]
    if control is None and treated is None and len(marked) == 1:
        control = marked[0]
    if "arms" in given or (len(labels) > 2 and treated is None):
        yield _said("arms", list(given.get("arms", labels)))
        yield _said(
            "reference", OPEN if control is None else control, "the arm that others are compared with"
        )
        return
    numbers: dict[Any, Label] = {number_of(label): label for label in labels}
    zero_one = set(numbers) == {0, 1} or (placed.entry.kind == codebooks.BINARY and not labels)
    if treated is None and control is None and zero_one:
        treated, control = numbers.get(1, 1), numbers.get(0, 0)
    if len(labels) == 2:
        control = _other(labels, treated) if control is None and treated is not None else control
        treated = _other(labels, control) if treated is None and control is not None else treated
    yield _said("treated", OPEN if treated is None else treated, _listed_labels(placed))
    if control is not None:
        yield _said("control", control)
    # Some labels of the codebook are neither: their rows are left out.
    if "others" in given or (control is not None and len(labels) > 2):
        yield _said("others", given.get("others", "drop"), "rows of the other arms")


def _other(labels: list[Label], one: Any) -> Label | None:
    """Return the other of two labels, None where this is neither."""
    place = LabelIndex(labels).code(one)
    return None if place is None else labels[1 - place]


def _outcome(made: Draft) -> Iterator[str]:
    placed, event = made.role("outcome"), made.role("event")
    key = "column" if event is None else "time"
    if placed is None:
        yield _said(key, OPEN, _candidates(made, (codebooks.RANGE, codebooks.BINARY, None)))
    else:
        yield _said(key, placed.name, _about(placed))
    if event is None:
        comment = "lowest and highest possible value; beyond, it is clamped"
        yield _said("range", _range(placed, made), comment)
        return
    yield _said("event", event.name, "1 where the event ended follow-up, 0 where not")
    grid, known = made.answers.get("grid"), None if placed is None else placed.entry.high
    horizon = made.answers.get("horizon", known)
    if horizon is not None or grid is None or isinstance(grid, int):
        yield _said("horizon", OPEN if horizon is None else _number(horizon, "horizon"), "end of follow-up")
    if grid is not None:
        yield _said("grid", grid)


def _range(placed: Placed | None, made: Draft) -> Any:
    """Return the range of an outcome: of its own, else that of all, else an open question."""
    entry, given = None if placed is None else placed.entry, made.answers.get("outcome_range")
    told = placed is not None and placed.told is not None
    if (given is None or told) and entry is not None:
        if entry.kind == codebooks.BINARY:
            given = (0, 1)
        elif entry.low is not None and entry.high is not None:
            given = (entry.low, entry.high)
    return OPEN if given is None else [plain_number(bound) for bound in _bounds(given)]


def _bounds(given: Any) -> tuple[Any, Any]:
    if not isinstance(given, tuple | list) or len(given) != 2:
        raise refusal("CV-P721b", kind=type(given).__name__)
    bounds = Range(given[0], given[1], "the outcome")
    return bounds.lo, bounds.hi


def _units(made: Draft) -> Iterator[str]:
    """Yield whose rows are, and the clusters of people."""
    person, order, cluster = (made.role(role) for role in ("person", "order", "cluster"))
    if person is not None:
        told = made.answers.get("people")
        table = dict(told) if isinstance(told, Mapping) else {"column": person.name}
        if order is not None:
            table["order"] = order.name
        if person.entry.high is not None:
            table.setdefault("max_rows", person.entry.high)
        if "max_rows" in table:
            table.setdefault("order", OPEN)
        people = person.name if set(table) == {"column"} else table
        yield _said("people", people, "a person with all their rows is protected")
    if cluster is not None:
        told = made.answers.get("clusters")
        yield _said("clusters", dict(told) if isinstance(told, Mapping) else cluster.name)


def _covariate(placed: Placed) -> str:
    comment, entry = _about(placed), placed.entry
    told = declared_domain(placed)
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
    said += [f"its name suggests: {placed.aside}"] if placed.role == "covariate" and placed.aside else []
    return "; ".join(said)


def _listed_labels(placed: Placed) -> str:
    listed = ", ".join(toml_value(label) for label, _ in placed.entry.labels[:_MOST_CANDIDATES])
    return f"one of {listed}" if listed else "the label that means treated"


def _candidates(made: Draft, kinds: tuple[str | None, ...]) -> str:
    """Return columns that could play an open part; for an outcome, first those measured after treatment by name."""
    after = made.columns if codebooks.RANGE in kinds else ()
    fit = [each for each in after if each.aside == names.AFTER and each.role == "ignored"]
    fit += [each for each in made.columns if each.role == CANDIDATE and each.entry.kind in kinds]
    listed = ", ".join(each.name for each in fit[:_MOST_CANDIDATES])
    return f"one of: {listed}{', ...' * (len(fit) > _MOST_CANDIDATES)}" if fit else "name the column"


def _said(key: str, value: Any, comment: str = "") -> str:
    return f"{toml_key(key)} = {toml_value(value)}" + (f"  # {_safe(comment)}" if comment else "")


def _safe(comment: str) -> str:
    """Return a comment as one line without control characters."""
    return " ".join(printable(comment).split())


def _number(value: Any, name: str) -> Any:
    return plain_number(exact(value, name))


def check(
    source: Any,
    study: Study | str | PathLike[str],
    *,
    show_labels: bool = False,
    ledger: str | Path | Ledger | None = None,
    dataset: str | None = None,
) -> tuple[Finding, ...]:
    """Return everything that does not fit between data and a study; nothing is spent.

    Findings depend on private rows: they are for the holder of the data alone.

    Parameters
    ----------
    source : object
        The rows: a DataFrame (pandas, Polars, PyArrow, DuckDB, Ibis, Spark), a mapping of names to arrays, or
        the path of a CSV or Parquet file.
    study : Study or path-like
        The study, or the path of a study file; ``"study.toml#NAME"`` names one of several in a file.
    show_labels : bool, default False
        List undeclared labels and how many rows have each. Not with a ledger, through which analysts ask.
    ledger : Ledger or path-like, optional
        Compare the study with the access policy of an account of this ledger; rows are looked at only if the
        policy allows the study. Default: no comparison.
    dataset : str, optional
        Account in the ledger. Default: the only one.

    Returns
    -------
    tuple of Finding
        Empty where everything fits.

    Raises
    ------
    CounterveilError
        Arguments (CV-P013, CV-P720), a file that cannot be read (CV-D), a ledger that cannot be opened
        (CV-L).

    Examples
    --------
    >>> import counterveil as cv
    >>> data = cv.datasets.simulated_trial(n=200, effect=0.3)
    >>> cv.drafting.check(data.frame, data.study)
    ()
    """
    return checked(source, study, show_labels=show_labels, ledger=ledger, dataset=dataset).findings


def checked(
    source: Any,
    study: Study | str | PathLike[str],
    *,
    show_labels: bool = False,
    ledger: str | Path | Ledger | None = None,
    dataset: str | None = None,
) -> Checked:
    """Return the same, with the study and the number of its rows."""
    if show_labels and ledger is not None:
        raise refusal("CV-P720")
    document, declared, found = declarations(study)
    if declared is None:
        return Checked(tuple(found), None)
    refused = [] if ledger is None else _refused_by_access_policy(declared, ledger, dataset)
    if refused:
        return Checked((*found, *refused), declared)
    seen = check_data(source, document, declared, show_labels)
    findings = (*found, *seen.findings)
    return replace(seen, findings=findings, rows=None if found else seen.rows)


def _refused_by_access_policy(study: Study, place: str | Path | Ledger, dataset: str | None) -> list[Finding]:
    """Return why an account takes no question about this study, at whatever level; none where it does."""
    ledger = place if isinstance(place, Ledger) else open_ledger(place)
    try:
        names = [account.dataset for account in ledger.datasets()]
        name = dataset or (names[0] if len(names) == 1 else "")
        if name not in names:
            raise refusal("CV-P013", dataset=dataset, names=len(names))
        refusals = [_refusal(ledger, name, study, unit) for unit in Unit]
        return [] if None in refusals else [Finding._of(error) for error in refusals[:1] if error is not None]
    finally:
        if ledger is not place:
            ledger.close()


def _refusal(ledger: Ledger, dataset: str, study: Study, unit: Unit) -> CounterveilError | None:
    from counterveil.results.question import uses_of  # with a ledger alone: it loads all results

    try:
        ledger.check_study(
            dataset, uses_of(study, unit, "ate" if study.event is None else "survival", "auto")
        )
    except CounterveilError as error:
        return error
    return None


@dataclass(frozen=True)
class Draft:
    """A drafted study: its text, the role of each column, and what is still open.

    `draft` and `estimate_ranges` return it.

    Attributes
    ----------
    columns : tuple
        Every column of the source, with its role and what is known of it.
    answers : mapping
        What people decided.
    origin : str
        Where the draft comes from, in words.
    estimated : mapping of str to str
        Columns whose range or labels were released from the data, and what that cost.
    simulated : bool, default False
        Whether the noise came from a seed and protects nobody.

    Examples
    --------
    >>> import counterveil as cv
    >>> made = cv.drafting.draft(["arm", "age"], answers={"treatment": "arm", "covariates": "all"})
    >>> made.places
    {'arm': 'treatment', 'age': 'covariate'}
    """

    columns: tuple[Placed, ...]
    answers: Mapping[str, Any]
    origin: str
    estimated: Mapping[str, str]
    simulated: bool = False

    @cached_property
    def toml(self) -> str:
        """The text of the study file; open questions are written as "?"."""
        return "\n".join(lines(self)) + "\n"

    @cached_property
    def document(self) -> dict[str, Any]:
        """The study file as a dictionary."""
        return parse_toml(self.toml)

    @cached_property
    def open_questions(self) -> tuple[Finding, ...]:
        """What people have to decide, as findings with the line that answers each."""
        return tuple(open_questions(self.document))

    @property
    def places(self) -> dict[str, str]:
        """Role of each column by name; "candidate" while no covariates are chosen."""
        return {each.name: each.role for each in self.columns}

    @property
    def set_aside(self) -> dict[str, str]:
        """Unused columns that look like one of four kinds, and as which.

        The kinds are identifiers, dates, free text, and what is measured after treatment.
        """
        return {each.name: each.aside for each in self.columns if each.role == "ignored" and each.aside}

    @property
    def template(self) -> str:
        """A codebook (CSV) to fill in a spreadsheet, with what is known of every column."""
        entries = {}
        for each in self.columns:
            unused = each.role in (CANDIDATE, "ignored")
            role = None if unused and not each.aside else each.role
            title = each.entry.title or (each.aside if unused else None)
            entries[each.name] = replace(each.entry, role=role, title=title)
        return codebooks.template(entries)

    def study(self) -> Study:
        """Return the study.

        Returns
        -------
        Study
            The declared study.

        Raises
        ------
        CounterveilError
            Questions are open (CV-S120), or an answer does not make a study (CV-S).
        """
        return Study.from_dict(self.document)

    def save(self, path: str | PathLike[str]) -> None:
        """Write the study file.

        Parameters
        ----------
        path : path-like
            The file; an existing one is replaced.
        """
        Path(path).write_text(self.toml, encoding="utf-8")

    def __str__(self) -> str:
        return self.toml

    def role(self, role: str) -> Placed | None:
        """Return the first column that plays a role.

        Parameters
        ----------
        role : str
            "treatment", "outcome", "event", "covariate", "person", "order", "cluster", "ignored" or
            "candidate".

        Returns
        -------
        Placed or None
            The column with what is known of it; None where no column plays the role.
        """
        return next(iter(self.all_of(role)), None)

    def all_of(self, role: str) -> list[Placed]:
        """Return all columns that play a role.

        Parameters
        ----------
        role : str
            "treatment", "outcome", "event", "covariate", "person", "order", "cluster", "ignored" or
            "candidate".

        Returns
        -------
        list of Placed
            The columns with what is known of them; outcomes in the order in which they were named.
        """
        found = [each for each in self.columns if each.role == role]
        named = list(self.answers.get("outcomes", ())) if role == "outcome" else []
        return sorted(found, key=lambda each: named.index(each.name) if each.name in named else len(named))


def draft(
    source: Any,
    codebook: str | PathLike[str] | Codebook | None = None,
    answers: Mapping[str, Any] | None = None,
) -> Draft:
    """Draft a study file from the header and types of data, a codebook and answers; no row is read.

    Covariates are those that the codebook or the answers choose. A pattern chooses no column whose name looks
    like an identifier, a date, or a measurement after treatment; `Draft.set_aside` lists these.

    Parameters
    ----------
    source : object
        The data: a DataFrame (pandas, Polars, PyArrow, DuckDB, Ibis, Spark), a mapping of names to arrays,
        the path of a CSV or Parquet file, or a list of the names of columns.
    codebook : path-like or mapping of str to Entry, optional
        A REDCap data dictionary or a filled `Draft.template` (.csv), a Table Schema or data package (.json),
        an SPSS, Stata or SAS file (with the extra ``codebooks``), or entries by column. Default: none.
    answers : mapping, optional
        What people decided: ``treatment``, ``treated``, ``control``, ``arms``, ``reference``, ``others``;
        ``outcome``, ``outcome_range``, ``event``, ``horizon``, ``grid``; ``where``; as a study file writes them,
        ``assignment`` ("trial", "observational", {"share": 0.5} or {"propensity": "column"}), ``people`` and
        ``clusters`` (a name or a table) and ``missing``; ``outcomes``, ``covariates`` and ``ignored`` (lists of
        names and patterns such as "lab_*", or "all"); ``columns``: a mapping from names and patterns to domains,
        pairs of bounds or lists of labels. Default: none.

    Returns
    -------
    Draft
        The study file as text, the role of each column, and the open questions.

    Raises
    ------
    CounterveilError
        Answers that cannot be used (CV-P721), a codebook that cannot be read (CV-S126), data that cannot be
        read (CV-D).

    Examples
    --------
    >>> import counterveil as cv
    >>> answers = {"treatment": "arm", "outcome": "relapse", "assignment": "trial", "covariates": "all"}
    >>> answers["columns"] = {"arm": "binary", "relapse": "binary", "age": (18, 90)}
    >>> made = cv.drafting.draft(["record_id", "arm", "age", "bmi", "relapse"], None, answers)
    >>> [question.column for question in made.open_questions]
    ['bmi']
    """
    columns = columns_of(source)
    no_names = row_in_place_of_names(columns)
    if no_names is not None:
        raise no_names
    known: Codebook = codebook if isinstance(codebook, Mapping) else {}
    if codebook is not None and not isinstance(codebook, Mapping):
        known = read_codebook(codebook)
    given = check_answers(answers, columns)
    name = Path(source).name if isinstance(source, str | PathLike) else "the data"
    said = (
        "a codebook" if isinstance(codebook, Mapping) else None if codebook is None else Path(codebook).name
    )
    origin = f"the columns of {name}" + ("" if said is None else f" and {said}")
    return Draft(tuple(placed_columns(columns, known, given)), given, origin, given.get("estimated", {}))


def answers_in(document: Mapping[str, Any]) -> dict[str, Any]:
    """Return the answers that a study file holds, to continue its draft; what is open is left out.

    Parameters
    ----------
    document : mapping
        The study file as a dictionary.

    Returns
    -------
    dict
        Answers, as `draft` takes them.

    Examples
    --------
    >>> import counterveil as cv
    >>> made = cv.drafting.draft(["arm", "age"], answers={"treatment": "arm", "covariates": "all"})
    >>> cv.drafting.answers_in(made.document)["treatment"]
    'arm'
    """
    beside = ("assignment", "where", "estimated", "missing", "covariates", "ignored")
    found = {key: document[key] for key in beside if key in document and not is_open({"": document[key]})}
    treatment = document.get("treatment", OPEN)
    told = treatment if isinstance(treatment, Mapping) else {"column": treatment}
    found |= {"treatment" if key == "column" else key: value for key, value in told.items() if value != OPEN}
    described: dict[str, Any] = {}
    outcome = document.get("outcome", OPEN)
    if isinstance(outcome, Mapping):
        ranges = outcome.get("ranges", {})
        column = outcome.get("time" if "event" in outcome else "column", OPEN)
        if ranges or column != OPEN:
            found["outcomes"] = list(ranges) or [column]
        described |= {name: {"range": told} for name, told in ranges.items()}
        answers = {"range": "outcome_range", "event": "event", "horizon": "horizon", "grid": "grid"}
        found |= {answers[key]: value for key, value in outcome.items() if key in answers and value != OPEN}
    for key in ("people", "clusters"):
        rows = document.get(key, OPEN)
        if isinstance(rows, Mapping):
            found[key] = {name: told for name, told in rows.items() if told != OPEN}
        elif rows != OPEN:
            found[key] = rows
    for key in ("covariates", "ignored"):
        table = found.get(key)
        if isinstance(table, Mapping):
            found[key] = list(table)
            described |= dict(table)
    # Columns that names set aside can still be chosen.
    aside = codebooks.suspected(found.get("ignored", ()))
    found["ignored"] = [name for name in found.get("ignored", ()) if name not in aside]
    return found | ({"columns": described} if described else {})
