"""The gate: the only place where a table, a mechanism and a ledger meet."""

from counterveil.curator.custody import Custody, Request
from counterveil.curator.gate import Gate, Released
from counterveil.curator.plan import LAWS, Plan, choose_law
from counterveil.mechanisms import BitSource, KnownSensitivityMechanism, SeededNoise, mechanism_from_dict

__all__ = [
    "LAWS",
    "BitSource",
    "Custody",
    "Gate",
    "KnownSensitivityMechanism",
    "Plan",
    "Released",
    "Request",
    "SeededNoise",
    "choose_law",
    "mechanism_from_dict",
]
