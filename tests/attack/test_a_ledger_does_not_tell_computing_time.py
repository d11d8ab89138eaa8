"""Finding B7: the time between reserving and settling told "one event" from "none"."""

import re

import pytest

import counterveil as cv
from counterveil.accounting import ledger as ledger_module

DATA = {"treated": [0, 1] * 20, "relapse": [0, 1, 1, 0] * 10}
STUDY = cv.Study("treated", "relapse", (0, 1), randomised=True)


@pytest.fixture
def stepping_clock(monkeypatch):
    """A clock that goes on by 40 ms whenever it is read."""
    real = ledger_module.datetime

    class Clock(real):
        steps = 0

        @classmethod
        def now(cls, zone=None):
            cls.steps += 1
            return real(2026, 5, 1, 12, 0, 0, 40_000 * cls.steps, tzinfo=zone)

    monkeypatch.setattr(ledger_module, "datetime", Clock)


def test_entries_carry_a_day_and_settling_the_day_of_reserving(tmp_path, stepping_clock):
    with cv.open_ledger(tmp_path / "book.db", create=True) as book:
        book.register("people", cv.Budget(3))
        cv.ate(DATA, STUDY, protects="outcome", epsilon=1, ledger=book)
        times = [entry.facts["at"] for entry in book.entries()]
    # The account, the request, its two releases and its answer.
    assert len(times) == 5
    assert all(re.fullmatch(r"2026-05-01", time) for time in times)


def test_an_answer_after_midnight_carries_the_day_of_its_reservation(tmp_path, monkeypatch):
    real = ledger_module.datetime
    days = iter([1, 1, 2, 2, 2, 2])

    class Clock(real):
        @classmethod
        def now(cls, zone=None):
            return real(2026, 5, next(days), tzinfo=zone)

    monkeypatch.setattr(ledger_module, "datetime", Clock)
    with cv.open_ledger(tmp_path / "book.db", create=True) as book:
        book.register("people", cv.Budget(3))
        cv.ate(DATA, STUDY, protects="outcome", epsilon=1, ledger=book)
        reserved, *later = (entry.facts["at"] for entry in book.entries()[1:])
    assert later == [reserved] * 3
