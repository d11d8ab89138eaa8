"""Budgets, units of protection, privacy events and guarantees; no numerics."""

from counterveil.privacy.budget import Budget, Number, exact, read_written, show, written
from counterveil.privacy.event import (
    ApproximateEvent,
    Charge,
    Event,
    GaussianEvent,
    LaplaceEvent,
    PureEvent,
    ResponseEvent,
    event_from_dict,
    event_to_dict,
    pure_epsilon,
)
from counterveil.privacy.guarantee import SIMULATED, Guarantee, Proof
from counterveil.privacy.unit import Adjacency, Estimand, Unit

__all__ = [
    "SIMULATED",
    "Adjacency",
    "ApproximateEvent",
    "Budget",
    "Charge",
    "Estimand",
    "Event",
    "GaussianEvent",
    "Guarantee",
    "LaplaceEvent",
    "Number",
    "Proof",
    "PureEvent",
    "ResponseEvent",
    "Unit",
    "event_from_dict",
    "event_to_dict",
    "exact",
    "pure_epsilon",
    "read_written",
    "show",
    "written",
]
