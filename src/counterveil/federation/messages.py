"""What a coordinator and a site say to each other: versioned JSON, every field typed and bounded."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from fractions import Fraction
from typing import Any, Final

from counterveil.bounded_reading import Fields, UnreadableError, check_values, parse_message
from counterveil.errors import CounterveilError, refusal
from counterveil.inference.quotient import DIFFERENCE
from counterveil.privacy import Estimand, Unit
from counterveil.results.measures import MEASURES, OF_MEANS

# The fixed codes with which a site refuses; a code is all that leaves, never a text made of what happened.
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
OTHER_SUM: Final = "CV-F500"

CODES: Final = tuple(f"CV-F{number:03}" for number in (*range(1, 14), 40, 42, 500))


class RefusedError(Exception):
    """Carries the code of a refusal from where it is decided to where the reply is written."""

    def __init__(self, code: str) -> None:
        self.code = code
        super().__init__(code)


VERSION = 5
# The questions that pool, each with the arguments of its own that a message may carry.
QUESTIONS: Final[dict[str, tuple[str, ...]]] = {
    "ate": (),
    "arms": (),
    "groups": ("by",),
    "outcomes": (),
    "survival": (),
    "moments": ("outcomes", "terms", "robust"),
}
# The mechanisms that a question to be summed names, without a delta and with one, and the most sites of a sum.
SUMMED: Final = ("summed_laplace", "summed_gaussian")
MOST_SITES: Final = 100
# Regressions with HC1 errors, which divide their part of the budget.
MOST_ROBUST: Final = 4
# What adds up over sites: levels, questions and methods, with the settings that they need.
_ADDED: Final[dict[tuple[str, str, str], dict[str, Any]]] = {
    ("record", "ate", "trial"): {"adjustment": "none"},
    ("record", "groups", "arms"): {},
    ("record", "survival", "kaplan_meier"): {},
    ("record", "survival", "stratified"): {},
    ("record", "moments", "moments"): {},
    ("outcome", "ate", "difference_in_means"): {},
    ("outcome", "survival", "kaplan_meier"): {},
    ("outcome", "survival", "stratified"): {},
}
# A request has a few kilobytes, a reply some hundred with balance tables.
_LONGEST_REQUEST, _LONGEST_REPLY = 2_000_000, 10_000_000
_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_WORD = re.compile(r"[a-z][a-z0-9_]{0,39}")
_HASH = re.compile(r"[0-9a-f]{64}")
_LONGEST_NAME = 40
# No study asks for more than this, and below the least an answer is noise.
_LEAST_EPSILON, _MOST_EPSILON = 1e-12, 1e6
# The year 5138: a deadline is seconds since 1970.
_LAST_DEADLINE = 1e11
_MOST_ENTRIES = 10**12
_MOST_SETTINGS = 50


@dataclass(frozen=True, slots=True)
class Ask:
    """The question put to every site: the public arguments of `ate`, or of another `question`, as plain values.

    Published forms cannot be asked for: a request names a method of the question. `settings` and `options`, the
    arguments that the question alone has, are typed values by name; they are never written as text and parsed again.
    A `measure` other than "difference" is answered with the means of both arms, "nnt" with the difference.
    """

    method: str
    protects: str
    epsilon: str
    delta: str = "0"
    estimand: str = "ATE"
    level: float = 0.95
    mechanism: str | None = None
    measure: str = DIFFERENCE
    settings: dict[str, Any] = field(default_factory=dict)
    question: str = "ate"
    options: dict[str, Any] = field(default_factory=dict)

    @classmethod
    def from_document(cls, document: Mapping[str, Any]) -> Ask:
        """Return the question in a table of a study file or a message; budgets may be written as numbers."""
        try:
            check_values(document)
            return cls._read(document)
        except UnreadableError as error:
            raise _no_message("a question in the form shown in the guide", str(error)) from None

    @classmethod
    def _read(cls, document: Mapping[str, Any]) -> Ask:
        defaults = {"delta": "0", "estimand": "ATE", "level": 0.95, "mechanism": None}
        defaults |= {"measure": DIFFERENCE, "settings": {}, "question": "ate", "options": {}}
        facts = Fields.of("a question", document, ("method", "protects", "epsilon"), tuple(defaults))
        written = {
            name: repr(value)
            for name, value in document.items()
            if name in ("epsilon", "delta") and isinstance(value, int | float) and not isinstance(value, bool)
        }
        facts = Fields("a question", defaults | dict(document) | written)
        facts.rational("epsilon", _LEAST_EPSILON, _MOST_EPSILON)
        facts.rational("delta", 0, 1)
        question = facts.choice("question", tuple(QUESTIONS))
        # Means of private arms, and of several outcomes, have no check at the coordinator.
        pairs = question != "ate" or facts.values["protects"] == Unit.TREATMENT_AND_OUTCOME.value
        measures = tuple(one for one in MEASURES if not (pairs and one in OF_MEANS))
        options = facts.table("options")
        if not options.keys() <= {*QUESTIONS[question]}:
            raise UnreadableError("a question: an argument that it does not have")
        return cls(
            method=facts.text("method", pattern=_WORD),
            protects=facts.choice("protects", tuple(Unit)),
            epsilon=facts.text("epsilon", 900),
            delta=facts.text("delta", 900),
            estimand=facts.choice("estimand", tuple(Estimand)),
            level=facts.number("level", 0, 1),
            mechanism=None if facts.values["mechanism"] is None else facts.text("mechanism", pattern=_WORD),
            measure=facts.choice("measure", measures),
            settings=_settings(facts.table("settings")),
            question=question,
            options=options,
        )

    @property
    def adds_up(self) -> bool:
        """Whether one noise can be added to the sum over sites of everything that the answer is made of."""
        needed = _ADDED.get((self.protects, self.question, self.method))
        # Sites weigh as much as they have rows: an effect of everyone.
        plain = (self.measure, self.estimand) == (DIFFERENCE, Estimand.ATE)
        own = plain and self.mechanism in (None, self.shares)
        return own and needed is not None and needed.items() <= self.settings.items()

    @property
    def shares(self) -> str:
        """The mechanism whose shares sites add up at this budget."""
        return SUMMED[Fraction(self.delta) > 0]

    @property
    def summed(self) -> bool:
        """Whether shares of noise are asked for."""
        return self.mechanism in SUMMED

    def to_document(self) -> dict[str, Any]:
        """Return the question as JSON-ready facts, leaving out what was not said."""
        facts = asdict(self) | ({} if self.question != "ate" else {"question": None})
        return {name: value for name, value in facts.items() if value is not None and value != {}}


@dataclass(frozen=True, slots=True)
class Head:
    """The end of a ledger at some moment: how many entries it had, and the hash of the last."""

    seq: int
    hash: str

    @classmethod
    def read(cls, value: object) -> Head | None:
        """Return the head in a field of a document, None where it is left empty."""
        if value is None:
            return None
        facts = Fields.of("a ledger's head", value, ("seq", "hash"))
        return cls(facts.whole("seq", 0, _MOST_ENTRIES), facts.text("hash", pattern=_HASH))


@dataclass(frozen=True, slots=True)
class SiteRequest:
    """One question to one site.

    `deadline` is in seconds since 1970; `checkpoint` is the last head of the site's ledger that the coordinator
    saw. Neither is part of the question.
    """

    study_id: str
    request_id: str
    site: str
    declaration: dict[str, Any]
    ask: Ask
    deadline: float = 0.0
    checkpoint: Head | None = None

    def __post_init__(self) -> None:
        check_id("study id", self.study_id)
        check_id("request id", self.request_id)

    def fingerprint(self) -> str:
        """Return a hash of everything but deadline and checkpoint; the same request always has the same one."""
        facts = asdict(replace(self, deadline=0.0, checkpoint=None))
        return hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()

    def to_text(self) -> str:
        """Return the request as it travels."""
        return json.dumps({"version": VERSION} | asdict(self))

    @classmethod
    def from_text(cls, text: str) -> SiteRequest:
        """Return the request in a text, or raise CV-F001."""
        try:
            facts = _message(text, _LONGEST_REQUEST, tuple(cls.__dataclass_fields__))
            return cls(
                study_id=facts.text("study_id", pattern=_ID),
                request_id=facts.text("request_id", pattern=_ID),
                site=facts.text("site", _LONGEST_NAME),
                declaration=facts.table("declaration"),
                ask=Ask._read(facts.table("ask")),
                deadline=facts.number("deadline", 0, _LAST_DEADLINE),
                checkpoint=Head.read(facts.values["checkpoint"]),
            )
        except UnreadableError as error:
            raise _no_message("a request", str(error)) from None


@dataclass(frozen=True, slots=True)
class Reply:
    """What a site answers: the document of a released result, or the code of a refusal.

    `request` is the fingerprint of the request and `site` the site's own name, so that a reply fits one request
    to one site and no other. `head` is the end of the site's ledger after the answer was settled.
    """

    study_id: str
    request_id: str
    site: str
    request: str
    result: dict[str, Any] | None = None
    refusal: str | None = None
    head: Head | None = None

    @property
    def ok(self) -> bool:
        """Whether there is a result."""
        return self.result is not None

    @classmethod
    def to(
        cls,
        request: SiteRequest,
        result: dict[str, Any] | None = None,
        refusal: str | None = None,
        head: Head | None = None,
    ) -> Reply:
        """Return the reply to a request."""
        return cls(
            request.study_id, request.request_id, request.site, request.fingerprint(), result, refusal, head
        )

    def answers(self, request: SiteRequest) -> bool:
        """Return whether this is a reply to that request, of the site it went to."""
        bound = (self.study_id, self.request_id, self.site, self.request)
        return bound == (request.study_id, request.request_id, request.site, request.fingerprint())

    def to_text(self) -> str:
        """Return the reply as it travels."""
        return json.dumps({"version": VERSION} | asdict(self))

    @classmethod
    def not_understood(cls) -> Reply:
        """Return the reply to a message that is no request."""
        return cls("", "", "", "", refusal=NOT_UNDERSTOOD)

    @classmethod
    def from_text(cls, text: str) -> Reply:
        """Return the reply in a text, or raise CV-F001; refusals that are not in the list are not passed on."""
        try:
            facts = _message(text, _LONGEST_REPLY, tuple(cls.__dataclass_fields__), infinite=True)
            return cls._read(facts)
        except UnreadableError as error:
            raise _no_message("a reply", str(error)) from None

    @classmethod
    def from_document(cls, document: object) -> Reply:
        """Return a reply that was kept as `to_document` gives it, or raise CV-F001."""
        try:
            return cls._read(Fields.of("a stored reply", document, tuple(cls.__dataclass_fields__)))
        except UnreadableError as error:
            raise _no_message("a stored reply", str(error)) from None

    def to_document(self) -> dict[str, Any]:
        """Return the reply as JSON-ready facts."""
        return asdict(self)

    @classmethod
    def _read(cls, facts: Fields) -> Reply:
        refusal = facts.values["refusal"]
        if refusal == NOT_UNDERSTOOD and facts.values["result"] is None:
            return cls.not_understood()
        if (facts.values["result"] is None) == (refusal is None):
            raise UnreadableError("a result and a refusal, or neither")
        return cls(
            study_id=facts.text("study_id", pattern=_ID),
            request_id=facts.text("request_id", pattern=_ID),
            site=facts.text("site", _LONGEST_NAME),
            request=facts.text("request", pattern=_HASH),
            result=facts.table("result") if refusal is None else None,
            refusal=None if refusal is None else facts.choice("refusal", CODES),
            head=Head.read(facts.values["head"]),
        )


def check_id(name: str, value: object) -> str:
    """Return an id that can be part of a file name, or raise CV-F001."""
    if isinstance(value, str) and _ID.fullmatch(value):
        return value
    raise _no_message(f"{name}: 1 to 64 letters, digits, dots, dashes or underscores", "something else")


def _message(text: str, longest: int, names: tuple[str, ...], infinite: bool = False) -> Fields:
    """Return the fields of a message of this version, which are these and no others."""
    facts = Fields.of(
        "a message", parse_message(text, longest=longest, infinite=infinite), ("version", *names)
    )
    facts.whole("version", VERSION, VERSION)
    return facts


def _settings(values: dict[str, Any]) -> dict[str, Any]:
    """Return the settings of an estimator: names of settings with plain values, checked again by its own types."""
    if len(values) > _MOST_SETTINGS or not all(_WORD.fullmatch(name) for name in values):
        raise UnreadableError("a question: the settings are invalid")
    return values


def _no_message(expected: str, got: str) -> CounterveilError:
    return refusal("CV-F001", expected=expected, got=got)
