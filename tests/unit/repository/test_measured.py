"""What is measured of the package: the league on made answers, and golden answers to the bit."""

import json
from math import inf, nextafter

import numpy as np
import pytest
from benchmarks.accuracy import verdicts
from benchmarks.accuracy.entries import PURE, Entry
from benchmarks.accuracy.running import answered
from benchmarks.accuracy.verdicts import (
    _OURS,
    EVERYTHING,
    examined,
    moved_between_strata,
    neighbours,
    verdict,
)
from tools.golden import calls as listed
from tools.golden.__main__ import main
from tools.golden.records import differences

from counterveil_lab.reproduce.rivals.catalogue import RIVALS
from counterveil_lab.reproduce.rivals.encoding import Records


def test_a_refusal_is_kept_by_its_code():
    x = np.zeros((4, 1))
    few = Records(x, np.array([True, False] * 2), np.zeros(4), ((0.0, 1.0),), (0.0, 2.0))
    entry = Entry("ours, auto (record)", PURE, 0.5)
    found = answered(entry, ("made", entry.method, PURE, "0.5", 0), few, 1.0, 0.5)
    assert found.refusal.startswith("CV-")
    assert np.isnan(found.value)
    assert (found.truth, found.target) == (0.5, 0.25)


def test_audits_tell_a_third_of_the_noise_from_all_of_it():
    rival = RIVALS["OLS, Laplace"]
    shown, broken = examined(rival)
    third, caught = examined(rival, 1 / 3)
    assert not broken
    assert shown <= 1
    assert caught
    assert third > 1
    assert sum(one != two for one, two in zip(*(each.y for each in neighbours("outcome")), strict=True)) == 1
    assert verdict(RIVALS["zero"]).startswith("by proof")
    assert {name: audited in EVERYTHING for name, audited in _OURS.items()} == {
        name: True for name, one in RIVALS.items() if one.ours
    }


def test_global_matching_is_refuted_by_two_neighbours_and_by_nothing_else(monkeypatch):
    first, second = moved_between_strata()
    assert np.array_equal(first.x[1:], second.x[1:])
    assert np.array_equal(first.y[1:], second.y[1:])
    assert np.array_equal(first.treated, second.treated)
    assert verdict(RIVALS["GlobalDPM"]).startswith("refuted: epsilon 1.25 at n = 4, claimed 1")
    monkeypatch.setattr(verdicts.ours, "matched_effect", lambda _: 0.0)
    assert verdict(RIVALS["GlobalDPM"]).startswith("NOT REFUTED")


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
    assert len(values) == 12
    assert all(len(each) >= 2 for each in values.values()), values
