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
from counterveil.session.plan import MECHANISMS, Kind, Plan, SmoothNoise, choose_mechanism
from counterveil.session.session import Request, Session, drafted_charter

__all__ = [
    "MECHANISMS",
    "BitSource",
    "Gate",
    "Kind",
    "KnownSensitivityMechanism",
    "Plan",
    "Released",
    "ReleasedVector",
    "Request",
    "Responses",
    "SeededNoise",
    "Session",
    "SmoothNoise",
    "SmoothSensitivityMechanism",
    "choose_mechanism",
    "drafted_charter",
    "fixed_ambient_generators",
    "mechanism_from_dict",
]
