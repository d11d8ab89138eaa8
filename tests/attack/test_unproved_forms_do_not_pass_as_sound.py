"""Finding B5: forms without a finite-sample guarantee are refused by lasting ledgers, or marked for ever."""

import numpy as np
import pytest

import counterveil as cv

RNG = np.random.default_rng(5)
TREATED = RNG.permutation([0, 1] * 150)
DATA = {
    "treated": TREATED,
    "relapse": RNG.binomial(1, 0.4 - 0.1 * TREATED),
    "age": RNG.uniform(20, 80, 300),
}
STUDY = cv.Study("treated", "relapse", (0, 1), {"age": cv.Range(18, 90)}, randomised=True)
PAPER = {"epsilon": 1, "accept": "unproved"}


@pytest.fixture
def place(tmp_path):
    return tmp_path / "book.db"


def test_a_lasting_ledger_refuses_them(place):
    with cv.open_ledger(place, create=True) as book:
        book.register("people", cv.Budget(50))
        with pytest.raises(cv.CounterveilError, match="CV-L045"):
            cv.published.outcome_matching(DATA, STUDY, ledger=book, **PAPER)
        # Neither as the first request nor later.
        cv.ate(DATA, STUDY, ledger=book, protects="outcome", epsilon=1)
        with pytest.raises(cv.CounterveilError, match="CV-L045"):
            cv.published.outcome_matching(DATA, STUDY, ledger=book, **PAPER)
        assert book.account("people").spent.epsilon == 1


def test_where_an_access_policy_allows_them_the_account_and_later_results_say_so(place):
    access_policy = cv.drafting.AccessPolicy(public=["treated", "age"], unproved=True)
    with cv.open_ledger(place, create=True) as book:
        book.register("people", cv.Budget(50), access_policy=access_policy)
        assert str(book.account("people")).startswith("people: finite-sample guarantee")
        cv.published.outcome_matching(DATA, STUDY, ledger=book, **PAPER)
        first = str(book.account("people")).splitlines()[0]
        assert first.startswith("people: NO FINITE-SAMPLE GUARANTEE: 1 of 1 requests")
        later = cv.ate(DATA, STUDY, ledger=book, protects="outcome", epsilon=1)
        assert any("its total is not proved" in remark for remark in later.guarantee.remarks)
        assert "its total is not proved" in " ".join(str(later).split())
        assert book.account("people").unproved == 1
