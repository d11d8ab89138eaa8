"""Several processes on one ledger, some killed again and again: never overspent, nothing lost, one answer an id."""

import random
import signal
import subprocess
import sys
from collections import Counter
from fractions import Fraction
from pathlib import Path

import pytest
from tests.thinned import examples

from counterveil.accounting import open_ledger
from counterveil.privacy import Budget

CLIENT = Path(__file__).with_name("spending_client.py")
PROCESSES = examples(2, 5)


def run_together(place, count, mode):
    """Return the lines that the clients printed, all started before any is waited for."""
    command = [sys.executable, str(CLIENT), place]
    clients = [
        subprocess.Popen(
            [*command, f"client {number}", str(count), mode],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for number in range(PROCESSES)
    ]
    lines = []
    for client in clients:
        out, problem = client.communicate(timeout=300)
        assert client.returncode == 0, problem
        lines += out.splitlines()
    return lines


def test_never_overspent_and_nothing_wasted(place):
    with open_ledger(place, create=True) as ledger:
        ledger.register("trial", Budget("1.005"))  # room for exactly 100 requests at 0.01
    each = 160 // PROCESSES
    lines = run_together(place, each, "own")
    outcomes = Counter(" ".join(line.split()[:1]) for line in lines)
    assert outcomes == {"spent": 100, "refused": PROCESSES * each - 100}
    assert all("CV-B001" in line for line in lines if line.startswith("refused"))
    with open_ledger(place) as ledger:
        report = ledger.verify()
        assert (report.ok, report.entries) == (True, 301)
        assert ledger.account("trial").spent.epsilon == 1
        assert ledger.account("trial").remaining.epsilon == Fraction(1, 200)


def test_one_id_is_drawn_once_however_many_ask(place):
    with open_ledger(place, create=True) as ledger:
        ledger.register("trial", Budget(10))
    lines = run_together(place, 15, "shared")
    answers: dict[str, set[str]] = {}
    for line in lines:
        word, *rest = line.split(maxsplit=3)
        assert word in ("spent", "resent"), line
        answers.setdefault(" ".join(rest[:2]), set()).add(rest[2])
    # Several may compute the same request at once; all of them show what one of them drew.
    assert len(lines) == 15 * PROCESSES
    assert len(answers) == 15
    assert all(len(given) == 1 for given in answers.values())
    with open_ledger(place) as ledger:
        assert ledger.verify().entries == 46
        assert ledger.account("trial").spent.epsilon == Fraction(15, 100)


def test_all_create_and_register_at_once_and_one_wins(place):
    lines = run_together(place, 5, "register")
    assert sorted(line for line in lines if line.startswith("registered")) == [
        f"registered {number}" for number in range(5)
    ]
    refused = [line for line in lines if line.startswith("refused")]
    assert len(refused) == 5 * (PROCESSES - 1)
    assert all("CV-L005" in line for line in refused)
    with open_ledger(place) as ledger:
        assert ledger.verify().entries == 5


KILLS_CLIENT = Path(__file__).with_name("killed_client.py")
WRITERS = examples(2, 4)


def start(place, name, checkpoint, log):
    command = [sys.executable, str(KILLS_CLIENT), place, name, checkpoint]
    with log.open("wb") as out, log.with_suffix(".err").open("wb") as err:
        return subprocess.Popen(command, stdout=out, stderr=err)


def killed_often(place, checkpoint, spends, folder, choose):
    """Return the logs of clients that were killed one by one, until `spends` answers were released."""
    logs, running = [], {}
    while sum(log.read_bytes().count(b"\n") for log in logs) < spends:
        while len(running) < WRITERS:
            log = folder / f"client{len(logs)}.log"
            log.touch()
            running[log] = start(place, f"client{len(logs)}", checkpoint, log)
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


def check(place, checkpoint, logs):
    with open_ledger(place, checkpoint=checkpoint or None) as ledger:
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
    checkpoint = folder / "elsewhere"
    checkpoint.mkdir()
    with open_ledger(place, create=True, checkpoint=checkpoint) as ledger:
        ledger.register("trial", Budget(10**6))
    logs = killed_often(place, str(checkpoint), spends, folder, random.Random(seed))
    released, clients = check(place, str(checkpoint), logs)
    assert released >= spends
    print(f"{released} answers, {clients} clients killed")


def test_some_kills(place, tmp_path):
    run(place, tmp_path, 10, 1)


@pytest.mark.slow
def test_five_hundred_spends_with_kills(place, tmp_path):
    run(place, tmp_path, 500, 2)
