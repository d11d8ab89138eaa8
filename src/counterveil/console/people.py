"""The page of people: who may enter, new links for them, and the end of what they have open."""

from __future__ import annotations

from counterveil.accounting.refusals import check_name
from counterveil.console.sessions import LINK_LIFE
from counterveil.console.visit import Page, SignedIn, Visit
from counterveil.errors import refusal


def everybody(visit: Visit) -> Page:
    """Return who was invited, with what they have open."""
    visit.require_steward("for a new link")
    return _page(visit)


def change(visit: Visit) -> Page:
    """Make a new link for a person, which this page shows once, or end all that an analyst has open."""
    visit.require_steward("for a new link")
    name, known = visit.word("name"), visit.sessions.people()
    check_name("analyst", name)
    # The steward gets links for other browsers; a name stands for one person in the ledger.
    own = name == visit.person.name
    person = SignedIn(name, steward=own)
    if visit.word("do") == "revoke":
        if own or person not in known:
            raise refusal("CV-W004", expected="name: an analyst of this console", got=repr(name))
        visit.sessions.revoke(person)
        return _page(visit, revoked=name)
    return _page(visit, person, f"{visit.address}/enter?token={visit.sessions.invite(person)}")


def _page(visit: Visit, person: SignedIn | None = None, link: str = "", revoked: str = "") -> Page:
    listed = visit.sessions.people()
    facts = {"people": listed.items(), "invited": person, "link": link, "revoked": revoked}
    return Page("people.html", facts | {"minutes": LINK_LIFE // 60})
