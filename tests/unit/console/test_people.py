"""Links of analysts are made, renewed and revoked by the steward while the console runs."""

import re

from tests.unit.console.visitor import HOST, PLACE, code_of, words


def link_in(page):
    return re.search(rf"{HOST}{PLACE}/enter\?token=[\w-]+", page.text).group()


def test_a_link_is_renewed_and_a_session_revoked(steward, console):
    bob = console("bob", steward=False)
    made = steward.post("/people", "/people", name="eve")
    first = link_in(made)
    assert "eve, analyst A link is not used yet; 0 sessions open." in words(made)
    second = link_in(steward.post("/people", "/people", name="eve", do="renew"))
    bob.client.cookies.clear()
    assert code_of(bob.client.get(first)) == "CV-W001"
    assert "eve, analyst" in words(bob.client.get(second))
    revoked = steward.post("/people", "/people", name="eve", do="revoke")
    assert "eve is signed out everywhere" in words(revoked)
    assert code_of(bob.get("/")) == "CV-W001"
    # The steward signs out instead, and nobody else has that name.
    assert code_of(steward.post("/people", "/people", name="ada", do="revoke")) == "CV-W004"
    assert "New link for ada" in words(steward.post("/people", "/people", name="ada", do="renew"))
