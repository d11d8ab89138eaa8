"""The fixed codes with which a site refuses; a code is all that leaves, never a text made of what happened."""

from __future__ import annotations

from typing import Final

NOT_UNDERSTOOD: Final = "CV-F001"
NOT_ALLOWED: Final = "CV-F002"
OUTSIDE_POLICY: Final = "CV-F003"
NO_BUDGET: Final = "CV-F004"
TOO_FEW: Final = "CV-F005"
WAITING: Final = "CV-F006"
DECLINED: Final = "CV-F007"
OTHER_QUESTION: Final = "CV-F008"
FAILED: Final = "CV-F009"
LOST: Final = "CV-F010"
LATE: Final = "CV-F011"
OTHER_DECLARATION: Final = "CV-F012"
UNSUITABLE: Final = "CV-F013"
OTHER_SITE: Final = "CV-F040"
DAMAGED_LEDGER: Final = "CV-F042"

MEANINGS: Final[dict[str, str]] = {
    NOT_UNDERSTOOD: "the request is not understood",
    NOT_ALLOWED: "the site's policy does not allow this question",
    OUTSIDE_POLICY: "epsilon or delta is outside the site's policy",
    NO_BUDGET: "the site has too little budget left",
    TOO_FEW: "the site has too few rows",
    WAITING: "the site's steward has not decided yet",
    DECLINED: "the site's steward declined",
    OTHER_QUESTION: "the request id was used for another question",
    FAILED: "the site could not answer",
    LOST: "the site paid for this request and lost its answer",
    LATE: "the request reached the site after its deadline",
    OTHER_DECLARATION: "the site declares its data otherwise",
    UNSUITABLE: "the question does not suit the estimator",
    OTHER_SITE: "the request is addressed to another site",
    DAMAGED_LEDGER: "the site's ledger is damaged or went back, so it answers nothing",
}


class RefusedError(Exception):
    """Carries the code of a refusal from where it is decided to where the reply is written."""

    def __init__(self, code: str) -> None:
        self.code = code
        super().__init__(code)
