"""Golden answers: a number that changes by one bit is reported, and so is a call that comes or goes."""

import json
from math import inf, nextafter

import pytest
from tools.golden import calls as listed
from tools.golden.__main__ import main
from tools.golden.records import differences

ONE_CALL = "source numpy: difference in means, 200 rows, epsilon 20, delta 0"


def record(estimate=1.0, printed="a"):
    return {"numbers": {"estimate": [estimate.hex()]}, "text": {"printed": printed}}


def test_the_last_bit_of_a_number_is_reported():
    now = nextafter(1.0, inf)
    assert [*differences({"x": record()}, {"x": record()}, text=True)] == []
    (line,) = differences({"x": record()}, {"x": record(now)}, text=False)
    assert line == f"x: estimate was [1.0], is [{now!r}]"


@pytest.mark.parametrize(
    ("after", "line"),
    [
        ({}, "x: no longer asked"),
        ({"x": record(), "z": record()}, "z: not in the file"),
        ({"x": {"refused": "CV-P001"}}, "x: answered before, refused with CV-P001 now"),
        ({"x": {"fault": "TypeError: t"}}, "x: answered before, failed with TypeError: t now"),
        ({"x": {"numbers": {}, "text": {}}}, "x: estimate was [1.0], is missing"),
    ],
)
def test_calls_that_come_go_or_end_otherwise_are_reported(after, line):
    assert [*differences({"x": record()}, after, text=False)] == [line]


def test_a_call_is_the_same_again_and_a_changed_file_is_not(tmp_path, capsys):
    path = tmp_path / "golden.json"
    assert main(["take", str(path), "--only", ONE_CALL]) == 0
    assert main(["compare", str(path), "--only", ONE_CALL, "--text"]) == 0
    facts = json.loads(path.read_text())
    facts[ONE_CALL]["numbers"]["estimate"] = [(0.5).hex()]
    path.write_text(json.dumps(facts))
    assert main(["compare", str(path), "--only", ONE_CALL]) == 1
    assert f"{ONE_CALL}: estimate was [0.5], is [" in capsys.readouterr().out
    assert main(["compare", str(path), "--only", ONE_CALL, "--without", "means"]) == 0


def test_every_class_of_settings_has_two_other_values():
    values = {}
    for name in (one.name for one in listed.calls() if one.name.startswith("settings ")):
        settings, rest = name.removeprefix("settings ").split(" of ", 1)
        values.setdefault(settings, set()).add(rest.split(": ", 1)[1].split(", 200")[0])
    assert len(values) == 14
    assert all(len(each) >= 2 for each in values.values()), values
