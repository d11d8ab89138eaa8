"""What a command charges: the ledger it opens, and what it says about it after the answer."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from counterveil.accounting import Account, Ledger


_NOBODY = (
    "none: nobody adds up what several such calls cost; make one with `counterveil ledger create` and "
    "name it with --ledger"
)


@dataclass(frozen=True, slots=True)
class Charging:
    """The ledger and the name of one request; without a ledger nothing lasts."""

    place: str | None
    ledger: Ledger | None
    dataset: str | None
    request_id: str | None
    answered_before: bool = False

    @property
    def arguments(self) -> dict[str, Any]:
        """What a question takes: its ledger, its account and its name."""
        return {"ledger": self.ledger, "dataset": self.dataset, "request_id": self.request_id}

    def lines(self) -> list[str]:
        """Return what the request was called, whether it cost anything, and what is left."""
        from counterveil.report.text import wrapped

        if self.ledger is None:
            return wrapped(_NOBODY, "Ledger:      ")
        account = self.ledger.account(self.dataset or self.ledger.datasets()[0].dataset)
        # The address of a server may hold a password.
        place = "on a server" if self.place is None or "://" in self.place else self.place
        cost = "answered before, so that nothing was spent" if self.answered_before else "charged"
        return wrapped(
            f"{place}, data set {account.dataset!r}: request {self.request_id!r} {cost}; "
            f"left: {_left(account)}",
            "Ledger:      ",
        )


def _left(account: Account) -> str:
    """Return what is left; apart for records where they have less."""
    text = f"{account.remaining} of {account.budget}"
    if account.record_remaining == account.remaining:
        return text
    return f"{text}; for answers that protect records {account.record_remaining} of {account.record_budget}"


@contextmanager
def charging(
    place: str | None,
    dataset: str | None,
    request_id: str | None,
    anchor: str | None = None,
    analyst: str | None = None,
) -> Iterator[Charging]:
    """Yield what to charge; a request without a name gets one, so that its answer can be asked for again."""
    if place is None:
        yield Charging(None, None, dataset, request_id)
        return
    from counterveil.accounting import open_ledger

    with open_ledger(place, anchor=anchor) as ledger:
        if analyst is not None:
            ledger.analyst = analyst
        names = [dataset] if dataset is not None else [account.dataset for account in ledger.datasets()]
        before = request_id is not None and any(
            ledger.state_of(name, request_id) == "answered" for name in names
        )
        yield Charging(place, ledger, dataset, request_id or uuid.uuid4().hex, before)
