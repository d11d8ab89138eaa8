"""What is measured of the package: the league, golden answers, growth."""

import inspect
import json
from dataclasses import replace
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
from benchmarks.growth.kept import Kept, Ratios, findings, shown_wrong
from benchmarks.growth.questions import ASKED
from tools.golden import calls as listed
from tools.golden.__main__ import main
from tools.golden.records import differences

import counterveil as cv
from counterveil.questions.arms import METHODS as ARMS
from counterveil.questions.ate import METHODS
from counterveil.questions.cate import FORMS as FUNCTIONS
from counterveil.questions.event_study import METHODS as PERIODS
from counterveil.questions.groups import METHODS as GROUPS
from counterveil.questions.groups import ONE_SCORE
from counterveil.questions.outcomes import METHODS as LISTED
from counterveil.questions.quantiles import METHODS as SHARES
from counterveil.questions.survival import METHODS as TIMES
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
    assert len(values) == 14
    assert all(len(each) >= 2 for each in values.values()), values


COVERED = {asked.covered for asked in ASKED.values()}


def questions():
    """The questions that a session answers: what spends takes an epsilon."""
    members = inspect.getmembers(cv.Session, inspect.isfunction)
    return {name for name, member in members if "epsilon" in inspect.signature(member).parameters}


def forms():
    """Every form of every question, from the library's own tables."""
    yield from (("ate", name, unit.value) for name, method in METHODS.items() for unit in method.forms)
    yield from (("arms", name, "outcome") for name in ("auto", *ARMS))
    yield from (("groups", name, unit.value) for unit, known in GROUPS.items() for name in ("auto", *known))
    yield from (("cate", name, unit.value) for name, known in FUNCTIONS.items() for unit in known.by_unit)
    yield from (
        ("event_study", name, unit.value) for unit, known in PERIODS.items() for name in ("auto", *known)
    )
    yield "overlap", "auto", "record"
    yield from (("survival", name, unit.value) for unit, known in TIMES.items() for name in ("auto", *known))
    yield from (
        ("quantiles", name, unit.value) for unit, known in SHARES.items() for name in ("auto", *known)
    )
    yield from (("moments", "auto", unit) for unit in ("outcome", "record"))
    yield from (("outcomes", name, unit.value) for unit, known in LISTED.items() for name in ("auto", *known))
    for what in ("policy_value", "targeting_curve"):
        yield from ((what, name, "record") for name in ("auto", *ONE_SCORE))


def published():
    """The published forms, which are questions of their own."""
    return {f"published.{name}" for name in cv.published.__all__ if not name.endswith("Settings")}


def test_every_form_of_every_question_is_measured():
    assert set(forms()) - COVERED == set()
    assert {question for question, *_ in forms()} == questions()
    assert {question for question, *_ in COVERED} == questions() | published()


def test_the_kept_file_has_a_row_for_each_entry_and_no_other():
    kept = Kept.read()
    assert list(kept.ratios) == list(ASKED)
    assert set(kept.notes) <= set(ASKED) | set(kept.shown)
    assert kept.rows == (10**5, 10**6)


def test_what_is_kept_meets_the_aims_or_says_why_not():
    kept = Kept.read()
    missed = {name: findings(one, None, kept.notes.get(name)) for name, one in kept.ratios.items()}
    missed |= {name: shown_wrong(one, None, kept.notes.get(name)) for name, one in kept.shown.items()}
    assert {name: said for name, said in missed.items() if said} == {}


@pytest.mark.parametrize("name", ASKED)
def test_the_arguments_are_those_of_the_question(name):
    asked = ASKED[name]
    words = dict(asked.arguments) | dict.fromkeys(asked.made)
    inspect.signature(asked.function).bind(None, None, **words)


KEPT = Ratios(columns=100.0, peer=0.5, bytes_a_row=200.0, growth=10.0)


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({}, []),
        ({"columns": 124.0, "peer": 0.62}, []),
        ({"columns": 126.0, "peer": 0.63}, ["CPU worse"]),
        ({"columns": 126.0}, []),  # the pass over the columns was disturbed, the peer was not
        ({"columns": 126.0, "peer": None}, ["CPU worse"]),
        ({"bytes_a_row": 251.0}, ["memory worse"]),
        ({"growth": 12.4}, ["growth above 12"]),
        ({"growth": 12.6}, ["growth above 12", "growth worse"]),
        ({"columns": 210.0, "peer": 1.05}, ["slower than the peer", "CPU worse"]),
    ],
)
def test_what_got_worse_is_named(changed, said):
    assert findings(replace(KEPT, **changed), KEPT, None) == said


def test_a_note_excuses_an_aim_and_nothing_else():
    slow = replace(KEPT, columns=400.0, peer=2.0, growth=14.0)
    assert findings(slow, slow, "why") == []
    assert findings(replace(slow, columns=600.0, peer=3.0), slow, "why") == ["CPU worse"]
