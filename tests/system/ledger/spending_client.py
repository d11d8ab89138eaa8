"""A program that spends in a loop until the budget is gone, beside others that do the same.

Usage: python spending_client.py PLACE NAME COUNT MODE. MODE `own`: every request has an id of its
own; `shared`: all programs use the same ids; `register`: all try to register the same data set.
Each line printed is one outcome.
"""

import json
import sys

from counterveil.accounting import Answered, Uses, open_ledger
from counterveil.errors import CounterveilError
from counterveil.privacy import Budget, Charge, PureEvent, Unit

USES = Uses(Unit.OUTCOME, "ate", "mean", "treated", "relapse")


def one(ledger, request_id: str, name: str) -> str:
    price = Budget("0.01")
    charge = Charge(price, (PureEvent(price.epsilon),))
    kept = ledger.reserve("trial", request_id, charge, uses=USES, fingerprint="f", description={})
    if isinstance(kept, Answered):
        return f"resent {request_id} {kept.answer}"
    # Another process may go on with a request that is reserved, and be faster.
    (drawn,) = ledger.release(kept, "mean", ["1/1"], lambda: [name])
    return f'spent {request_id} "{ledger.settle(kept, json.dumps(drawn))}"'


def main(place: str, name: str, count: int, mode: str) -> None:
    with open_ledger(place, create=mode == "register") as ledger:
        for number in range(count):
            try:
                if mode == "register":
                    ledger.register(f"set {number}", Budget(1), note=name)
                    print(f"registered {number}", flush=True)
                else:
                    request_id = f"{name} {number}" if mode == "own" else f"request {number}"
                    print(one(ledger, request_id, name), flush=True)
            except CounterveilError as error:
                print(f"refused {error.code} {number}", flush=True)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4])
