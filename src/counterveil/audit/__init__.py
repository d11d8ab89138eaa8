"""Tests that try to violate a claimed guarantee, and show that they have the power to do so."""

from counterveil.audit.brute_force import (
    Change,
    ExactTester,
    Universe,
    absolute,
    all_outcome_changes,
    all_record_replacements,
    check_local_bound,
    check_smooth_bound,
    l1,
    l2,
    largest_change,
)
from counterveil.audit.one_run import Canaried, OneRunTester
from counterveil.audit.profile import Cloud, Delta, Line, LogRatio, Points, delta_at, largest_log_ratio
from counterveil.audit.protocols import WEAKENED_FACTOR, Mechanism, Neighbours, Tester, WhiteBox, audit
from counterveil.audit.report import AuditReport, AuditRow, LowerBound, Quantity, Verdict
from counterveil.audit.threshold import (
    Given,
    LikelihoodRatio,
    LinearDiscriminant,
    Projection,
    ThresholdTester,
)

__all__ = [
    "WEAKENED_FACTOR",
    "AuditReport",
    "AuditRow",
    "Canaried",
    "Change",
    "Cloud",
    "Delta",
    "ExactTester",
    "Given",
    "LikelihoodRatio",
    "Line",
    "LinearDiscriminant",
    "LogRatio",
    "LowerBound",
    "Mechanism",
    "Neighbours",
    "OneRunTester",
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
