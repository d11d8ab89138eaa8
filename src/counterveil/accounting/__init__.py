"""Composition of privacy losses, calibration, and the ledger."""

from counterveil.accounting.access_policy import AccessPolicy, Look, Looks, Uses
from counterveil.accounting.accounts import OverBudgetError
from counterveil.accounting.composition import (
    RULES,
    Figure,
    Remaining,
    compose,
    gaussian_equivalent,
    split_epsilon,
    split_mu,
)
from counterveil.accounting.ledger import Ledger, open_ledger
from counterveil.accounting.records import Account, Answered, Posting, Reservation, VerifyReport

__all__ = [
    "RULES",
    "AccessPolicy",
    "Account",
    "Answered",
    "Figure",
    "Ledger",
    "Look",
    "Looks",
    "OverBudgetError",
    "Posting",
    "Remaining",
    "Reservation",
    "Uses",
    "VerifyReport",
    "compose",
    "gaussian_equivalent",
    "open_ledger",
    "split_epsilon",
    "split_mu",
]
