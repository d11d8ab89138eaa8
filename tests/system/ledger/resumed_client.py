"""A program that asks a question of a ledger in one process after another, each killed at a later release.

Usage: python resumed_client.py PLACE QUESTION. The n-th request is killed once it has drawn its n-th release and not
stored it ("drawn"), or stored it ("stored"). Each line printed is JSON: the request, the event, name and numbers.
With a third word REQUEST, two processes ask that request at once, and each prints its answer.
"""

import itertools
import json
import os
import signal
import sys

import numpy as np

import counterveil as cv
from counterveil.accounting import Ledger

ROWS = 240
# What computations on rows print is silenced.
OUT = os.dup(1)
STUDY = cv.Study(
    treatment=cv.Treatment("treated", control=0),
    outcome=cv.Outcome("score", (0, 1)),
    covariates={"age": cv.Range(0, 1), "severe": cv.Binary()},
)
QUESTIONS = {
    "record-level effect": (
        cv.Session.ate,
        {"protects": "record", "method": "doubly_robust", "delta": "1e-6"},
    ),
    "effects by person": (cv.Session.cate, {"delta": "1e-6"}),
    "outcome-level effect": (cv.Session.ate, {"protects": "outcome", "method": "weighting"}),
}


def people():
    rng = np.random.default_rng(5)
    age, severe = rng.random(ROWS), rng.integers(0, 2, ROWS)
    treated = (rng.random(ROWS) < 0.3 + 0.4 * age).astype(int)
    score = np.clip(0.2 + 0.3 * treated + 0.2 * age + 0.1 * rng.normal(size=ROWS), 0, 1)
    return {"age": age, "severe": severe, "treated": treated, "score": score}


def ask(place, question, request_id, **options):
    """Return the answer to one of the questions."""
    function, arguments = QUESTIONS[question]
    with cv.Session(people(), STUDY, ledger=place, **options) as session:
        return function(session, epsilon=1, request_id=request_id, **arguments)


def say(*words):
    os.write(OUT, (json.dumps(words) + "\n").encode())


def watched(request_id, deadly=0, moment=""):
    """Have every release of this process told, and the process killed at one of them."""
    keep, passed = Ledger.release, itertools.count(1)

    def release(self, reservation, name, bounds, draw):
        number = next(passed)

        def told():
            values = draw()
            say(request_id, "drawn", name, values)
            if (number, moment) == (deadly, "drawn"):
                os.kill(os.getpid(), signal.SIGKILL)
            return values

        found = keep(self, reservation, name, bounds, told)
        say(request_id, "stored", name, found)
        if (number, moment) == (deadly, "stored"):
            os.kill(os.getpid(), signal.SIGKILL)
        return found

    Ledger.release = release


def forked(work):
    """Run `work` in a process of its own; return its number."""
    child = os.fork()
    if child == 0:
        try:
            work()
            os._exit(0)
        finally:
            os._exit(1)
    return child


def killed(place, question, request_id, deadly, moment):
    """Return whether a process that asks was killed; it ends in order once it has no such release."""

    def work():
        watched(request_id, deadly, moment)
        ask(place, question, request_id)

    _, status = os.waitpid(forked(work), 0)
    if not os.WIFSIGNALED(status):
        assert status == 0
        return False
    assert os.WTERMSIG(status) == signal.SIGKILL
    return True


def together(place, question, request_id):
    def work():
        watched(request_id)
        say(request_id, "answer", "", ask(place, question, request_id).stored())

    for child in [forked(work) for _ in range(2)]:
        assert os.waitpid(child, 0)[1] == 0


def main(place, question, request_id=None):
    # What is imported and compiled for a first answer is there for every process that is forked.
    ask(":memory:", question, "first", budget=cv.Budget(10**6, "1e-3"))
    if request_id is not None:
        together(place, question, request_id)
        return
    for number in itertools.count(1):
        for moment in ("drawn", "stored"):
            if not killed(place, question, f"{number} {moment}", number, moment):
                return


if __name__ == "__main__":
    main(*sys.argv[1:])
