"""One ledger, one process: what is written, what is answered, what is refused."""

import json
import multiprocessing
import os
import pickle
import stat
import threading
from dataclasses import replace
from fractions import Fraction

import pytest

from counterveil.accounting import (
    AccessPolicy,
    Answered,
    Ledger,
    OverBudgetError,
    Reservation,
    Uses,
    open_ledger,
)
from counterveil.accounting.accounts import opening_entry
from counterveil.accounting.sql_store import MemoryStore
from counterveil.errors import BudgetError, LedgerError
from counterveil.numerics.gaussian_profile import mu_of
from counterveil.privacy import Budget, Charge, GaussianEvent, PureEvent, Unit

USES = Uses(Unit.OUTCOME, "ate", "mean", "treated", "relapse")


def pure(epsilon) -> Charge:
    budget = Budget(epsilon)
    return Charge(budget, (PureEvent(budget.epsilon),))


def gaussian(epsilon, delta) -> Charge:
    budget = Budget(epsilon, delta)
    return Charge(budget, (GaussianEvent(mu_of(budget.epsilon, budget.delta)),))


def spend(ledger, request_id, charge, answer='{"estimate": 1}', dataset="trial", fingerprint="f"):
    reservation = ledger.reserve(
        dataset, request_id, charge, uses=USES, fingerprint=fingerprint, description={"method": "mean"}
    )
    if isinstance(reservation, Answered):
        return reservation.answer
    ledger.settle(reservation, answer)
    return answer


@pytest.fixture
def path(tmp_path):
    return tmp_path / "ledger.db"


@pytest.fixture
def ledger(path):
    with open_ledger(path, create=True) as opened:
        opened.register("trial", Budget(1), note="registered by the steward")
        yield opened


def refuses(code):
    return pytest.raises((LedgerError, BudgetError), match=code)


def test_a_request_from_reserve_to_answer(ledger):
    reservation = ledger.reserve(
        "trial", "r1", pure("0.4"), uses=USES, fingerprint="f", description={"method": "mean"}
    )
    assert isinstance(reservation, Reservation)
    assert ledger.account("trial").spent.epsilon == Fraction(2, 5)  # before any answer
    ledger.settle(reservation, '{"estimate": 2}')
    account = ledger.account("trial")
    assert (account.requests, account.remaining.epsilon, account.rule) == (1, Fraction(3, 5), "sum")
    assert account.note == "registered by the steward"
    assert [entry.kind for entry in ledger.entries("trial")] == ["register", "reserve", "settle"]
    assert ledger.entries()[1].facts["description"] == {"method": "mean"}
    assert ledger.verify().ok
    assert json.loads(json.dumps(account.to_dict()))["remaining"]["epsilon"] == "3/5"
    assert str(account.remaining) == "epsilon 0.6"


@pytest.mark.parametrize("kept_in", ["a file", "memory"])
def test_entries_are_found_by_number_by_data_set_and_by_request(ledger, kept_in):
    book = ledger
    if kept_in == "memory":
        book = open_ledger(":memory:")
        book.register("trial", Budget(1))
    book.register("other", Budget(1))
    for number in range(3):
        spend(book, f"r{number}", pure("1/10"))
        spend(book, f"r{number}", pure("1/10"), dataset="other")
    book.reserve("trial", "lost", pure("1/10"), uses=USES, fingerprint="f", description={})
    assert [entry.seq for entry in book.between(3, 5)] == [3, 4, 5]
    assert book.between(90, 99) == []
    newest = book.newest("trial", 3)
    assert [entry.request_id for entry in newest] == ["lost", "r2", "r1"]
    assert [entry.request_id for entry in book.newest("trial", 9, before=newest[-1].seq)] == ["r0"]
    assert [entry.kind for entry in book.of_request("other", "r1")] == ["reserve", "settle"]
    assert [entry.kind for entry in book.of_request("trial", "lost")] == ["reserve"]
    assert book.of_request("trial", "new") == []


def test_the_same_request_gets_the_same_answer_and_pays_once(ledger):
    spend(ledger, "r1", pure("0.4"), '{"estimate": 2}')
    again = ledger.reserve("trial", "r1", pure("0.4"), uses=USES, fingerprint="f", description={})
    assert again == Answered('{"estimate": 2}')
    assert ledger.account("trial").requests == 1
    assert ledger.verify().entries == 3


def reserve(ledger, charge=None, request_id="r1", **description):
    charge = pure("0.4") if charge is None else charge
    return ledger.reserve("trial", request_id, charge, uses=USES, fingerprint="f", description=description)


def never():
    raise AssertionError("drawn although something is stored")


def test_a_request_without_an_answer_goes_on_under_its_charge(ledger):
    assert reserve(ledger) == reserve(ledger)
    assert ledger.account("trial").spent.epsilon == Fraction(2, 5)
    assert ledger.account("trial").requests == 1


def test_it_goes_on_under_the_same_charge_and_plan_alone(ledger):
    """A version of the package that splits the budget otherwise would draw more than was charged."""
    reserve(ledger, releases={"a": "3/10", "b": "1/10"})
    tenths = (PureEvent(Fraction(3, 10)), PureEvent(Fraction(1, 10)))
    for charge, releases in (
        (pure("0.4"), {"a": "1/10", "b": "3/10"}),
        (Charge(Budget("0.4"), tenths), {"a": "3/10", "b": "1/10"}),
    ):
        with refuses("CV-L006"):
            reserve(ledger, charge, releases=releases)
    reserve(ledger, releases={"a": "3/10", "b": "1/10"})


@pytest.mark.parametrize("place", ["file", "memory"])
def test_a_release_is_drawn_once(ledger, place):
    with open_ledger(":memory:") as memory:
        memory.register("trial", Budget(1))
        book = ledger if place == "file" else memory
        kept = reserve(book)
        assert book.release(kept, "a", ["1/1"], lambda: ["7/2", "-1/4"]) == ["7/2", "-1/4"]
        assert book.release(reserve(book), "a", ["1/1"], never) == ["7/2", "-1/4"]
        assert book.release(kept, "b", [], lambda: []) == []
        (first, second) = (entry for entry in book.entries() if entry.kind == "release")
        assert (first.facts["name"], first.facts["values"]) == ("a", ["7/2", "-1/4"])
        assert second.facts["at"] == book.of_request("trial", "r1")[0].facts["at"]
        assert book.account("trial").spent.epsilon == Fraction(2, 5)
        assert book.verify().ok


def test_names_of_releases_are_kept_apart_by_request(ledger):
    for name in ("r1", "r2"):
        assert ledger.release(reserve(ledger, request_id=name), "a", [], lambda own=name: [own]) == [name]
    long = "a" * 300
    for name in (long, long + "b", "a\0", "a\0b"):
        assert ledger.release(reserve(ledger), name, [], lambda own=name: [own[-1]]) == [name[-1]]
    assert ledger.release(reserve(ledger), long, [], never) == ["a"]
    assert ledger.verify().ok


def test_of_two_that_draw_at_once_the_first_to_store_is_heard(ledger, path):
    kept = reserve(ledger)
    with open_ledger(path) as other:

        def overtaken():
            assert other.release(reserve(other), "a", ["1/1"], lambda: ["2"]) == ["2"]
            return ["1"]

        assert ledger.release(kept, "a", ["1/1"], overtaken) == ["2"]
    assert [entry.facts["values"] for entry in ledger.entries() if entry.kind == "release"] == [["2"]]


def test_a_release_is_for_the_bounds_that_it_was_drawn_for(ledger):
    kept = reserve(ledger)
    ledger.release(kept, "a", ["1/a"], lambda: ["1"])
    with refuses("CV-L006"):
        ledger.release(kept, "a", ["1/b"], never)


def test_nothing_is_released_after_the_answer_or_without_a_reservation(ledger):
    kept = reserve(ledger)
    ledger.release(kept, "a", [], lambda: ["1"])
    ledger.settle(kept, "1")
    assert ledger.release(kept, "a", [], never) == ["1"]
    with refuses("CV-L006"):
        ledger.release(kept, "b", [], lambda: ["2"])
    with refuses("CV-L013"):
        ledger.release(Reservation("trial", "r9", "f", 9), "a", [], lambda: ["2"])
    assert sum(entry.kind == "release" for entry in ledger.entries()) == 1
    assert ledger.verify().ok


def test_a_draw_that_could_not_be_stored_is_not_used(ledger):
    kept = reserve(ledger)
    ledger._store._run("PRAGMA query_only = 1")
    with refuses("CV-L065"):
        ledger.release(kept, "a", [], lambda: ["1"])
    ledger._store._run("PRAGMA query_only = 0")
    assert ledger.release(reserve(ledger), "a", [], lambda: ["2"]) == ["2"]


def test_one_id_is_one_request(ledger):
    spend(ledger, "r1", pure("0.4"))
    with refuses("CV-L007"):
        ledger.reserve("trial", "r1", pure("0.4"), uses=USES, fingerprint="other", description={})


def test_ids_belong_to_their_data_set(ledger):
    ledger.register("survey", Budget(1))
    spend(ledger, "r1", pure("0.4"), '{"estimate": 1}')
    spend(ledger, "r1", pure("0.7"), '{"estimate": 2}', dataset="survey")
    assert [float(account.spent.epsilon) for account in ledger.datasets()] == [0.4, 0.7]
    assert ledger.verify().ok


def test_over_budget_says_requested_remaining_and_difference(ledger):
    spend(ledger, "r1", pure("0.75"))
    head_hash = ledger.head_hash()
    with pytest.raises(OverBudgetError) as caught:
        spend(ledger, "r2", pure("0.5"))
    error = caught.value
    assert (error.requested.epsilon, error.remaining.epsilon, error.difference[0]) == (
        Fraction(1, 2),
        Fraction(1, 4),
        Fraction(1, 4),
    )
    for part in ("requested epsilon 0.5", "at most epsilon 0.25", "epsilon 0.25 too much", "spent nothing"):
        assert part in str(error)
    assert error.to_dict()["difference_epsilon"] == "1/4"
    assert pickle.loads(pickle.dumps(error)).to_dict() == error.to_dict()
    assert ledger.head_hash() == head_hash  # nothing was written
    spend(ledger, "r2", pure("0.25"))
    assert ledger.account("trial").remaining.epsilon == 0


def test_draws_above_the_face_value_never_reach_the_book(ledger):
    with refuses("CV-B004"):
        spend(ledger, "r1", Charge(Budget("0.1"), (PureEvent(Fraction(1)),)))
    assert ledger.account("trial").requests == 0


def test_unknown_data_sets_are_named(ledger):
    with refuses("CV-L004") as caught:
        spend(ledger, "r1", pure(1), dataset="tril")
    assert "'trial'" in str(caught.value)
    with refuses("CV-L004"):
        ledger.account("tril")


def test_the_gaussian_rule_in_the_book(ledger):
    ledger.register("signals", Budget(3, 1e-6), rule="gaussian")
    for number in range(20):
        spend(ledger, f"r{number}", gaussian("0.3", 1e-7), dataset="signals")
    account = ledger.account("signals")
    assert account.requests == 20
    assert account.spent.epsilon < 3
    assert account.remaining.mu > 0
    with pytest.raises(OverBudgetError, match=r"squared mu|too much"):
        spend(ledger, "large", gaussian("2.9", 1e-7), dataset="signals")
    assert ledger.verify().ok


@pytest.mark.parametrize("name", ["", " trial", "a\nb", "a\x00b", "x" * 201, None, 7])
def test_names_must_be_findable(ledger, name):
    with refuses("CV-L011"):
        ledger.register(name, Budget(1))
    with refuses("CV-L011"):
        ledger.reserve("trial", name, pure(1), uses=USES, fingerprint="f", description={})
    with refuses("CV-L011"):
        ledger.reserve("trial", "r1", pure(1), uses=USES, fingerprint=name, description={})


@pytest.mark.parametrize("description", [{"n": float("nan")}, {"x": object()}, {"x": Fraction(1, 3)}])
def test_descriptions_must_be_json(ledger, description):
    with refuses("CV-L014"):
        ledger.reserve("trial", "r1", pure(1), uses=USES, fingerprint="f", description=description)
    assert ledger.account("trial").requests == 0


def test_answers_must_be_json(ledger):
    reservation = ledger.reserve("trial", "r1", pure(1), uses=USES, fingerprint="f", description={})
    with refuses("CV-L014"):
        ledger.settle(reservation, "not json")
    ledger.settle(reservation, '{"text": "mü \\u0000"}')
    assert ledger.verify().ok


def test_settling_is_once(ledger):
    reservation = ledger.reserve("trial", "r1", pure("0.5"), uses=USES, fingerprint="f", description={})
    ledger.settle(reservation, "1")
    # Another answer of the same request is not heard.
    assert ledger.settle(reservation, "2") == 1
    with refuses("CV-L013"):
        ledger.settle(Reservation("trial", "r9", "f", 9), "1")
    with refuses("CV-L013"):
        ledger.settle(Reservation("trial", "r1", "f", 77), "1")
    assert len(ledger.entries()) == 3


def test_simulated_results_are_refused_by_a_lasting_ledger(ledger):
    head_hash = ledger.head_hash()
    with refuses("CV-L008"):
        ledger.reserve("trial", "r1", pure(1), uses=USES, fingerprint="f", description={}, simulated=True)
    assert ledger.head_hash() == head_hash


def test_the_same_registration_again_returns_the_account_as_it_stands(tmp_path):
    """A notebook that runs again registers again: nothing is added, granted or given back."""
    policy = AccessPolicy(public=["age", "treated"], protects=["outcome"])
    terms = {"record_budget": Budget(1), "access_policy": policy, "note": "approved 12 May"}
    place = tmp_path / "ledger.db"
    with open_ledger(place, create=True) as ledger:
        ledger.register("trial", Budget(2), **terms)
        spend(ledger, "r1", pure("0.4"))
    with open_ledger(place, create=True) as ledger:
        account, entries = ledger.account("trial"), len(ledger.entries())
        assert account.spent.epsilon == Fraction(2, 5)
        assert ledger.register("trial", Budget("2.0"), **terms) == account
        assert ledger.register("trial", Budget(2), **terms, rule="sum") == account
        assert len(ledger.entries()) == entries
        for other, named in (
            ({"budget": Budget(3)}, "budget epsilon 3, registered epsilon 2"),
            ({"record_budget": None}, "record_budget epsilon 2, registered epsilon 1"),
            ({"note": ""}, "note '', registered 'approved 12 May'"),
            ({"access_policy": None}, "access policy: another .*public"),
            ({"access_policy": replace(policy, public=("treated",))}, "access policy: another public"),
        ):
            with pytest.raises(LedgerError, match=f"(?s)CV-L005.*{named}"):
                ledger.register("trial", **({"budget": Budget(2)} | terms | other))
        assert ledger.verify().ok
        assert ledger.account("trial") == account


def test_an_account_without_a_policy_is_registered_again_after_its_first_request():
    with open_ledger(":memory:") as memory:
        made = memory.register("trial", Budget(1))
        assert made == memory.account("trial")
        spend(memory, "r1", pure("0.4"))
        assert memory.register("trial", Budget(1)).spent.epsilon == Fraction(2, 5)
        with refuses("CV-L005"):
            memory.register("trial", Budget(1), access_policy=AccessPolicy(protects=["outcome"]))


def test_memory_keeps_what_a_file_keeps_and_undoes_what_fails(ledger):
    """The same entries, accounts and refusals, whichever store holds them."""
    with open_ledger(":memory:") as memory:
        memory.register("trial", Budget(1), note="registered by the steward")
        for book in (ledger, memory):
            book.register("other", Budget(2))
            spend(book, "r1", pure("0.4"), '{"estimate": 2}')
            spend(book, "r2", pure("0.5"), dataset="other")
            assert spend(book, "r1", pure("0.4"), "[]") == '{"estimate": 2}'
            with refuses("CV-B001"):
                spend(book, "r3", pure("0.7"))
            with refuses("CV-L014"):
                book.reserve(
                    "trial", "r4", pure("0.1"), uses=USES, fingerprint="f", description={"bad": object()}
                )
            with refuses("CV-L005"):
                book.register("trial", Budget(2))
        # Only a ledger that lasts refuses unproved forms where its access policy is that of the first request.
        kept, lasting = memory.account("trial"), ledger.account("trial")
        assert (kept.access_policy.unproved, lasting.access_policy.unproved) == (True, False)
        assert replace(kept, access_policy=lasting.access_policy) == lasting
        assert [one.remaining for one in memory.datasets()] == [one.remaining for one in ledger.datasets()]
        for only in (None, "other"):
            mine, theirs = memory.entries(only), ledger.entries(only)
            assert [(e.seq, e.kind, e.dataset, e.request_id) for e in mine] == [
                (e.seq, e.kind, e.dataset, e.request_id) for e in theirs
            ]
        assert memory.verify().ok
        assert memory.verify().entries == 6


def test_what_fails_in_memory_leaves_nothing_behind():
    store = MemoryStore(opening_entry(None))
    ledger = Ledger(store)
    ledger.register("trial", Budget(1))
    spend(ledger, "r1", pure("0.4"))
    head_hash = ledger.head_hash()

    def stop_half_way():
        with store.writing():
            store.append(replace(store.last(), seq=4, request_id="r2", kind="reserve"))
            assert store.of_request("trial", "r2", "reserve") is not None
            raise RuntimeError("half way")

    with pytest.raises(RuntimeError, match="half way"):
        stop_half_way()
    assert ledger.head_hash() == head_hash
    assert store.of_request("trial", "r2", "reserve") is None
    assert store.latest_reserve("trial").request_id == "r1"
    assert ledger.verify(head_hash).ok


def test_everything_is_there_after_reopening(ledger, path):
    spend(ledger, "r1", pure("0.4"), '{"estimate": 2}')
    head_hash = ledger.head_hash()
    ledger.close()
    with open_ledger(path) as again:
        assert again.head_hash() == head_hash
        assert spend(again, "r1", pure("0.4")) == '{"estimate": 2}'
        assert again.account("trial").remaining.epsilon == Fraction(3, 5)


def test_only_the_owner_can_read_the_file(ledger, path):
    spend(ledger, "r1", pure("0.4"))
    for file in path.parent.iterdir():
        assert stat.S_IMODE(file.stat().st_mode) == 0o600, file.name


def test_creating_twice_keeps_the_first(ledger, path):
    with open_ledger(path, create=True) as again:
        assert again.account("trial").budget == Budget(1)
    assert not list(path.parent.glob(".ledger-*"))


def test_a_missing_ledger_is_not_made_silently(path):
    with refuses("CV-L001"):
        open_ledger(path)
    assert not path.exists()


@pytest.mark.parametrize("content", [b"", b"age,outcome\n1,2\n" * 200])
def test_another_file_is_not_a_ledger(path, content):
    path.write_bytes(content)
    for create in (False, True):
        with refuses("CV-L002"):
            open_ledger(path, create=create)
    assert path.read_bytes() == content


def test_closed_means_closed(ledger):
    ledger.close()
    ledger.close()
    with refuses("CV-L015"):
        ledger.account("trial")


def _use_after_fork(ledger, sender):
    try:
        ledger.account("trial")
    except LedgerError as error:
        sender.send(error.code)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_process_may_not_use_the_connection(ledger):
    receiver, sender = multiprocessing.Pipe()
    child = multiprocessing.get_context("fork").Process(target=_use_after_fork, args=(ledger, sender))
    child.start()
    child.join()
    assert receiver.poll(5)
    assert receiver.recv() == "CV-L015"


def test_threads_take_turns(ledger):
    outcomes = []

    def work(number):
        try:
            spend(ledger, f"r{number}", pure("0.1"))
            outcomes.append(True)
        except BudgetError:
            outcomes.append(False)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(outcomes) == [False] * 6 + [True] * 10
    assert ledger.verify().ok


def test_an_entry_that_was_changed_after_it_was_read_is_refused():
    store = MemoryStore(opening_entry(None))
    ledger = Ledger(store)
    ledger.register("trial", Budget(1))
    spend(ledger, "r1", pure("0.4"))
    assert ledger.remarks("trial", Unit.OUTCOME, "treated") == ()
    row = store.latest_reserve("trial")
    changed = row.body.replace('"unproved":0', '"unproved":1')
    assert changed != row.body
    store._db.execute("UPDATE entries SET body = ? WHERE seq = ?", (changed, row.seq))
    for look in (
        lambda: ledger.remarks("trial", Unit.OUTCOME, "treated"),
        lambda: spend(ledger, "r2", pure("0.1")),
    ):
        with refuses("CV-L016"):
            look()
