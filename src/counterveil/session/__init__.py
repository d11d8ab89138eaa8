"""The gate: the only place where a table, a mechanism and a ledger meet."""

from counterveil.mechanisms import (
    BitSource,
    KnownSensitivityMechanism,
    SeededNoise,
    SmoothSensitivityMechanism,
    fixed_ambient_generators,
    mechanism_from_dict,
)
from counterveil.session.gate import Gate, Released, ReleasedVector, Responses
from counterveil.session.plan import LAWS, Kind, Plan, SmoothNoise, choose_law
from counterveil.session.session import Custody, Request

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
    "SmoothNoise",
    "SmoothSensitivityMechanism",
    "choose_law",
    "fixed_ambient_generators",
    "mechanism_from_dict",
]
