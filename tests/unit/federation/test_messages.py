"""Messages and documents of other parties: what is read, what is refused before it is parsed, what a policy allows."""

import json
from dataclasses import replace
from fractions import Fraction

import pytest

from counterveil.bounded_reading import Fields, UnreadableError, parse_message, rational
from counterveil.errors import CounterveilError, FederationError, ParameterError
from counterveil.federation.messages import CODES, Ask, Head, RefusedError, Reply, SiteRequest
from counterveil.federation.site_files import SitePolicy

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


def test_plain_documents_are_read_as_json_reads_them():
    document = {"a": [1, 2.5, None, True, "ä"], "b": {"c": -3}}
    assert parse_message(json.dumps(document)) == document
    assert parse_message(json.dumps(document).encode()) == document


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        b"\xff\xfe",
        "NaN",
        '{"a": NaN}',
        '{"a": 1, "a": 2}',
        '{"a": 1e999}',
        "1" * 26,
        "1." + "0" * 50,
        "[" * 17 + "]" * 17,
        "[" * 100_000,
        '"' + "x" * 20_001 + '"',
        '{"' + "k" * 501 + '": 1}',
        '"\\u001b[2J"',
        '"\\u009b31m"',
        '"\\u202e"',
        '"\\ud800"',
        '{"\\u0007": 1}',
    ],
)
def test_other_texts_are_refused_without_being_quoted(text):
    with pytest.raises(UnreadableError) as caught:
        parse_message(text)
    assert len(str(caught.value)) < 80


def test_the_whole_is_bounded_before_it_is_parsed():
    with pytest.raises(UnreadableError, match="longer than 50"):
        parse_message('"' + "x" * 100 + '"', longest=50)


def test_infinities_are_let_through_only_where_they_are_asked_for():
    assert parse_message("[Infinity]", infinite=True) == [float("inf")]
    for text, infinite in (("[Infinity]", False), ("[NaN]", True)):
        with pytest.raises(UnreadableError):
            parse_message(text, infinite=infinite)


@pytest.mark.parametrize("text", ["1/3", "0.5", ".5", "2", "1e-6", "1E+3"])
def test_numbers_in_texts(text):
    assert rational(text, 0, 1e6) > 0


@pytest.mark.parametrize(
    "text", ["1e999999999", "-1", "1/0", "1_0", "٣", " 1", "1e9", "9" * 500, "", "nan", 1, None]
)
def test_texts_that_are_no_numbers_in_range(text):
    with pytest.raises(UnreadableError):
        rational(text, 0, 1e6)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("number", True),
        ("number", "1"),
        ("number", 1e200),
        ("number", float("inf")),
        ("whole", 1.0),
        ("whole", True),
    ],
)
def test_a_field_has_its_type_and_its_range(name, value):
    table = Fields.of("a table", {"x": value}, ("x",))
    with pytest.raises(UnreadableError, match="a table: x"):
        table.number("x") if name == "number" else table.whole("x", 0, 10)


def test_a_table_has_its_fields_and_no_others():
    for wrong in ({}, {"x": 1, "y": 2}, [], None):
        with pytest.raises(UnreadableError):
            Fields.of("a table", wrong, ("x",))


DOCUMENT = {
    "estimators": ["matching", "trial"],
    "protects": ["outcome"],
    "min_epsilon": 0.5,
    "study_epsilon": "2",
    "max_delta": "1e-6",
    "min_rows": 100,
    "approval": "by hand",
}
POLICY = SitePolicy.from_document(DOCUMENT)


def asked(**changes):
    return Ask(**({"method": "matching", "protects": "outcome", "epsilon": "1"} | changes))


@pytest.mark.parametrize(
    ("changes", "spent", "code"),
    [
        ({"method": "stratified"}, 0, "CV-F002"),
        ({"protects": "record"}, 0, "CV-F002"),
        ({"measure": "ratio"}, 0, "CV-F002"),
        ({"epsilon": "0.49"}, 0, "CV-F003"),
        ({"epsilon": "2.01"}, 0, "CV-F003"),
        ({"epsilon": "1"}, Fraction(101, 100), "CV-F003"),
        ({"delta": "1e-5"}, 0, "CV-F003"),
        ({"epsilon": "-1"}, 0, "CV-F003"),
        ({"epsilon": "nan"}, 0, "CV-F003"),
        ({"epsilon": "1e999999999"}, 0, "CV-F003"),
    ],
)
def test_what_is_not_allowed_is_refused_with_its_code(changes, spent, code):
    with pytest.raises(RefusedError, match=code):
        POLICY.check(asked(**changes), Fraction(spent))


def test_a_measure_is_allowed_by_name():
    SitePolicy.from_document(DOCUMENT | {"measures": ["ratio"]}).check(asked(measure="ratio"), Fraction(1))


def test_a_policy_is_read_as_it_was_written():
    assert SitePolicy.from_document(POLICY.to_document()) == POLICY


@pytest.mark.parametrize(
    "changes",
    [
        {"approval": "perhaps"},
        {"measures": ["hazard"]},
        {"measures": "ratio"},
        {"estimator": ["matching"]},
        {"estimators": "matching"},
        {"min_rows": "many"},
        {"min_rows": True},
        {"study_epsilon": None},
        {"protects": ["everything"]},
        {"min_epsilon": "much"},
    ],
)
def test_a_policy_that_is_not_understood_is_not_guessed(changes):
    with pytest.raises(CounterveilError) as caught:
        SitePolicy.from_document(DOCUMENT | changes)
    assert isinstance(caught.value, ParameterError)
