"""Several processes on one ledger: never overspent, every affordable request answered, one answer an id."""

import subprocess
import sys
from collections import Counter
from fractions import Fraction
from pathlib import Path

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
