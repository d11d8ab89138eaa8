"""kill -9 at every release of a request: asked again by its id it goes on, with the same numbers and one charge."""

import json
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
from tests.system.ledger.resumed_client import QUESTIONS, ask
from tests.thinned import examples, thinned_rows

from counterveil.accounting import Ledger, open_ledger
from counterveil.privacy import Budget

CLIENT = Path(__file__).with_name("resumed_client.py")
# What a server keeps of a release does not depend on the question.
EVERY = [*(("sqlite", question) for question in QUESTIONS), ("postgresql", "outcome-level effect")]
CASES = thinned_rows(EVERY, ("sqlite", "record-level effect"), EVERY[-1])


def run_client(*words):
    done = subprocess.run(
        [sys.executable, str(CLIENT), *words], capture_output=True, text=True, timeout=600, check=False
    )
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def releases(place, request_id):
    """Return what is stored of a request by name, and how many entries of each kind it has."""
    with open_ledger(place) as ledger:
        own = [entry for entry in ledger.entries() if entry.request_id == request_id]
    named = {entry.facts["name"]: entry.facts["values"] for entry in own if entry.kind == "release"}
    return named, Counter(entry.kind for entry in own)


def told(lines, request_id, event):
    return {name: values for own, what, name, values in lines if (own, what) == (request_id, event)}


def check_resumed(place, question, request_id, lines, monkeypatch):
    """Ask a request again whose process was killed; return how many releases it has in all."""
    before, kinds = releases(place, request_id)
    assert kinds.keys() <= {"reserve", "release"}
    assert before == told(lines, request_id, "stored")
    drawn, keep = [], Ledger.release

    def release(self, reservation, name, bounds, draw):
        return keep(self, reservation, name, bounds, lambda: drawn.append(name) or draw())

    with monkeypatch.context() as patch:
        patch.setattr(Ledger, "release", release)
        answer = ask(place, question, request_id)
    after, kinds = releases(place, request_id)
    assert after | before == after
    assert drawn == [name for name in after if name not in before]
    assert kinds == {"reserve": 1, "release": len(after), "settle": 1}
    assert numbers(answer) == numbers(ask(place, question, request_id))
    return len(after)


def check_alone(place, question, request_id, monkeypatch):
    """The answer is what the stored numbers say, and nothing else."""
    after, _ = releases(place, request_id)
    with monkeypatch.context() as patch:
        patch.setattr(Ledger, "release", lambda self, reservation, name, bounds, draw: after[name])
        alone = ask(":memory:", question, request_id, budget=Budget(10**6, "1e-3"))
    assert numbers(alone) == numbers(ask(place, question, request_id))


def numbers(answer):
    """Return the numbers of a result, without what it says of its account."""
    facts = {name: fact for name, fact in answer.stored().items() if name not in ("guarantee", "spent")}
    return json.dumps(facts, default=str, sort_keys=True)


@pytest.mark.parametrize(("place", "question"), CASES, indirect=["place"])
def test_every_release(place, question, monkeypatch):
    with open_ledger(place, create=True) as ledger:
        ledger.register("trial", Budget(10**6, "1e-3"))
        ledger.publish("trial", ["treated", "age", "severe"])
    lines = run_client(place, question)
    asked = list(dict.fromkeys(line[0] for line in lines))
    whole = {check_resumed(place, question, each, lines, monkeypatch) for each in asked[:-1]}
    for each in asked[:-1][:: examples(9, 3)]:
        check_alone(place, question, each, monkeypatch)
    # Two were killed at each release; the last, which was to be killed at one more, ended by itself.
    assert whole == {(len(asked) - 1) // 2}
    with open_ledger(place) as ledger:
        account, report = ledger.account("trial"), ledger.verify()
        assert (report.ok, account.requests) == (True, len(asked))
        assert account.spent.epsilon == len(asked)


@pytest.mark.parametrize(("place", "question"), CASES, indirect=["place"])
def test_two_processes_that_go_on_at_once_give_one_answer(place, question):
    with open_ledger(place, create=True) as ledger:
        ledger.register("trial", Budget(10**6, "1e-3"))
        ledger.publish("trial", ["treated", "age", "severe"])
    lines = run_client(place, question, "both")
    first, second = (line[3] for line in lines if line[1] == "answer")
    assert first == second
    after, kinds = releases(place, "both")
    assert kinds == {"reserve": 1, "release": len(after), "settle": 1}
    # Whatever either of them drew, both used what is stored.
    assert all(after[name] == values for _, event, name, values in lines if event == "stored")
    with open_ledger(place) as ledger:
        assert ledger.verify().ok
        assert ledger.account("trial").spent.epsilon == 1
