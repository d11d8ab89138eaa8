"""A ledger on a read-only disk can be shown and verified; spending from it is refused with a code."""

import json
import os
import shutil
import tempfile
from pathlib import Path

import pytest

import counterveil as cv
from counterveil.errors import CounterveilError

STUDY = cv.Study(treatment="arm", outcome="score", outcome_range=(0, 10), randomised=True)
PEOPLE = {"arm": [place % 2 for place in range(40)], "score": [place % 11 for place in range(40)]}
NOBODY = 65534


@pytest.fixture
def place():
    # Not in pytest's folder, into which others may not look.
    folder = Path(tempfile.mkdtemp(prefix="read-only-"))
    with cv.open_ledger(folder / "ledger.db", create=True) as ledger:
        ledger.register("people", cv.Budget(10))
        cv.ate(PEOPLE, STUDY, protects="outcome", epsilon=1, ledger=ledger, dataset="people")
    yield folder / "ledger.db"
    folder.chmod(0o700)
    shutil.rmtree(folder)


def without_rights(place, work):
    """Return what a function says to somebody who may read the ledger's folder and not write to it."""
    for file in place.parent.iterdir():
        file.chmod(0o444)
    place.parent.chmod(0o555)
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        said = ["failed"]
        try:
            if os.getuid() == 0:
                os.setuid(NOBODY)
            said = work()
        except CounterveilError as error:
            said = [error.code]
        finally:
            os.write(writing, json.dumps(said).encode())
            os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as pipe:
        said = json.loads(pipe.read())
    os.waitpid(child, 0)
    return said


def inspected(place):
    with cv.open_ledger(place, inspect=True) as ledger:
        report = ledger.verify(full=True)
        return [
            report.ok,
            report.entries,
            str(ledger.datasets()[0].spent.epsilon),
            len(list(ledger.entries())),
        ]


def test_it_can_be_shown_and_verified(place):
    expected = inspected(place)
    assert expected[0] is True
    assert without_rights(place, lambda: inspected(place)) == expected


def test_spending_from_it_is_refused(place):
    def spend():
        with cv.open_ledger(place) as ledger:
            cv.ate(PEOPLE, STUDY, protects="outcome", epsilon=1, ledger=ledger, dataset="people")
        return ["answered"]

    before = place.read_bytes()
    assert without_rights(place, spend) == ["CV-L009"]
    assert place.read_bytes() == before


def test_entries_that_lie_in_a_log_are_not_overlooked(place):
    # The file alone would show less than was spent.
    place.with_name("ledger.db-wal").write_bytes(b"x" * 32)
    assert without_rights(place, lambda: inspected(place)) == ["CV-L009"]
