"""The pages of studies: a list, a text to edit, and what the data and the charter say of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from counterveil.console.refusals import bad_name, changed
from counterveil.console.visit import Page, Redirect, Visit
from counterveil.console.workspace import LONGEST_STUDY, DataSet, StudyText
from counterveil.data import Study, Table, check_columns, source_in_database
from counterveil.errors import CounterveilError
from counterveil.privacy import Unit
from counterveil.results.question import Question

_TEMPLATE = """\
# What is public about the data: roles of columns, ranges and labels. Nothing here is read off the rows.
treatment = "?"
treated = 1            # the label of the treated
outcome = "?"
outcome_range = [0, 1]  # from public knowledge; values outside are clamped
# randomised = true    # only if treatment was assigned at random

[covariates]
# age = { range = [18, 100] }
# sex = { categories = ["female", "male"] }
# smoker = "binary"

[missing]
# age = "drop"         # which rows lack an age is then public; { fill = 50 } keeps it private
"""


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that a check found: a code, what it is, and what would mend it."""

    code: str
    what: str
    mend: str | None = None
    blocking: bool = True


def all_studies(visit: Visit) -> Page:
    """Return the list of studies, and of those that analysts proposed."""
    listed = [_line(visit, name, False) for name in visit.workspace.studies()]
    proposed = [_line(visit, name, True) for name in visit.workspace.studies(proposed=True)]
    return Page("studies.html", {"studies": listed, "proposed": proposed})


def _line(visit: Visit, name: str, proposed: bool) -> dict[str, Any]:
    text = visit.workspace.study(name, proposed)
    study, error = _read(text)
    about = (
        "" if study is None else f"{study.treatment} on {study.outcome}, {len(study.covariates)} covariates"
    )
    return {"name": name, "proposed": proposed, "about": about, "error": error}


def _read(text: StudyText) -> tuple[Study | None, CounterveilError | None]:
    """Return the study in a text, or why there is none."""
    try:
        return text.study(), None
    except CounterveilError as error:
        return None, error


def new_study(visit: Visit) -> Page:
    """Return the form of a new study."""
    return Page("study_new.html", {"datasets": visit.workspace.datasets()[0]})


def make_study(visit: Visit) -> Redirect:
    """Write a first text of a study under a new name."""
    name = visit.word("name")
    proposed = not visit.person.steward
    if name in visit.workspace.studies(proposed):
        raise bad_name(f"{name}, which exists already")
    visit.workspace.save_study(name, _TEMPLATE, "", proposed)
    return Redirect(_address(name, proposed))


def edit(visit: Visit) -> Page:
    """Return the text of a study in a form, and whether it can be read."""
    found = _named(visit)
    study, error = _read(found)
    return Page(
        "study.html",
        {
            "study": found,
            "declared": study,
            "error": error,
            "datasets": visit.workspace.datasets()[0],
            # What the steward accepted is not the analyst's to change: rows are attached with it.
            "editable": visit.person.steward or found.proposed,
        },
    )


def save(visit: Visit) -> Redirect:
    """Write the text of a study; an analyst's goes among the proposed ones."""
    proposed = "proposed" in visit.query or "proposed" in visit.form
    if not proposed:
        visit.require_steward("to change the study, or propose one under another name")
    text = visit.form.get("text", "")
    if len(text) > LONGEST_STUDY:
        raise bad_name("a study that is too long")
    visit.workspace.save_study(visit.path["name"], text, visit.word("before"), proposed)
    return Redirect(_address(visit.path["name"], proposed))


def accept(visit: Visit) -> Redirect:
    """Let a proposed study be asked with."""
    visit.require_steward("to accept the study")
    visit.workspace.accept(visit.path["name"], visit.word("before"))
    return Redirect(_address(visit.path["name"], False))


def check(visit: Visit) -> Page:
    """Return what stands between a study and an answer: its charter for everybody, its rows for the steward."""
    found = _named(visit)
    data = visit.workspace.dataset(visit.word("data"))
    study, error = _read(found)
    findings = [] if error is None else [_finding(error)]
    if study is not None:
        findings += _charter_findings(visit, data, study, visit.word("protects") or "outcome")
        findings += _row_findings(visit, data, study)
    return Page(
        "check.html",
        {
            "study": found,
            "dataset": data,
            "findings": findings,
            "rows_checked": visit.person.steward and data.source is not None,
            "protects": visit.word("protects") or "outcome",
        },
    )


def _named(visit: Visit) -> StudyText:
    proposed = "proposed" in visit.query or "proposed" in visit.form
    return visit.workspace.study(visit.path["name"], proposed)


def _charter_findings(visit: Visit, data: DataSet, study: Study, protects: str) -> list[Finding]:
    """Return what the account's charter does not allow of a study; no row is read."""
    asked = Question.ask(
        protects=Unit.parse(protects).value,
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
        return [_finding(error)]
    return []


def _row_findings(visit: Visit, data: DataSet, study: Study) -> list[Finding]:
    """Return what does not fit in the rows, to their steward only: an analyst could test cells with a study."""
    if data.source is None or not visit.person.steward:
        return []
    try:
        source = data.source.open()
        if source_in_database(source):
            check_columns(source, study)
        else:
            Table.attach(source, study)
    except CounterveilError as error:
        return [_finding(error)]
    return []


def _finding(error: CounterveilError) -> Finding:
    return Finding(error.code, f"{error.problem}; expected {error.expected}, got {error.got}", error.fix)


def _address(name: str, proposed: bool) -> str:
    return f"/studies/{name}" + ("?proposed=1" if proposed else "")


def same_study(found: StudyText, digest: str) -> None:
    """Raise CV-W008 where a study is another one than that with this digest."""
    if found.digest != digest:
        raise changed(f"the study {found.name}")
