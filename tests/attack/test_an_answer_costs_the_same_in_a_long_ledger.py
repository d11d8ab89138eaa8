"""Finding C11: a site's answer, and `estimate --request-id`, read every entry of the ledger."""

from fractions import Fraction

import pytest

from counterveil.accounting import Uses, open_ledger
from counterveil.accounting.records import Store
from counterveil.cli.requests import charging
from counterveil.data import Range, Study
from counterveil.privacy import Budget, Charge, PureEvent, Unit

USES = Uses(Unit.OUTCOME, "ate", "mean", "treated", "relapse")

PRICE = Charge(Budget("1e-6"), (PureEvent(Fraction(1, 10**6)),))
# Entries that an opening looks at however long the ledger is: links, hashes, and the moving stretch.
SHORT, LONG = 800, 2400


@pytest.fixture(scope="module")
def books(tmp_path_factory):
    """Two ledgers, one three times as long as the other; all requests belong to one study."""
    folder, made = tmp_path_factory.mktemp("books"), {}
    for entries in (SHORT, LONG):
        made[entries] = folder / f"{entries}.db"
        with open_ledger(made[entries], create=True) as ledger:
            ledger.register("records", Budget(3))
            ledger._store._run("PRAGMA synchronous = OFF")
            for number in range(entries // 2):
                kept = ledger.reserve(
                    "records", f"study@{number}", PRICE, uses=USES, fingerprint="f", description={}
                )
                ledger.settle(kept, "1")
    return made


def rows_read(monkeypatch, action):
    """Return how many entries an action takes from the database."""
    count, real = 0, Store._rows

    def counting(self, where, *values):
        nonlocal count
        found = real(self, where, *values)
        count += len(found)
        return found

    with monkeypatch.context() as patch:
        patch.setattr(Store, "_rows", counting)
        action()
    return count


def charge_by_name(place):
    with charging(str(place), "records", "study@7") as charged:
        assert charged.answered_before


def spend(place):
    with open_ledger(place) as ledger:
        ledger.settle(
            ledger.reserve("records", "study@new", PRICE, uses=USES, fingerprint="f", description={}), "1"
        )


@pytest.mark.parametrize("action", [charge_by_name, spend])
def test_a_command_reads_as_many_entries_in_a_long_ledger_as_in_a_short_one(monkeypatch, books, action):
    short, long = (rows_read(monkeypatch, lambda size=size: action(books[size])) for size in (SHORT, LONG))
    assert long <= short + 2
    assert long < LONG // 2


def test_a_site_looks_a_study_up_and_reads_no_list(monkeypatch, books):
    from counterveil.federation.site import Site

    site = object.__new__(Site)
    site.file = type("File", (), {"dataset": "records"})()
    read = {}
    for size in (SHORT, LONG):
        site.file.ledger = str(books[size])
        spent = []
        read[size] = rows_read(monkeypatch, lambda spent=spent: spent.append(site._spent("study")))
        assert spent[0] >= Fraction(size // 2, 10**6)
    assert read[LONG] <= read[SHORT] + 2


class Name(str):
    """A column name that counts how often it is compared."""

    __slots__ = ()
    compared = 0

    def __eq__(self, other):
        Name.compared += 1
        return str.__eq__(self, other)

    __hash__ = str.__hash__


def test_a_declaration_of_many_covariates_is_checked_in_linear_time():
    count = 3000
    covariates = {Name(f"column {number}"): Range(0, 1) for number in range(count)}
    Name.compared = 0
    Study(treatment="t", outcome="y", outcome_range=(0, 1), covariates=covariates)
    assert Name.compared < 20 * count
