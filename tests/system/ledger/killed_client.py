"""A program that opens a ledger for each request, spends, says so, and goes on until it is killed.

Usage: python killed_client.py PLACE NAME CHECKPOINT. Each line printed is a request whose answer was released.
"""

import itertools
import sys

from counterveil.accounting import Uses, open_ledger
from counterveil.privacy import Budget, Charge, PureEvent, Unit

PRICE = Budget("0.001")
USES = Uses(Unit.OUTCOME, "ate", "mean", "treated", "relapse")


def main(place: str, name: str, checkpoint: str) -> None:
    charge = Charge(PRICE, (PureEvent(PRICE.epsilon),))
    for number in itertools.count():
        with open_ledger(place, checkpoint=checkpoint or None) as ledger:
            request_id = f"{name}@{number}"
            kept = ledger.reserve("trial", request_id, charge, uses=USES, fingerprint="f", description={})
            ledger.settle(kept, f'"{request_id}"')
        print(request_id, flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
