"""A program that opens a ledger for each request, spends, says so, and goes on until it is killed.

Usage: python killed_client.py PLACE NAME ANCHOR. Each line printed is a request whose answer was released.
"""

import itertools
import sys

from counterveil.accounting import Uses, open_ledger
from counterveil.privacy import Budget, Charge, PureEvent, Unit

USES = Uses(Unit.OUTCOME, "ate", "mean", "treated", "relapse")

PRICE = Budget("0.001")


def main(place: str, name: str, anchor: str) -> None:
    charge = Charge(PRICE, (PureEvent(PRICE.epsilon),))
    for number in itertools.count():
        with open_ledger(place, anchor=anchor or None) as ledger:
            request_id = f"{name}@{number}"
            kept = ledger.reserve("trial", request_id, charge, uses=USES, fingerprint="f", description={})
            ledger.settle(kept, f'"{request_id}"')
        print(request_id, flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
