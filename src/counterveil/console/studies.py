"""The pages of studies: a list, a table to fill in, and what the data and the access policy say of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from difflib import unified_diff
from functools import partial
from typing import Any

from counterveil.console.columns import (
    KINDS,
    MOST,
    ROLES,
    RULES,
    ColumnRow,
    StudyForm,
    form_given,
    form_of,
    form_of_draft,
    text_of,
    with_described,
)
from counterveil.console.visit import FormFault, Page, Redirect, Visit, coded, fault_of_form, status_of, wrong
from counterveil.console.workspace import (
    LONGEST_PROPOSAL,
    LONGEST_STUDY,
    SEVERAL,
    DataSet,
    KeptReadings,
    RowsPlace,
    StudyText,
)
from counterveil.data import Study
from counterveil.data.checking import Finding, check_data, sound_study
from counterveil.data.sources.dispatch import columns_of
from counterveil.drafting import draft
from counterveil.errors import CounterveilError, refusal
from counterveil.privacy import Unit
from counterveil.results.question import Question

# An analyst cannot fill the disk with studies that nobody looks at.
_MOST_PROPOSED = 100
# Longer texts are not compared line by line: that takes time that grows with the square of their lengths.
_MOST_LINES = 1_000


@dataclass(frozen=True, slots=True)
class StudyLine:
    """What lists say of a study: what it is about, how much of it is open or wrong, and the columns that it names."""

    name: str
    proposed: bool
    about: str = ""
    open: int = 1
    columns: frozenset[str] = frozenset()


_LINES: KeptReadings[StudyLine] = KeptReadings()


def all_studies(visit: Visit) -> Page:
    """Return the list of studies, and of those that analysts proposed."""
    return Page("studies.html", {"studies": study_lines(visit), "proposed": study_lines(visit, True)})


def study_lines(visit: Visit, proposed: bool = False) -> list[StudyLine]:
    """Return the studies of the folder; a file that cannot be read is one fault, and not one of the list."""
    found = []
    for name in visit.workspace.studies(proposed):
        try:
            text = visit.workspace.study(name, proposed)
            found.append(_LINES.of(f"{proposed}\n{name}\n{text.text}", partial(_line, text)))
        except CounterveilError:
            found.append(StudyLine(name, proposed))
    return found


def _line(text: StudyText) -> StudyLine:
    study, findings = _read(text)
    if study is not None:
        said = f"{study.treatment} on {study.outcome_name}, {len(study.covariates)} covariates"
        return StudyLine(text.name, text.proposed, said, 0, frozenset(study.read_columns))
    form = _form(text)
    named = frozenset(row.name for row in form.rows) if form is not None else frozenset()
    return StudyLine(text.name, text.proposed, "", len(findings), named)


def fitting(lines: list[StudyLine], visit: Visit, source: RowsPlace | None) -> list[StudyLine]:
    """Return the studies whose columns the rows have; all of them where the rows are not in a file."""
    columns = None if source is None else visit.workspace.columns(source)
    return [line for line in lines if columns is None or (columns and line.columns <= columns)]


def readable(
    visit: Visit, sources: dict[str, RowsPlace]
) -> tuple[dict[str, RowsPlace], list[tuple[str, CounterveilError]]]:
    """Return the sources whose columns can be read, and the files of the others with the reason of each."""
    faults = {name: visit.workspace.fault(source) for name, source in sources.items()}
    listed = [(sources[name].name, fault) for name, fault in faults.items() if fault is not None]
    return {name: source for name, source in sources.items() if faults[name] is None}, listed


def _form(text: StudyText) -> StudyForm | None:
    """Return a study as a table, None where it has none: one of several studies in a file, or a text that is broken."""
    if SEVERAL in text.name:
        return None
    try:
        return form_of(text.text, text.document())
    except CounterveilError:
        return None


def _read(text: StudyText) -> tuple[Study | None, list[Finding]]:
    """Return the study in a text, None where it is not whole, and everything that is missing or wrong in it."""
    study, findings = _sound(text)
    return None if findings else study, findings


def new_study(visit: Visit, fault: FormFault | None = None) -> Page:
    """Return the form of a new study, as it was filled in."""
    sources, faults = readable(visit, _sources(visit))
    given = visit.word("source")
    taken = {line.name for line in study_lines(visit, not visit.person.steward)}
    names = (given if number == 1 else f"{given}-{number}" for number in range(1, len(taken) + 3))
    return Page(
        "study_new.html",
        {
            "sources": list(sources),
            # What is wrong with a file is its steward's to know.
            "faults": faults if visit.person.steward else [],
            # A file beside the rows may itself hold rows that nobody registered yet.
            "codebooks": visit.workspace.codebooks(everywhere=visit.person.steward),
            "given": {
                "name": visit.word("name") or next(name for name in names if name not in taken),
                "source": given,
                "codebook": visit.word("codebook"),
            },
            "fault": fault,
        },
        200 if fault is None else status_of(fault.error),
    )


def make_study(visit: Visit) -> Redirect | Page:
    """Write a table of columns under a new name, or return the form with what is wrong in it; no row is read."""
    try:
        return _make_study(visit)
    except CounterveilError as error:
        field = "name" if error.code == "CV-W010" else ""
        return new_study(visit, replace(fault_of_form(error, {}), field=field))


def _make_study(visit: Visit) -> Redirect:
    name, proposed = visit.word("name"), not visit.person.steward
    known = {each.partition(SEVERAL)[0] for each in visit.workspace.studies(proposed)}
    if proposed and len(known) >= _MOST_PROPOSED:
        raise wrong(f"at most {_MOST_PROPOSED} proposed studies", "as many are waiting")
    if SEVERAL in name or name in known:
        raise refusal("CV-W010", name=f"{name}, which exists already or names one study of several")
    columns, codebook = _columns_by_name(visit), visit.word("codebook")
    source = columns.get(visit.word("source"))
    if source is None:
        raise wrong("source: columns of a data set", "another name")
    if codebook and codebook not in visit.workspace.codebooks(everywhere=visit.person.steward):
        raise wrong("codebook: a file of the folder", "another name")
    drafted = draft(source(), str(visit.workspace.folder / codebook) if codebook else None)
    visit.workspace.save_study(name, text_of(form_of_draft(drafted), {}), "", proposed)
    return Redirect(_address(name, proposed))


def _columns_by_name(visit: Visit) -> dict[str, Callable[[], Any]]:
    """Return where the columns of a draft come from; an analyst gets their names and not their types."""
    if visit.person.steward:
        return {name: source.open for name, source in _sources(visit).items()}
    return {name: partial(_names, source) for name, source in _sources(visit).items()}


def _sources(visit: Visit) -> dict[str, RowsPlace]:
    """Return the rows of accounts by their names, for the steward those of the folder too."""
    datasets = [each for each in visit.workspace.datasets()[0] if each.source is not None]
    found = {each.account.dataset: each.source for each in datasets if each.source is not None}
    return visit.workspace.sources() | found if visit.person.steward else found


def _names(source: RowsPlace) -> list[str]:
    return list(columns_of(source.open()))


def edit(visit: Visit) -> Page:
    """Return a study as a table to fill in, and everything that is missing or wrong in it."""
    found = _named(visit)
    return _editor(visit, found, _form(found), None)


def _editor(visit: Visit, found: StudyText, form: StudyForm | None, refused: CounterveilError | None) -> Page:
    """Return the page of a study; a form that was refused is shown as it was sent."""
    study, findings = _read(found)
    before = visit.workspace.accepted(found.name) if found.proposed else None
    about = {one.column: one for one in reversed(findings) if one.column is not None}
    names = frozenset() if form is None else frozenset(row.name for row in form.rows)
    line = StudyLine(found.name, found.proposed, "", 0, names)
    datasets = [
        each for each in visit.workspace.datasets()[0] if each.source and fitting([line], visit, each.source)
    ]
    loose = visit.workspace.loose() if visit.person.steward else {}
    loose = {name: source for name, source in loose.items() if fitting([line], visit, source)}
    if form is not None:
        # Columns of the rows that the study does not name are there to be used.
        sources = [*(each.source for each in datasets if each.source), *loose.values()]
        known = {name for source in sources for name in visit.workspace.columns(source) or ()}
        more = tuple(ColumnRow(name) for name in sorted(known - names)[: MOST - len(names)])
        form = replace(form, rows=(*form.rows, *more))
    rows = [] if form is None else form.sorted(set(about))
    described = 0
    if form is not None:
        described = sum(old != new for old, new in zip(form.rows, with_described(form).rows, strict=True))
    facts: dict[str, Any] = {
        "study": found,
        "declared": study,
        "findings": findings,
        "about": about,
        "refused": refused,
    }
    # One row more, for a column that is not listed.
    facts |= {"form": form, "rows": [*rows, (len(rows), ColumnRow(""))], "described": described}
    facts |= {"choices": {"roles": ROLES, "kinds": KINDS, "rules": RULES}, "replaced": before}
    facts["difference"] = None if before is None else _difference(before.text, found.text)
    # What the steward accepted is not the analyst's to change: rows are attached with it.
    editable = form is not None and (visit.person.steward or found.proposed)
    facts |= {"datasets": datasets, "loose": list(loose), "editable": editable}
    return Page("study.html", facts, 200 if refused is None else status_of(refused))


def save(visit: Visit) -> Page | Redirect:
    """Write the study that a table makes; an analyst's goes among the proposed ones."""
    proposed = "proposed" in visit.query or "proposed" in visit.form
    if not proposed:
        visit.require_steward("to change the study, or propose one under another name")
    found = _named(visit)
    same_study(found, visit.word("before"))
    form = form_given(visit.form)
    if "described" in visit.form:
        form = with_described(form)
    longest = LONGEST_STUDY if visit.person.steward else LONGEST_PROPOSAL
    try:
        text = text_of(form, found.document(), found.text)
        if len(text) > longest:
            raise wrong(f"a study of at most {longest:,} characters", f"{len(text):,}")
    except CounterveilError as error:
        return _editor(visit, found, form, error)
    visit.workspace.save_study(found.name, text, found.digest, proposed)
    return Redirect(_address(found.name, proposed))


def accept(visit: Visit) -> Redirect:
    """Let a proposed study be asked with."""
    visit.require_steward("to accept the study")
    visit.workspace.accept(visit.path["name"], visit.word("before"), visit.word("replaces"))
    return Redirect(_address(visit.path["name"], False))


def check(visit: Visit) -> Page:
    """Return what stands between a study and an answer: its access policy for everybody, its rows for the steward."""
    found = _named(visit)
    data = visit.workspace.dataset(visit.word("data"))
    protects = Unit.parse(visit.word("protects") or "outcome")
    study, findings = _read(found)
    refused = [] if study is None else _access_policy_findings(visit, data, study, protects)
    findings += refused
    # An analyst could test cells with a study, and rows are looked at only for a study that the access policy allows.
    looked = visit.person.steward and data.source is not None and not refused
    rows = None
    if looked and data.source is not None:
        declared, _ = _sound(found)
        if declared is not None:
            seen = check_data(data.source.open(), found.document(), declared, bool(visit.word("labels")))
            findings, rows = [*findings, *seen.findings], seen.rows
    return Page(
        "check.html",
        {
            "study": found,
            "dataset": data,
            "findings": findings,
            "fits": not any(one.blocking for one in findings),
            "rows_checked": looked,
            "rows": rows,
            "protects": protects.value,
        },
    )


def _sound(text: StudyText) -> tuple[Study | None, list[Finding]]:
    """Return the study that the sound declarations of a text make."""
    try:
        return sound_study(text.document())
    except Exception as fault:
        return None, [Finding._of(coded(fault))]


def _difference(before: str, after: str) -> list[tuple[str, str]] | None:
    """Return the lines that differ with some around them, each with its sign; None where texts are too long."""
    old, new = before.splitlines(), after.splitlines()
    if max(len(old), len(new)) > _MOST_LINES:
        return None
    found = list(unified_diff(old, new, n=2, lineterm=""))[2:]
    return [(line[:1], line[1:]) for line in found if not line.startswith("@@")]


def _named(visit: Visit) -> StudyText:
    proposed = "proposed" in visit.query or "proposed" in visit.form
    return visit.workspace.study(visit.path["name"], proposed)


def _access_policy_findings(visit: Visit, data: DataSet, study: Study, unit: Unit) -> list[Finding]:
    """Return what the account's access policy does not allow of a study; no row is read."""
    asked = Question.ask(
        protects=unit.value,
        epsilon=1,
        delta=0,
        estimand="ATE",
        method="auto",
        level=0.95,
        mechanism=None,
        request_id=None,
    )
    try:
        with visit.workspace.opened(data.ledger) as book:
            book.check_study(data.account.dataset, asked.uses(study))
    except CounterveilError as error:
        return [Finding._of(error)]
    return []


def _address(name: str, proposed: bool) -> str:
    return f"/studies/{name}" + ("?proposed=1" if proposed else "")


def same_study(found: StudyText, digest: str) -> None:
    """Raise CV-W008 where a study is another one than that with this digest."""
    if found.digest != digest:
        raise refusal("CV-W008", what=f"the study {found.name}")
