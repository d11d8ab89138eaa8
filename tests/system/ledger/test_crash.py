"""kill -9 at every statement between a request and its answer: no budget comes back, no entry is lost."""

import signal
import subprocess
import sys
from fractions import Fraction
from pathlib import Path

import pytest

from counterveil.accounting import Answered, Reservation, Uses, open_ledger
from counterveil.errors import LedgerError
from counterveil.privacy import Budget, Charge, PureEvent, Unit

USES = Uses(Unit.OUTCOME, "ate", "mean", "treated", "relapse")

CLIENT = Path(__file__).with_name("crashing_client.py")
MAKING = ("close", "_connect", "_create", "sync", "fsync", "link")
# For each line, a process that dies before or after one step of making a file.
MAKER = """
import os, signal, sys
from counterveil.accounting import open_ledger, sql_store

def make(name, place, moment):
    owner = sql_store.os if name in ("link", "fsync", "close") else sql_store
    real = getattr(owner, name)
    def die(*arguments, **options):
        if moment == "after":
            real(*arguments, **options)
        os.kill(os.getpid(), signal.SIGKILL)
    setattr(owner, name, die)
    open_ledger(place, create=True)

for line in sys.stdin:
    child = os.fork()
    if child == 0:
        make(*line.split())
        os._exit(0)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""
TENTH = Budget("0.1")
CHARGE = Charge(TENTH, (PureEvent(TENTH.epsilon),))


def spend(ledger, request_id):
    kept = ledger.reserve("trial", request_id, CHARGE, uses=USES, fingerprint="f", description={})
    if isinstance(kept, Answered):
        return kept.answer
    ledger.settle(kept, '{"estimate": 1}')
    return '{"estimate": 1}'


@pytest.fixture(scope="module")
def client():
    """A program that starts a process for each crash, with what it needs imported before."""
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with subprocess.Popen([sys.executable, str(CLIENT)], **pipes) as running:
        yield running


def crash_at(client, place, step):
    """Have a process die at `step`; return what it was told before, or None if it survived."""
    client.stdin.write(f"{place} {step}\n")
    client.stdin.flush()
    *told, status = client.stdout.readline().split()
    if status == "0":
        return None
    assert int(status) == -signal.SIGKILL
    return told


def check_after_crash(place, before, told):
    """Compare the ledger after a crash with the one before, and with what the client was told."""
    with open_ledger(place) as ledger:
        report = ledger.verify(head_hash=before[-1].hash)
        assert report.ok, report.problem
        entries = ledger.entries()
        assert entries[: len(before)] == before
        kinds = [entry.kind for entry in entries[len(before) :]]
        assert kinds == ["reserve", "release", "settle"][: len(kinds)]
        assert len(told) <= len(kinds), "something that was confirmed is gone"
        spent = Fraction(3, 10) + (Fraction(1, 10) if kinds else 0)
        assert ledger.account("trial").spent.epsilon == spent
        check_retry(ledger, kinds)
        assert spend(ledger, "afterwards") == '{"estimate": 1}'
        assert ledger.verify().ok
    return kinds


def check_retry(ledger, kinds):
    """The same request again: fresh, gone on with, or resent; what was stored is never drawn again."""
    retry = {
        "dataset": "trial",
        "request_id": "crashing",
        "charge": CHARGE,
        "uses": USES,
        "fingerprint": "f",
        "description": {},
    }
    kept = ledger.reserve(**retry)
    if "settle" in kinds:
        assert kept == Answered('{"estimate": 5}')
        return
    assert isinstance(kept, Reservation)
    drawn = ledger.release(kept, "mean", ["1/1"], lambda: ["6/1"])
    assert drawn == (["5/1"] if "release" in kinds else ["6/1"])


def crashed_at(step, client, tmp_path, cluster):
    """Return what a crash at one step leaves of a ledger of its own, or None where the client survives."""
    place = cluster.emptied() if cluster else str(tmp_path / f"ledger-{step}.db")
    with open_ledger(place, create=True) as ledger:
        ledger.register("trial", Budget(1))
        for number in range(3):
            spend(ledger, f"r{number}")
        before = ledger.entries()
    told = crash_at(client, place, step)
    return None if told is None else check_after_crash(place, before, told)


# Every fifth step and the last ones here, and all of them marked slow.
@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
@pytest.mark.parametrize("stride", [5, pytest.param(1, marks=pytest.mark.slow)])
def test_every_step(kind, stride, client, tmp_path, request):
    cluster = request.getfixturevalue("cluster") if kind == "postgresql" else None
    seen, step = [], 0
    while (kinds := crashed_at(step, client, tmp_path, cluster)) is not None:
        seen.append(kinds)
        step += stride
    last = (crashed_at(each, client, tmp_path, cluster) for each in range(step - stride + 1, step))
    seen += [kinds for kinds in last if kinds is not None]
    # The states that a crash can leave all occurred, in this order, so the steps were really passed.
    stages = [len(kinds) for kinds in seen]
    assert stages == sorted(stages)
    assert set(stages) == {0, 1, 2, 3}
    assert step >= 30


def test_a_crash_while_the_file_is_made_leaves_nothing_half_made(tmp_path):
    """The file appears complete or not at all, whichever step of its making is the last."""
    cases = [(name, moment) for name in MAKING for moment in ("before", "after")]
    words = [f"{name} {tmp_path}/{name}-{moment}.db {moment}" for name, moment in cases]
    done = subprocess.run(
        [sys.executable, "-c", MAKER], input="\n".join(words), text=True, capture_output=True
    )
    assert done.stdout.split() == [str(-signal.SIGKILL)] * len(cases), done.stderr
    for name, moment in cases:
        place = tmp_path / f"{name}-{moment}.db"
        assert place.exists() == ((name, moment) == ("link", "after"))
        with open_ledger(place, create=True) as ledger:
            ledger.register("trial", Budget(1))
            assert ledger.verify().ok


def test_a_server_that_loses_power_keeps_what_it_confirmed(cluster):
    place = cluster.emptied()
    with open_ledger(place, create=True) as ledger:
        ledger.register("trial", Budget(1))
        spend(ledger, "r1")
        lost = ledger.reserve("trial", "r2", CHARGE, uses=USES, fingerprint="f", description={})
        head_hash = ledger.head_hash()
        cluster.crash()
        with pytest.raises(LedgerError, match="CV-L009"):
            ledger.settle(lost, "1")
    cluster.start()
    with open_ledger(place) as ledger:
        assert ledger.verify(head_hash=head_hash).ok
        assert ledger.account("trial").spent.epsilon == Fraction(1, 5)
        assert spend(ledger, "r2") == '{"estimate": 1}'
        assert ledger.account("trial").spent.epsilon == Fraction(1, 5)
