"""Composition of privacy losses, calibration, and the ledger."""

from counterveil.accounting.access_policy import AccessPolicy, Look, Looks, Uses
from counterveil.accounting.composition import Figure, compose, gaussian_equivalent, split_epsilon, split_mu
from counterveil.accounting.filters import RULES, Remaining
from counterveil.accounting.ledger import Ledger
from counterveil.accounting.opening import open_ledger
from counterveil.accounting.records import Account, Answered, Posting, Reservation, VerifyReport
from counterveil.accounting.refusals import OverBudgetError

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
