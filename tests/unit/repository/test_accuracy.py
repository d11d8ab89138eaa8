"""The league on made answers: who takes part, who is first, why not, what is kept and what moved."""

import numpy as np
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

from counterveil_lab.reproduce.rivals.catalogue import RIVALS
from counterveil_lab.reproduce.rivals.protocol import Records


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
