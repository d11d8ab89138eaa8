"""Finding C12: CV-L018 printed the password of a malformed URL; CV-L009 advised what gave CV-L006."""

import traceback
from fractions import Fraction

import pytest

from counterveil.accounting import Answered, Uses, open_ledger
from counterveil.errors import CounterveilError, LedgerError
from counterveil.privacy import Budget, Charge, PureEvent, Unit

USES = Uses(Unit.OUTCOME, "ate", "mean", "treated", "relapse")

TENTH = Charge(Budget("0.1"), (PureEvent(Fraction(1, 10)),))
ADDRESSES = [
    "postgresql://steward:s3cret!pw@127.0.0.1:notaport/ledger",
    "postgresql://steward:s3cret!pw@127.0.0.1:1/ledger?nonsense=1",
    "postgresql://steward:x@s3cret!pw@127.0.0.1:1/ledger",
    "postgresql://steward:s3cret!pw@[127.0.0.1:1/ledger",
    "postgresql://127.0.0.1:1/ledger?password=s3cret!pw&port=x",
    "postgresql:/steward:s3cret!pw@127.0.0.1/ledger",
    "POSTGRESQL://steward:s3cret!pw@127.0.0.1:1/ledger",
]


@pytest.mark.parametrize("address", ADDRESSES)
@pytest.mark.parametrize("as_anchor", [False, True])
def test_no_part_of_a_password_is_printed(address, as_anchor, tmp_path):
    pytest.importorskip("psycopg")
    place, options = (tmp_path / "new.db", {"anchor": address}) if as_anchor else (address, {})
    try:
        open_ledger(place, create=as_anchor, **options).close()
        text = ""
    except CounterveilError as error:
        text = str(error) + repr(error.to_dict()) + "".join(traceback.format_exception(error))
    # The lines of this test that a traceback quotes do not hold the address.
    assert "s3cret" not in text


@pytest.fixture
def ledger(tmp_path):
    with open_ledger(tmp_path / "ledger.db", create=True) as book:
        book.register("trial", Budget(1))
        yield book


def ask(ledger):
    return ledger.reserve("trial", "r", TENTH, uses=USES, fingerprint="f", description={})


def test_an_answer_that_could_not_be_kept_is_asked_for_again(ledger):
    kept = ask(ledger)
    ledger._store._run("PRAGMA query_only = 1")
    with pytest.raises(LedgerError) as caught:
        ledger.settle(kept, '{"estimate": 1}')
    assert caught.value.code == "CV-L065"
    assert "same request id" in caught.value.fix
    ledger._store._run("PRAGMA query_only = 0")
    # What the advice says: the same request goes on, at no further charge.
    assert ask(ledger) == kept
    assert ledger.settle(kept, '{"estimate": 1}') == {"estimate": 1}
    assert ledger.account("trial").spent.epsilon == Fraction(1, 10)
    assert ledger.verify().ok


def test_settling_again_with_the_same_answer_is_a_way_too(ledger):
    kept = ask(ledger)
    ledger._store._run("PRAGMA query_only = 1")
    with pytest.raises(LedgerError, match="CV-L065"):
        ledger.settle(kept, "1")
    ledger._store._run("PRAGMA query_only = 0")
    assert ledger.settle(kept, "1") == 1
    assert ask(ledger) == Answered("1")


def test_a_failed_reservation_can_be_asked_again(ledger):
    ledger._store._run("PRAGMA query_only = 1")
    with pytest.raises(LedgerError, match="CV-L009") as caught:
        ask(ledger)
    assert "same request id" in caught.value.fix
    ledger._store._run("PRAGMA query_only = 0")
    ask(ledger)
    assert ledger.account("trial").spent.epsilon == Fraction(1, 10)


def test_an_answer_leaves_only_after_the_anchor_has_moved(tmp_path, monkeypatch):
    from counterveil.accounting.accounts import anchor_failed
    from counterveil.accounting.anchor import FileAnchor

    def full(anchor, mark):
        raise anchor_failed(anchor.place, "No space left on device")

    with open_ledger(tmp_path / "ledger.db", create=True) as ledger:
        ledger.register("trial", Budget(1))
        kept = ask(ledger)
        with monkeypatch.context() as patch:
            patch.setattr(FileAnchor, "advance", full)
            with pytest.raises(LedgerError, match="CV-L065"):
                ledger.settle(kept, "1")
            with pytest.raises(LedgerError, match="CV-L063"):
                ask(ledger)
        assert ask(ledger) == Answered("1")
        seq, head = ledger.head_at()
    mark = FileAnchor(tmp_path / "ledger.db.head").read()
    assert (mark.seq, mark.hash) == (seq, head)
