"""The gate: the only place where a table, a mechanism and a ledger meet."""

from counterveil.mechanisms import (
    BitSource,
    KnownSensitivityMechanism,
    Lomax,
    SeededNoise,
    StableHistogram,
    fixed_ambient_generators,
    mechanism_from_dict,
)
from counterveil.session.session import (
    MECHANISMS,
    BaseSession,
    Gate,
    Kind,
    Plan,
    Released,
    ReleasedVector,
    Request,
    Responses,
    choose_mechanism,
    columns_to_publish,
    drafted_access_policy,
)

__all__ = [
    "MECHANISMS",
    "BaseSession",
    "BitSource",
    "Gate",
    "Kind",
    "KnownSensitivityMechanism",
    "Lomax",
    "Plan",
    "Released",
    "ReleasedVector",
    "Request",
    "Responses",
    "SeededNoise",
    "StableHistogram",
    "choose_mechanism",
    "columns_to_publish",
    "drafted_access_policy",
    "fixed_ambient_generators",
    "mechanism_from_dict",
]
