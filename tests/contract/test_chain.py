"""Contract of the ledger's chain: every hash holds the one before it, and a noted head is looked for."""

import hashlib

from tests.contract.trials import people, study

import counterveil as cv
from counterveil.accounting import open_ledger
from counterveil.accounting.accounts import GENESIS, seal
from counterveil.privacy import Budget


def hashed(previous, body):
    return hashlib.sha256(f"{previous}\n{body}".encode()).hexdigest()


def test_a_hash_holds_the_entry_and_the_hash_before_it():
    first = seal(1, GENESIS, "register", "trial", "", {"note": "x"})
    second = seal(2, first.hash, "reserve", "trial", "a", {"epsilon": "1"})
    assert first.hash == hashed(GENESIS, first.body)
    assert second.hash == hashed(first.hash, second.body)
    # The same entry after another one has another hash.
    assert seal(2, hashed("other", "chain"), "reserve", "trial", "a", {"epsilon": "1"}).hash != second.hash


def test_a_head_that_is_not_in_the_ledger_is_noticed():
    with open_ledger(":memory:", create=True) as ledger:
        ledger.register("trial", Budget(5))
        data = people(200, 1, confounded=False)
        with cv.Session(data, study(randomised=True), ledger=ledger, noise=cv.SeededNoise(1)) as session:
            session.ate(method="difference_in_means", protects="outcome", epsilon=1)
        noted = ledger.head()
        assert ledger.verify(noted).ok
        assert ledger.verify(hashed("no", "entry")).ok is False
