"""A program that spends from a ledger and kills itself at a chosen step.

Usage: python crashing_client.py PLACE STEP. A step is a statement sent to the database, counted
from the first one of `reserve`; an even STEP dies before the statement STEP // 2, an odd one right
after it. What the caller was told before death is printed, one word a line.
"""

import os
import signal
import sys

from counterveil.accounting import Uses, open_ledger
from counterveil.privacy import Budget, Charge, PureEvent, Unit

USES = Uses(Unit.OUTCOME, "ate", "mean", "treated", "relapse")

TENTH = Budget("0.1")


def main(place: str, deadly: int) -> None:
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
    print("reserved", flush=True)
    ledger.release(reservation, "mean", ["1/1"], lambda: ["5/1"])
    print("released", flush=True)
    ledger.settle(reservation, '{"estimate": 5}')
    print("settled", flush=True)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
