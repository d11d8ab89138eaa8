import json
from dataclasses import replace

import pytest

from counterveil.errors import FederationError
from counterveil.federation.messages import CODES, Ask, Head, Reply, SiteRequest

ASK = Ask(method="matching", protects="outcome", epsilon="1/3", settings={"neighbours": 5})
REQUEST = SiteRequest("study-1", "r.1", "North", {"treatment": "t"}, ASK, 12.5, Head(3, "0" * 64))
HASH = "ab" * 32


def test_a_reply_arrives_as_it_was_sent():
    for reply in (
        Reply("s", "r", "North", HASH, result={"estimate": 1.5}, head=Head(2, HASH)),
        Reply("s", "r", "North", HASH, refusal="CV-F004"),
    ):
        assert Reply.from_text(reply.to_text()) == reply


def test_the_deadline_is_no_part_of_the_question_and_everything_else_is():
    later = SiteRequest("study-1", "r.1", "North", {"treatment": "t"}, ASK, 99.0)
    assert later.fingerprint() == REQUEST.fingerprint()
    others = [
        SiteRequest("study-2", "r.1", "North", {"treatment": "t"}, ASK),
        SiteRequest("study-1", "r.2", "North", {"treatment": "t"}, ASK),
        SiteRequest("study-1", "r.1", "South", {"treatment": "t"}, ASK),
        SiteRequest("study-1", "r.1", "North", {"treatment": "u"}, ASK),
        SiteRequest("study-1", "r.1", "North", {"treatment": "t"}, Ask("matching", "outcome", "1/2")),
        SiteRequest("study-1", "r.1", "North", {"treatment": "t"}, replace(ASK, measure="ratio")),
    ]
    assert len({each.fingerprint() for each in (REQUEST, *others)}) == 7


def test_means_of_private_arms_which_no_coordinator_can_judge_are_not_asked_for():
    words = {"method": "doubly_robust", "protects": "treatment and outcome", "epsilon": 1}
    assert Ask.from_document(words | {"measure": "nnt"}).protects == words["protects"]
    with pytest.raises(FederationError, match="CV-F001"):
        Ask.from_document(words | {"measure": "ratio"})


def changed(text, **changes):
    return json.dumps(json.loads(text) | changes)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "{" * 100_000,
        changed(REQUEST.to_text(), version=2),
        changed(REQUEST.to_text(), study_id="../../etc"),
        changed(REQUEST.to_text(), request_id="a@b"),
        changed(REQUEST.to_text(), request_id=""),
        changed(REQUEST.to_text(), request_id=7),
        changed(REQUEST.to_text(), deadline=True),
        changed(REQUEST.to_text(), more=1),
        changed(REQUEST.to_text(), ask={"method": "m"}),
        changed(REQUEST.to_text(), ask=json.loads(REQUEST.to_text())["ask"] | {"accept": "unproved"}),
        changed(REQUEST.to_text(), ask=json.loads(REQUEST.to_text())["ask"] | {"measure": "hazard"}),
    ],
)
def test_other_texts_are_no_requests(text):
    with pytest.raises(FederationError, match="CV-F001"):
        SiteRequest.from_text(text)


@pytest.mark.parametrize(
    "changes",
    [
        {"result": None},
        {"refusal": "CV-F004"},
        {"result": None, "refusal": "MRN 12345 has outcome 7.1"},
        {"result": None, "refusal": "CV-F099"},
        {"result": "7.1"},
    ],
)
def test_other_texts_are_no_replies(changes):
    reply = Reply("s", "r", "North", HASH, result={"estimate": 1.5}).to_text()
    with pytest.raises(FederationError, match="CV-F001"):
        Reply.from_text(changed(reply, **changes))


def test_every_refusal_has_a_meaning_and_is_in_the_range():
    first = [f"CV-F{place:03d}" for place in range(1, 14)]
    assert list(CODES) == [*first, "CV-F040", "CV-F042", "CV-F500"]
