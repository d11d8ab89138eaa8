"""The gate: the only place where a table, a mechanism and a ledger meet."""

from counterveil.curator.custody import Custody, Request
from counterveil.curator.gate import Gate, Released, ReleasedVector, Responses
from counterveil.curator.plan import LAWS, Kind, Plan, choose_law
from counterveil.mechanisms import BitSource, KnownSensitivityMechanism, SeededNoise, mechanism_from_dict

__all__ = [
    "LAWS",
    "BitSource",
    "Custody",
    "Gate",
    "Kind",
    "KnownSensitivityMechanism",
    "Plan",
    "Released",
    "ReleasedVector",
    "Request",
    "Responses",
    "SeededNoise",
    "choose_law",
    "mechanism_from_dict",
]
