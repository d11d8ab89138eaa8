"""The pages of a federation: studies of a coordinator, and the requests that wait for a site's steward."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

from counterveil.console.refusals import bad_form, unknown
from counterveil.console.visit import Page, Redirect, Visit
from counterveil.errors import CounterveilError, masked
from counterveil.federation import site_files, study_files
from counterveil.federation.site_files import APPROVED, REJECTED, SiteFile, SiteRecords


def overview(visit: Visit) -> Page:
    """Return the studies of the folder with what their sites answered, and the sites with what waits."""
    sites = (
        [_site(path) for path in visit.workspace.federation(site_files.FILE)] if visit.person.steward else []
    )
    folders = visit.workspace.federation(study_files.FILE)
    studies = [_study(path) for path in folders if (path / study_files.DECLARATION).is_file()]
    return Page("federation.html", {"sites": sites, "studies": studies})


def decide(visit: Visit) -> Redirect:
    """Write down the steward's decision on a request."""
    visit.require_steward("to decide on the request")
    decision = {"approve": APPROVED, "decline": REJECTED}.get(visit.word("decision"))
    if decision is None:
        raise bad_form("decision: approve or decline", "another word")
    for path in visit.workspace.federation(site_files.FILE):
        if _key(path) == visit.path["site"]:
            SiteRecords(SiteFile.read(path).answers).decide(visit.word("request"), decision)
            return Redirect("/federation")
    raise unknown("a site of this folder", "an address that names none")


def _site(path: Path) -> dict[str, Any]:
    """Return a site: its policy, and the requests that were put to its steward."""
    try:
        file = SiteFile.read(path)
        waiting = SiteRecords(file.answers).waiting()
    except CounterveilError as error:
        return {"name": path.name, "key": _key(path), "error": error}
    policy = file.policy.to_document()
    return {
        "name": file.name,
        "key": _key(path),
        "error": None,
        "data": masked(file.data),
        "coordinator": file.coordinator,
        "policy": {name.replace("_", " "): _words(value) for name, value in policy.items()},
        "waiting": [
            {"key": each.key, "state": each.state, "asked": _asked(each.request)} for each in waiting
        ],
    }


def _study(path: Path) -> dict[str, Any]:
    """Return a coordinator's study and where each site stands."""
    from counterveil.federation.coordinator import states
    from counterveil.federation.study_files import StudyFolder

    try:
        folder = StudyFolder(path)
        found = states(folder)
    except CounterveilError as error:
        return {"name": path.name, "error": error}
    asked = {name.replace("_", " "): _words(value) for name, value in folder.study.ask.to_document().items()}
    return {"name": folder.study.study_id, "error": None, "asked": asked, "states": found}


def _asked(request: dict[str, Any]) -> dict[str, str]:
    """Return a question in words; it was written by the coordinator, and is shown as text."""
    question = request.get("question", {})
    return {
        str(name).replace("_", " "): _words(value)
        for name, value in question.items()
        if value not in ({}, None)
    }


def _words(value: object) -> str:
    return ", ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)


def _key(path: Path) -> str:
    return hashlib.sha256(str(path.absolute()).encode()).hexdigest()[:12]
