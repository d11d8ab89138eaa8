"""The console's refusals, and the status of every answer that is one."""

from __future__ import annotations

from counterveil.errors import (
    BudgetError,
    ClaimError,
    CounterveilError,
    DataError,
    LedgerError,
    MissingExtraError,
    ParameterError,
    StudyError,
    refusal,
    unforeseen,
)

# One text for all of them: whoever wrote the study could learn about cells from the differences.
_STATUS = {"CV-W001": 401, "CV-W004": 400, "CV-W007": 404, "CV-W002": 403, "CV-W003": 403, "CV-W005": 403}
_KINDS: tuple[tuple[type[CounterveilError], int], ...] = (
    (ParameterError, 400),
    (StudyError, 400),
    (ClaimError, 400),
    (BudgetError, 409),
    (LedgerError, 409),
    (DataError, 409),
    (MissingExtraError, 501),
)
# What refusals of these kinds depend on: parameters, access policies and budgets, never rows.
_PUBLIC = (ParameterError, ClaimError, BudgetError, LedgerError, MissingExtraError)


def status_of(error: CounterveilError) -> int:
    """Return the HTTP status of a refusal."""
    if error.code in _STATUS:
        return _STATUS[error.code]
    if error.code.startswith("CV-W"):
        return 409
    return next((status for kind, status in _KINDS if isinstance(error, kind)), 500)


def coded(fault: Exception) -> CounterveilError:
    """Return a refusal, or what is said of a fault that nobody foresaw: one bad file is not one of a whole list."""
    return fault if isinstance(fault, CounterveilError) else unforeseen(fault)


def for_analysts(error: CounterveilError) -> CounterveilError:
    """Return what an analyst may see of a refusal that was raised while rows were at hand."""
    return error if isinstance(error, _PUBLIC) else refusal("CV-W006")
