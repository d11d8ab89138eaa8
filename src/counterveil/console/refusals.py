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
    Refusal,
    StudyError,
    unforeseen,
)

no_session = Refusal(
    "CV-W001",
    "you are not signed in",
    expected="the cookie of a session that was opened with a link of this console",
    got="{got}",
    fix="open the link that `counterveil console` printed; it works once, so start the console again for a new one",
)
foreign = Refusal(
    "CV-W002",
    "this request did not come from a page of the console",
    expected="a request to 127.0.0.1 or localhost, sent by a page of this console",
    got="{got}",
    fix="paste the link of the console into the address bar instead of following it from another page",
)
wrong_form = Refusal(
    "CV-W003",
    "this form does not belong to your session",
    expected="the form as the console wrote it for this session",
    got="{got}",
    fix="go back, reload the page and send the form again; nothing was done",
)
bad_form = Refusal(
    "CV-W004",
    "the form cannot be read",
    expected="{expected}",
    got="{got}",
    fix="correct the field and send the form again; nothing was done",
)
for_stewards = Refusal(
    "CV-W005",
    "this is for the data steward",
    expected="a session of the steward",
    got="a session of an analyst",
    fix="ask the steward: {what}",
)
# One text for all of them: whoever wrote the study could learn about cells from the differences.
not_answered = Refusal(
    "CV-W006",
    "the data could not be used for this request",
    expected="data that fit the study",
    got="a refusal whose reason only the steward may see",
    fix="ask the steward to check the study; nothing was released",
)
unknown = Refusal(
    "CV-W007",
    "there is no such page",
    expected="{expected}",
    got="{got}",
    fix="start from the list of data sets",
)
changed = Refusal(
    "CV-W008",
    "{what} was changed in the meantime",
    expected="{what} as it was when this page was made",
    got="another text",
    fix="go back, reload the page and look at the change before you send the form again; nothing was done",
)
unusable = Refusal(
    "CV-W009",
    "the console cannot use this folder",
    expected="{expected}",
    got="{got}",
    fix="see docs/how-to/work-in-the-browser.md for what a folder holds",
)
bad_name = Refusal(
    "CV-W010",
    "this name cannot be that of a study",
    expected="1 to 60 letters, digits, points, hyphens and underscores, beginning with a letter or digit",
    got="{name!s}",
    fix="choose a plain name; it becomes the name of a file",
)
no_port = Refusal(
    "CV-W011",
    "the console cannot listen on this port",
    expected="a free port of this machine, 0 for any",
    got="{got}",
    fix="name another port with --port, or leave it out",
)
stopped = Refusal(
    "CV-W012",
    "this computation was stopped",
    expected="one that ends while somebody waits for its page",
    got="{got}",
    fix="ask for fewer people, simulated studies or values of epsilon, or use `counterveil plan`; nothing was spent",
)

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
# What refusals of these kinds depend on: parameters, charters and budgets, never rows.
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
    return error if isinstance(error, _PUBLIC) else not_answered()
