"""Times to an event: what a study may declare, and which entry a row has."""

from fractions import Fraction

import pytest

import counterveil as cv
from counterveil.data import Table
from counterveil.data.outcomes import joined_entries

STUDY = cv.Study("arm", outcome="days", event="died", grid=[1, 2.5, 4], control=0)


def test_every_row_has_the_entry_of_the_definition():
    times = [0, 0.5, 1, 1.1, 2.5, 2.6, 4, 4.1, 99]
    expected = {1: [0, 0, 0, 1, 1, 2, 2, 6, 6], 0: [3, 3, 3, 4, 4, 5, 6, 6, 6]}
    for died, entries in expected.items():
        arms = [place % 2 for place in range(len(times))]
        table = Table.attach({"arm": arms, "days": times, "died": [died] * len(times)}, STUDY)
        assert joined_entries(3, 1)[table.outcome].tolist() == entries
        # By the finest parts: a sixteenth of the cell in which the time lies, of which the right end belongs to it.
        place = [0, 7, 15, 17, 31, 33, 47, 96, 96]
        assert table.outcome.tolist() == (place if died else [*(48 + one for one in place[:6]), 96, 96, 96])


@pytest.mark.parametrize(
    "given", [{"horizon": 360}, {"horizon": "7/3", "grid": 3}, {"grid": [30, "91.25", 365]}]
)
def test_a_declaration_is_written_and_read_back(given, tmp_path):
    study = cv.Study("arm", outcome="days", event="died", randomised=True, **given)
    assert cv.Study.from_dict(study.to_dict()) == study
    (tmp_path / "study.toml").write_text(study.to_toml())
    assert cv.Study.from_toml(tmp_path / "study.toml") == study
    assert study.event.grid[-1] == study.event.horizon == study.outcome_range[1]
    assert study.outcomes == ("days", "died")


def test_a_number_of_cells_makes_cells_of_one_length():
    study = cv.Study("arm", outcome="days", event="died", horizon=1, grid=4)
    assert study.event.grid == tuple(Fraction(place, 4) for place in (1, 2, 3, 4))


@pytest.mark.parametrize(
    "given",
    [
        {"horizon": 1, "grid": 0},
        {"horizon": 1, "grid": 201},
        {"grid": [2, 1]},
        {"grid": [0, 1]},
        {"grid": "12"},
        {},
        {"horizon": 3, "grid": [1, 2]},
        {"horizon": "x"},
        {"horizon": 1, "outcome_range": (0, 1)},
        {"horizon": 1, "denominator": "n"},
        {"horizon": 1, "arms": (0, 1, 2)},
        {"horizon": 1, "cluster": "site", "protects_cluster": True},
    ],
)
def test_what_cannot_be_is_refused(given):
    with pytest.raises(cv.CounterveilError, match="CV-S090"):
        cv.Study("arm", outcome="days", event="died", **given)


def test_a_horizon_without_an_event_is_refused():
    with pytest.raises(cv.CounterveilError, match="CV-S090"):
        cv.Study("arm", outcome="days", outcome_range=(0, 1), horizon=1)


def test_other_codes_of_events_are_refused():
    with pytest.raises(cv.CounterveilError, match="CV-D090"):
        Table.attach({"arm": [0, 1, 0, 1], "days": [1, 1, 2, 2], "died": [1, 2, 1, 1]}, STUDY)


def test_rows_of_a_person_end_with_the_last():
    study = cv.Study("arm", outcome="days", event="died", grid=[1, 2.5, 4], control=0, person="id")
    rows = {"id": [1, 1, 2, 3, 4], "arm": [0, 0, 1, 0, 1], "days": [1, 3, 1, 2, 2], "died": [0, 1, 1, 0, 0]}
    assert joined_entries(3, 1)[Table.attach(rows, study).outcome].tolist() == [2, 0, 4, 4]
