"""Documents of other parties: what is read, and what is refused before it is parsed."""

import json

import pytest

from counterveil.bounded_reading import Fields, UnreadableError, parse_message, rational


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
