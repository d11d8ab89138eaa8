"""Tests that try to break a claimed guarantee, and prove that they could have."""

from counterveil.audit.brute_force import (
    Change,
    absolute,
    check_local_bound,
    check_smooth_bound,
    l1,
    l2,
    largest_change,
)
from counterveil.audit.exact import ExactTester
from counterveil.audit.finding import Finding, Quantity, Verdict
from counterveil.audit.log_ratio import LogRatio, largest_log_ratio
from counterveil.audit.outputs import Cloud, Line, Points
from counterveil.audit.profile import Delta, delta_at
from counterveil.audit.projections import Given, LikelihoodRatio, LinearDiscriminant, Projection
from counterveil.audit.protocols import WEAKENED_FACTOR, Mechanism, Neighbours, Tester, WhiteBox
from counterveil.audit.report import AuditReport, AuditRow
from counterveil.audit.runner import audit
from counterveil.audit.threshold import ThresholdTester
from counterveil.audit.universe import Universe, all_outcome_changes, all_record_replacements

__all__ = [
    "WEAKENED_FACTOR",
    "AuditReport",
    "AuditRow",
    "Change",
    "Cloud",
    "Delta",
    "ExactTester",
    "Finding",
    "Given",
    "LikelihoodRatio",
    "Line",
    "LinearDiscriminant",
    "LogRatio",
    "Mechanism",
    "Neighbours",
    "Points",
    "Projection",
    "Quantity",
    "Tester",
    "ThresholdTester",
    "Universe",
    "Verdict",
    "WhiteBox",
    "absolute",
    "all_outcome_changes",
    "all_record_replacements",
    "audit",
    "check_local_bound",
    "check_smooth_bound",
    "delta_at",
    "l1",
    "l2",
    "largest_change",
    "largest_log_ratio",
]
