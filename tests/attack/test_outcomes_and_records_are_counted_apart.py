"""Finding B6: what outcome-level answers cost is not added to what record-level answers cost whole records."""

from fractions import Fraction

import numpy as np
import pytest

import counterveil as cv

RNG = np.random.default_rng(6)
TREATED = RNG.permutation([0, 1] * 100)
DATA = {"treated": TREATED, "relapse": RNG.binomial(1, 0.4 - 0.1 * TREATED)}
STUDY = cv.Study("treated", "relapse", (0, 1), randomised=True)


def ask(book, protects, epsilon):
    return cv.ate(DATA, STUDY, protects=protects, epsilon=epsilon, ledger=book)


@pytest.fixture
def book(tmp_path):
    with cv.open_ledger(tmp_path / "book.db", create=True) as ledger:
        access_policy = cv.drafting.AccessPolicy(public=["treated"], outcomes=["relapse"])
        ledger.register("people", cv.Budget(3), record_budget=cv.Budget(1), access_policy=access_policy)
        yield ledger


def test_two_totals_are_shown(book):
    ask(book, "outcome", 1)
    ask(book, "record", "0.5")
    account = book.account("people")
    assert (account.spent.epsilon, account.record_spent.epsilon) == (Fraction(3, 2), Fraction(1, 2))
    assert (account.remaining.epsilon, account.record_remaining.epsilon) == (Fraction(3, 2), Fraction(1, 2))
    assert "outcomes: spent epsilon 1.5" in str(account)
    assert "records: spent epsilon 0.5" in str(account)
    assert book.verify().ok


def test_each_total_is_a_limit(book):
    ask(book, "record", 1)
    with pytest.raises(cv.CounterveilError, match=r"CV-B001[^[]*\n.*protect records"):
        ask(book, "record", "0.1")
    ask(book, "outcome", 2)
    for level in ("outcome", "record"):
        with pytest.raises(cv.CounterveilError, match="CV-B001"):
            ask(book, level, "0.1")


def test_a_session_says_what_is_left_at_each_level(book):
    with cv.Session(DATA, STUDY, ledger=book) as session:
        session.ate(protects="outcome", epsilon="2.5")
        assert session.remaining().epsilon == Fraction(1, 2)
        assert session.remaining("record").epsilon == Fraction(1, 2)
