"""Writers that are killed again and again, with anchors: nothing is lost, nothing comes back, nobody is refused."""

import random
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from tests.thinned import examples

from counterveil.accounting import open_ledger
from counterveil.privacy import Budget

CLIENT = Path(__file__).with_name("killed_client.py")
WRITERS = examples(2, 4)


def start(place, name, anchor, log):
    command = [sys.executable, str(CLIENT), place, name, anchor]
    with log.open("wb") as out, log.with_suffix(".err").open("wb") as err:
        return subprocess.Popen(command, stdout=out, stderr=err)


def killed_often(place, anchor, spends, folder, choose):
    """Return the logs of clients that were killed one by one, until `spends` answers were released."""
    logs, running = [], {}
    while sum(log.read_bytes().count(b"\n") for log in logs) < spends:
        while len(running) < WRITERS:
            log = folder / f"client{len(logs)}.log"
            log.touch()
            running[log] = start(place, f"client{len(logs)}", anchor, log)
            logs.append(log)
        chosen = choose.choice(sorted(running))
        # How long it lives is left to chance; what must hold does not depend on it.
        try:
            running[chosen].wait(timeout=choose.uniform(0.5, 2.5))
        except subprocess.TimeoutExpired:
            running[chosen].send_signal(signal.SIGKILL)
        running.pop(chosen).wait()
        # A client that ends by itself would end at once each time, and this loop never.
        assert chosen.with_suffix(".err").read_bytes() == b""
    for client in running.values():
        client.send_signal(signal.SIGKILL)
        client.wait()
    return logs


def check(place, anchor, logs):
    with open_ledger(place, anchor=anchor or None) as ledger:
        report = ledger.verify()
        assert report.ok, report.problem
        answered = {entry.request_id for entry in ledger.entries() if entry.kind == "settle"}
        reserved = [entry.request_id for entry in ledger.entries() if entry.kind == "reserve"]
        account = ledger.account("trial")
    released = {line for log in logs for line in log.read_text().split("\n")[:-1]}
    assert released <= answered
    assert len(reserved) == len(set(reserved)) == account.requests
    assert account.spent.epsilon == account.requests * Budget("0.001").epsilon
    # A client ends by being killed, and for no other reason: a sound ledger is never refused.
    assert all(log.with_suffix(".err").read_bytes() == b"" for log in logs)
    return len(released), len(logs)


def run(place, folder, spends, seed):
    anchor = folder / "elsewhere"
    anchor.mkdir()
    with open_ledger(place, create=True, anchor=anchor) as ledger:
        ledger.register("trial", Budget(10**6))
    logs = killed_often(place, str(anchor), spends, folder, random.Random(seed))
    released, clients = check(place, str(anchor), logs)
    assert released >= spends
    print(f"{released} answers, {clients} clients killed")


def test_some_kills(place, tmp_path):
    run(place, tmp_path, 10, 1)


@pytest.mark.slow
def test_five_hundred_spends_with_kills(place, tmp_path):
    run(place, tmp_path, 500, 2)
