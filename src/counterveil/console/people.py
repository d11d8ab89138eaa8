"""The page of people: who may enter, new links for them, and the end of what they have open."""

from __future__ import annotations

from counterveil.accounting.refusals import check_name
from counterveil.console.sessions import LINK_LIFE
from counterveil.console.visit import Page, SignedIn, Visit
from counterveil.errors import refusal


def everybody(visit: Visit, person: SignedIn | None = None, link: str = "", revoked: str = "") -> Page:
    """Return who was invited, with what they have open, and a new link of a person."""
    visit.require_steward("for a new link")
    assert visit.people is not None
    facts = {"people": visit.people.people().items(), "invited": person, "link": link, "revoked": revoked}
    return Page("people.html", facts | {"minutes": LINK_LIFE // 60})


def change(visit: Visit) -> Page:
    """Make a new link for a person, which this page shows once, or end all that an analyst has open."""
    visit.require_steward("for a new link")
    assert visit.people is not None
    name = visit.word("name")
    check_name("analyst", name)
    # The steward gets links for other browsers; a name stands for one person in the ledger.
    person = SignedIn(name, steward=name == visit.person.name)
    if visit.word("do") != "revoke":
        return everybody(visit, person, f"{visit.address}/enter?token={visit.people.invite(person)}")
    if person.steward or person not in visit.people.people():
        raise refusal("CV-W004", expected="name: an analyst of this console", got=repr(name))
    visit.people.revoke(person)
    return everybody(visit, revoked=name)
