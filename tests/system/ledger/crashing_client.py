"""A program whose processes spend from a ledger, each killing itself at a chosen step.

It reads lines `PLACE STEP` and answers each with a line: the status of a process of its own, and what that was told
before its death. A step is a statement sent to the database, counted from the first one of `reserve`; an even STEP
dies before the statement STEP // 2, an odd one right after it.
"""

import os
import signal
import sys

from counterveil.accounting import Uses, open_ledger
from counterveil.privacy import Budget, Charge, PureEvent, Unit

USES = Uses(Unit.OUTCOME, "ate", "mean", "treated", "relapse")

TENTH = Budget("0.1")


def spend(place: str, deadly: int) -> None:
    ledger = open_ledger(place)
    store = ledger._store
    send, sent = store._run, 0

    def send_or_die(statement, *values):
        nonlocal sent
        number, sent = sent, sent + 1
        if deadly == 2 * number:
            os.kill(os.getpid(), signal.SIGKILL)
        answer = send(statement, *values)
        if deadly == 2 * number + 1:
            os.kill(os.getpid(), signal.SIGKILL)
        return answer

    store._run = send_or_die
    charge = Charge(TENTH, (PureEvent(TENTH.epsilon),))
    reservation = ledger.reserve("trial", "crashing", charge, uses=USES, fingerprint="f", description={})
    print("reserved", end=" ", flush=True)
    ledger.release(reservation, "mean", ["1/1"], lambda: ["5/1"])
    print("released", end=" ", flush=True)
    ledger.settle(reservation, '{"estimate": 5}')
    print("settled", end=" ", flush=True)


def forked(place: str, deadly: int) -> int:
    """Spend in a process of its own; return how it ended."""
    child = os.fork()
    if child == 0:
        try:
            spend(place, deadly)
            os._exit(0)
        finally:
            os._exit(1)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


if __name__ == "__main__":
    for line in sys.stdin:
        place, step = line.split()
        print(forked(place, int(step)), flush=True)
