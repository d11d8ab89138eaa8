"""The league on made answers: who takes part, who is first, why not, what is kept and what moved."""

from dataclasses import replace

import numpy as np
import pytest
from benchmarks.accuracy import kept, verdicts
from benchmarks.accuracy.entries import (
    APPROXIMATE,
    AUTO,
    OUTCOME,
    PURE,
    Entry,
    counts_at,
)
from benchmarks.accuracy.running import Row, answered
from benchmarks.accuracy.standing import cells, ranked
from benchmarks.accuracy.testing import rejections
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

NAN = float("nan")


def rows(method, errors, guarantee=OUTCOME, epsilon="1", half=NAN, refusal=""):
    return [
        Row(
            "made",
            method,
            guarantee,
            epsilon,
            draw,
            0.1 + off,
            0.1 + off - half,
            0.1 + off + half,
            0.1,
            0.1,
            0.01,
            refusal,
        )
        for draw, off in enumerate(errors)
    ]


def league(auto=(0.01, -0.01, 0.012, -0.012), other=(0.02, -0.02, 0.021, -0.02), **more):
    return [
        *rows(AUTO[OUTCOME], auto, half=0.02, **more),
        *rows("OLS, Laplace", other),
        *rows("PrivATE, label", [0.0, 0.0, 0.0, 0.0]),
        *rows("zero", [-0.1] * 4, guarantee="", epsilon=""),
    ]


KEY = ("made", OUTCOME, "1")


def test_refuted_methods_and_zero_are_not_ranked():
    assert ranked(cells(league())[KEY]) == [AUTO[OUTCOME], "OLS, Laplace"]


def test_pure_answers_count_where_a_delta_is_allowed_and_not_the_other_way():
    found = cells(
        [
            *rows("GlobalDPM", [0.5], PURE),
            *rows("OLS, noisy Gram", [0.2], PURE),
            *rows("OLS, noisy Gram", [0.1], APPROXIMATE),
            *rows("PrivSyn", [0.3], APPROXIMATE),
        ]
    )
    assert found["made", APPROXIMATE, "1"]["GlobalDPM"].rmse == pytest.approx(0.5)
    assert found["made", APPROXIMATE, "1"]["OLS, noisy Gram"].rmse == pytest.approx(0.1)
    assert set(found["made", PURE, "1"]) == {"GlobalDPM", "OLS, noisy Gram"}
    assert counts_at(RIVALS["GlobalDPM"], APPROXIMATE)
    assert not counts_at(RIVALS["PrivSyn"], PURE)


def test_a_refusal_is_kept_by_its_code():
    x = np.zeros((4, 1))
    few = Records(x, np.array([True, False] * 2), np.zeros(4), ((0.0, 1.0),), (0.0, 2.0))
    entry = Entry("ours, auto (record)", PURE, 0.5)
    found = answered(entry, ("made", entry.method, PURE, "0.5", 0), few, 1.0, 0.5)
    assert found.refusal.startswith("CV-")
    assert np.isnan(found.value)
    assert (found.truth, found.target) == (0.5, 0.25)


def test_the_frozen_league_says_what_moved(tmp_path):
    path = tmp_path / "league.json"
    beside = {"verdicts": {"zero": "holds"}, "costs": {"zero": {"seconds": 0.0}}, "tests": rejections(2)[:1]}
    kept.write(cells(league()), beside, path)
    assert kept.rejected(path)[0]["rejects"] in (0, 0.5, 1)
    assert kept.moved(kept.read(path), cells(league())) == []
    assert kept.verdicts(path) == {"zero": "holds"}
    assert kept.costs(path) == {"zero": {"seconds": 0.0}}
    slower = [replace(row, seconds=9.0) for row in league()]
    assert kept.moved(kept.read(path), cells(slower)) == []
    other = kept.moved(kept.read(path), cells(league(other=(0.02, -0.02, 0.021, -0.03))))
    assert {str(one).split(" frozen")[0].split(": ")[1].split()[0] for one in other} == {"rmse", "relative"}
    assert "2 numbers moved" in kept.shown(other)
    fewer = kept.moved(kept.read(path), cells([row for row in league() if row.draw < 3]))
    assert all("draws frozen, 3 now" in str(one) for one in fewer)


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


def test_the_audit_of_noisy_matrices_finds_a_third_of_the_noise():
    _, broken = examined(RIVALS["OLS, noisy Gram"])
    third, _ = examined(RIVALS["OLS, noisy Gram"], 1 / 3)
    assert not broken
    assert third > 1


def test_global_matching_is_refuted_by_two_neighbours_and_by_nothing_else(monkeypatch):
    first, second = moved_between_strata()
    assert np.array_equal(first.x[1:], second.x[1:])
    assert np.array_equal(first.y[1:], second.y[1:])
    assert np.array_equal(first.treated, second.treated)
    assert verdict(RIVALS["GlobalDPM"]).startswith("refuted: epsilon 1.25 at n = 4, claimed 1")
    monkeypatch.setattr(verdicts.ours, "matched_effect", lambda _: 0.0)
    assert verdict(RIVALS["GlobalDPM"]).startswith("NOT REFUTED")
