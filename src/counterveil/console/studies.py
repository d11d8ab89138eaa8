"""The pages of studies: a list, a text to edit, and what the data and the charter say of it."""

from __future__ import annotations

from collections.abc import Callable
from difflib import unified_diff
from functools import partial
from typing import Any

from counterveil.console.refusals import coded
from counterveil.console.visit import Page, Redirect, Visit
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
from counterveil.data.labels import number_of, plain_number
from counterveil.data.sources.dispatch import columns_of
from counterveil.drafting import draft
from counterveil.errors import CounterveilError, refusal
from counterveil.privacy import Unit
from counterveil.results.question import Question

# An analyst cannot fill the disk with studies that nobody looks at.
_MOST_PROPOSED = 100
_ANSWERS = ("treatment", "treated", "outcome", "person")
# Longer texts are not compared line by line: that takes time that grows with the square of their lengths.
_MOST_LINES = 1_000
# What the list says of a text, and how much of it is open or wrong.
_LINES: KeptReadings[tuple[str, int]] = KeptReadings()


def all_studies(visit: Visit) -> Page:
    """Return the list of studies, and of those that analysts proposed."""
    listed = [_line(visit, name, False) for name in visit.workspace.studies()]
    proposed = [_line(visit, name, True) for name in visit.workspace.studies(proposed=True)]
    return Page("studies.html", {"studies": listed, "proposed": proposed})


def _line(visit: Visit, name: str, proposed: bool) -> dict[str, Any]:
    try:
        text = visit.workspace.study(name, proposed)
        about, faults = _LINES.of(f"{name}\n{text.text}", lambda: _about(text))
    except CounterveilError:
        # A file that cannot be read is one fault, and not one of the list.
        about, faults = "", 1
    return {"name": name, "proposed": proposed, "about": about, "open": faults}


def _about(text: StudyText) -> tuple[str, int]:
    study, findings = _read(text)
    said = (
        "" if study is None else f"{study.treatment} on {study.outcome}, {len(study.covariates)} covariates"
    )
    return said, len(findings)


def _read(text: StudyText) -> tuple[Study | None, list[Finding]]:
    """Return the study in a text, None where it is not whole, and everything that is missing or wrong in it."""
    study, findings = _sound(text)
    return None if findings else study, findings


def new_study(visit: Visit) -> Page:
    """Return the form of a new study."""
    return Page(
        "study_new.html",
        {
            "sources": list(_columns_by_name(visit)),
            # A file beside the rows may itself hold rows that nobody registered yet.
            "codebooks": visit.workspace.codebooks(everywhere=visit.person.steward),
            "given": {
                name: visit.word(name) for name in ("name", "source", "codebook", "randomised", *_ANSWERS)
            },
        },
    )


def make_study(visit: Visit) -> Redirect:
    """Write a draft under a new name: every column placed, every open question marked; no row is read."""
    name, proposed = visit.word("name"), not visit.person.steward
    known = {each.partition(SEVERAL)[0] for each in visit.workspace.studies(proposed)}
    if proposed and len(known) >= _MOST_PROPOSED:
        raise refusal(
            "CV-W004", expected=f"at most {_MOST_PROPOSED} proposed studies", got="as many are waiting"
        )
    if SEVERAL in name or name in known:
        raise refusal("CV-W010", name=f"{name}, which exists already or names one study of several")
    columns, codebook = _columns_by_name(visit), visit.word("codebook")
    source = columns.get(visit.word("source"))
    if source is None:
        raise refusal("CV-W004", expected="source: columns of a data set", got="another name")
    if codebook and codebook not in visit.workspace.codebooks(everywhere=visit.person.steward):
        raise refusal("CV-W004", expected="codebook: a file of the folder", got="another name")
    answers = _answers(visit)
    drafted = draft(source(), str(visit.workspace.folder / codebook) if codebook else None, answers)
    visit.workspace.save_study(name, drafted.toml, "", proposed)
    return Redirect(_address(name, proposed))


def _answers(visit: Visit) -> dict[str, Any]:
    """Return what was decided about a draft; the rest stays open."""
    answers: dict[str, Any] = {key: visit.word(key) for key in _ANSWERS if visit.word(key)}
    if "treated" in answers:
        number = number_of(answers["treated"])
        answers["treated"] = answers["treated"] if number is None else plain_number(number)
    randomised = visit.word("randomised")
    return answers | ({"randomised": randomised == "yes"} if randomised else {})


def _columns_by_name(visit: Visit) -> dict[str, Callable[[], Any]]:
    """Return where the columns of a draft come from; an analyst gets their names and not their types."""
    datasets = [each for each in visit.workspace.datasets()[0] if each.source is not None]
    sources = {each.account.dataset: each.source for each in datasets if each.source is not None}
    if visit.person.steward:
        sources = visit.workspace.sources() | sources
        return {name: source.open for name, source in sources.items()}
    return {name: partial(_names, source) for name, source in sources.items()}


def _names(source: RowsPlace) -> list[str]:
    return list(columns_of(source.open()))


def edit(visit: Visit) -> Page:
    """Return the text of a study in a form, and everything that is missing or wrong in it."""
    found = _named(visit)
    study, findings = _read(found)
    before = visit.workspace.accepted(found.name) if found.proposed else None
    return Page(
        "study.html",
        {
            "study": found,
            "declared": study,
            "findings": findings,
            "replaced": before,
            "difference": None if before is None else _difference(before.text, found.text),
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
    longest = LONGEST_STUDY if visit.person.steward else LONGEST_PROPOSAL
    if len(text) > longest:
        raise refusal("CV-W004", expected=f"text: at most {longest:,} characters", got=f"{len(text):,}")
    visit.workspace.save_study(visit.path["name"], text, visit.word("before"), proposed)
    return Redirect(_address(visit.path["name"], proposed))


def accept(visit: Visit) -> Redirect:
    """Let a proposed study be asked with."""
    visit.require_steward("to accept the study")
    visit.workspace.accept(visit.path["name"], visit.word("before"), visit.word("replaces"))
    return Redirect(_address(visit.path["name"], False))


def check(visit: Visit) -> Page:
    """Return what stands between a study and an answer: its charter for everybody, its rows for the steward."""
    found = _named(visit)
    data = visit.workspace.dataset(visit.word("data"))
    protects = Unit.parse(visit.word("protects") or "outcome")
    study, findings = _read(found)
    refused = [] if study is None else _charter_findings(visit, data, study, protects)
    findings += refused
    # An analyst could test cells with a study, and rows are looked at only for a study that the charter allows.
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
        return None, [Finding.of(coded(fault))]


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


def _charter_findings(visit: Visit, data: DataSet, study: Study, unit: Unit) -> list[Finding]:
    """Return what the account's charter does not allow of a study; no row is read."""
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
        return [Finding.of(error)]
    return []


def _address(name: str, proposed: bool) -> str:
    return f"/studies/{name}" + ("?proposed=1" if proposed else "")


def same_study(found: StudyText, digest: str) -> None:
    """Raise CV-W008 where a study is another one than that with this digest."""
    if found.digest != digest:
        raise refusal("CV-W008", what=f"the study {found.name}")
