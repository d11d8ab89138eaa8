"""A site's own folder: its settings, and where its ledger, keys and answers lie."""

from __future__ import annotations

import fcntl
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

from counterveil.accounting import AccessPolicy, Ledger
from counterveil.bounded_reading import UnreadableError
from counterveil.data import Study
from counterveil.errors import CounterveilError, LedgerError, ParameterError, refusal
from counterveil.federation import messages as refusals
from counterveil.federation.files import (
    TomlTable,
    check_address,
    check_name,
    check_private,
    damaged,
    invalid,
    open_private,
    private_folder,
    read_json,
    read_settings,
    write_json,
)
from counterveil.federation.messages import Ask, Head, SiteRequest
from counterveil.inference.quotient import DIFFERENCE
from counterveil.privacy import Budget, Unit, exact
from counterveil.results.measures import check_measure
from counterveil.session.session import shown_columns

AUTOMATIC, BY_HAND = "automatic", "by hand"
_WHAT = "the policy of the site"
_NUMBER = (int, float, str)


@dataclass(frozen=True, slots=True)
class SitePolicy:
    """The rules of one site; all of them are public.

    `study_epsilon` is the most that one study may spend here; the ledger's total bounds all studies together.
    `min_rows` is compared with the number of rows, which is public, `min_arm` with the smaller arm where arms are
    public, else with what the design plans; no other count is looked at. `measures` has the
    difference alone where nothing is said: the means of both arms tell how people fare here, a difference does not.
    `questions` has "ate" alone likewise: answers about arms, survival and moments tell means, curves and correlations.
    """

    questions: tuple[str, ...]
    estimators: tuple[str, ...]
    measures: tuple[str, ...]
    protects: tuple[str, ...]
    min_epsilon: Fraction
    study_epsilon: Fraction
    max_delta: Fraction
    min_rows: int
    min_arm: int
    approval: str
    diagnostics: bool

    @classmethod
    def from_document(cls, document: Mapping[str, Any]) -> SitePolicy:
        """Return the policy in the table `[policy]` of a site's file, or raise CV-P600."""
        table = TomlTable(_WHAT, document)
        table.known(*cls.__dataclass_fields__)
        policy = cls(
            questions=table.texts("questions", ("ate",)),
            estimators=table.texts("estimators", ()),
            measures=table.texts("measures", (DIFFERENCE,)),
            protects=table.texts("protects", ("outcome",)),
            min_epsilon=exact(table.get("min_epsilon", _NUMBER, 0), "min_epsilon"),
            study_epsilon=exact(table.get("study_epsilon", _NUMBER), "study_epsilon"),
            max_delta=exact(table.get("max_delta", _NUMBER, 0), "max_delta"),
            min_rows=table.get("min_rows", int, 0),
            min_arm=table.get("min_arm", int, 0),
            approval=table.get("approval", str, AUTOMATIC),
            diagnostics=table.get("diagnostics", bool, False),
        )
        for unit in policy.protects:
            Unit.parse(unit)
        for measure in policy.measures:
            check_measure(measure)
        for question in policy.questions:
            if question not in refusals.QUESTIONS:
                known = f"questions: some of {', '.join(refusals.QUESTIONS)}"
                raise invalid(_WHAT, known, repr(question))
        if policy.approval not in (AUTOMATIC, BY_HAND):
            raise invalid(_WHAT, f'approval: "{AUTOMATIC}" or "{BY_HAND}"', repr(policy.approval))
        return policy

    def to_document(self) -> dict[str, Any]:
        """Return the policy as a table of a TOML file."""
        kinds: dict[type, Any] = {tuple: list, Fraction: str}
        return {name: kinds.get(type(value), type(value))(value) for name, value in asdict(self).items()}

    def access_policy(self, study: Study) -> AccessPolicy:
        """Return the access policy of the site's account; of this policy it holds the levels, the rest may change."""
        shown = shown_columns(study, map(Unit, self.protects))
        return AccessPolicy(outcomes=study.outcomes, protects=self.protects, **shown, **study.unit_columns)

    def check(self, ask: Ask, spent: Fraction) -> None:
        """Raise the refusal of a question that this policy does not allow; `spent` is what its study spent here."""
        allowed = ask.method in self.estimators and ask.protects in self.protects
        if not allowed or ask.question not in self.questions or ask.measure not in self.measures:
            raise refusals.RefusedError(refusals.NOT_ALLOWED)
        try:
            budget = Budget(ask.epsilon, ask.delta)
        except ParameterError:
            raise refusals.RefusedError(refusals.OUTSIDE_POLICY) from None
        if budget.epsilon < self.min_epsilon or budget.delta > self.max_delta:
            raise refusals.RefusedError(refusals.OUTSIDE_POLICY)
        if spent + budget.epsilon > self.study_epsilon:
            raise refusals.RefusedError(refusals.OUTSIDE_POLICY)


FILE = "site.toml"


@dataclass(frozen=True, slots=True)
class SiteFile:
    """The settings of one site; relative paths start at its folder."""

    folder: Path
    name: str
    data: str
    table: str | None
    ledger: str
    dataset: str
    coordinator: str
    policy: SitePolicy

    @classmethod
    def read(cls, folder: Path) -> SiteFile:
        """Return the settings in a site's folder, or raise CV-P600; CV-F045 where others can open it."""
        check_private(folder, folder / FILE, folder / "keys")
        table = TomlTable("the site's file", read_settings(folder / FILE, "the site's file"))
        table.known("name", "data", "table", "ledger", "dataset", "coordinator", "policy")
        return cls(
            folder=folder,
            name=check_name(table.get("name", str)),
            data=_place(folder, table.get("data", str)),
            table=table.get("table", str, "") or None,
            ledger=_place(folder, table.get("ledger", str, "ledger.db")),
            dataset=table.get("dataset", str, "records"),
            coordinator=check_address(table.get("coordinator", str)),
            policy=SitePolicy.from_document(table.get("policy", dict)),
        )

    def to_document(self) -> dict[str, Any]:
        """Return the settings as the tables of a TOML file."""
        named = ("name", "data", "ledger", "dataset", "coordinator", "table")
        facts: dict[str, Any] = {name: getattr(self, name) for name in named if getattr(self, name)}
        return facts | {"policy": self.policy.to_document()}

    @property
    def declaration(self) -> Path:
        """The site's own declaration of roles, bounds and categories."""
        return self.folder / "declaration.toml"

    @property
    def answers(self) -> Path:
        """Where answers and waiting requests are kept."""
        return self.folder / "answers"

    @property
    def keys(self) -> Path:
        """Where the node's key, the coordinator's certificate and the local certificates are kept."""
        return self.folder / "keys"


def _place(folder: Path, place: str) -> str:
    return place if "://" in place else str(folder / place)


PENDING, APPROVED, REJECTED = "waiting", "approved", "declined"
# A coordinator cannot fill the disk with questions that nobody answers.
_MOST_WAITING = 1000
_KEPT = ("fingerprint", "result", "head")
_QUESTION = ("state", "fingerprint", "request")
_LAST = "head.json"


@dataclass(frozen=True, slots=True)
class KeptAnswer:
    """An answer that was given, and where the ledger ended after it was settled; None for a part of a sum."""

    result: dict[str, Any]
    head: Head | None


@dataclass(frozen=True, slots=True)
class WaitingQuestion:
    """A question that needs, or had, the steward's decision."""

    key: str
    state: str
    request: dict[str, Any]


class SiteRecords:
    """The folder `answers` of a site; requests are answered while `locked` is held."""

    def __init__(self, folder: Path) -> None:
        self._answers = folder
        self._waiting = folder / "waiting"

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Hold the site's lock, so that a retry waits for the first answer instead of racing it."""
        private_folder(self._answers)
        private_folder(self._waiting)
        with open_private(self._answers / "lock") as handle:
            fcntl.flock(handle, fcntl.LOCK_EX)
            yield

    def answered(self, request: SiteRequest) -> KeptAnswer | None:
        """Return the answer this very request got before; the id of another question is refused."""
        kept = read_json(self._answers / f"{key_of(request)}.json", *_KEPT)
        if kept is None:
            return None
        if kept["fingerprint"] != request.fingerprint():
            raise refusals.RefusedError(refusals.OTHER_QUESTION)
        return KeptAnswer(kept["result"], _head(kept["head"]))

    def keep(self, request: SiteRequest, answer: KeptAnswer) -> None:
        """Keep an answer before it leaves."""
        assert answer.head is not None
        facts = {"fingerprint": request.fingerprint(), "result": answer.result, "head": asdict(answer.head)}
        write_json(self._answers / f"{key_of(request)}.json", facts)

    def note_head(self, head: Head) -> None:
        """Note where the ledger ends, before an answer is kept or a part of a sum leaves."""
        write_json(self._answers / _LAST, asdict(head))

    def last_head(self) -> Head | None:
        """Return where the ledger ended before the last answer or part of a sum left, None before the first."""
        kept = read_json(self._answers / _LAST, "seq", "hash")
        return None if kept is None else _head(kept)

    def heads(self) -> list[Head]:
        """Return where the ledger ended after each kept answer: all of them must still be in it."""
        paths = sorted(self._answers.glob("*@*.json"))
        found = [kept for path in paths if (kept := read_json(path, *_KEPT)) is not None]
        last = self.last_head()
        return [_head(kept["head"]) for kept in found] + ([] if last is None else [last])

    def decision(self, request: SiteRequest) -> str:
        """Return what the steward decided on a request, putting it on the list where it is new."""
        path = self._waiting / f"{key_of(request)}.json"
        kept = read_json(path, *_QUESTION)
        if kept is None:
            if sum(1 for _ in self._waiting.glob("*.json")) >= _MOST_WAITING:
                raise refusals.RefusedError(refusals.FAILED)
            facts = {
                "study_id": request.study_id,
                "request_id": request.request_id,
                "question": request.ask.to_document(),
            }
            write_json(path, {"state": PENDING, "fingerprint": request.fingerprint(), "request": facts})
            return PENDING
        if kept["fingerprint"] != request.fingerprint():
            raise refusals.RefusedError(refusals.OTHER_QUESTION)
        return str(kept["state"])

    def waiting(self) -> list[WaitingQuestion]:
        """Return all questions that were put to the steward, in the order of their keys."""
        found = [(path.stem, read_json(path, *_QUESTION)) for path in sorted(self._waiting.glob("*.json"))]
        return [_waiting(key, kept) for key, kept in found if kept is not None]

    def decide(self, key: str, state: str) -> WaitingQuestion:
        """Write down the steward's decision and return it; an unknown key raises CV-P605."""
        known = {each.key: each for each in self.waiting()}
        if key not in known:
            raise refusal("CV-P605", known=", ".join(known) or "none: nothing is pending", got=repr(key))
        path = self._waiting / f"{key}.json"
        write_json(path, (read_json(path, *_QUESTION) or {}) | {"state": state})
        return WaitingQuestion(key, state, known[key].request)


def _waiting(key: str, kept: dict[str, Any]) -> WaitingQuestion:
    request = kept["request"]
    if kept["state"] not in (PENDING, APPROVED, REJECTED) or not isinstance(request, dict):
        raise damaged(Path("waiting") / f"{key}.json", "other facts")
    return WaitingQuestion(key, kept["state"], {"question": {}} | request)


def _head(value: object) -> Head:
    try:
        head = Head.read(value)
    except UnreadableError:
        head = None
    if head is None:
        raise damaged(Path("answers") / "a stored answer", "no head of a ledger")
    return head


def key_of(request: SiteRequest) -> str:
    """Return the name under which a request is kept; neither id can hold the sign between them."""
    return f"{request.study_id}@{request.request_id}"


# Whether a site's ledger still holds what its answers and its coordinator saw of it.
#
# A ledger alone cannot detect that it was replaced by an older copy. Each kept answer therefore names the end of
# the ledger after it was settled, a site notes the end before an answer or a part of a sum leaves, and the coordinator
# keeps the last end that it was told.


def head_of(ledger: Ledger) -> Head:
    """Return where a ledger ends now."""
    return Head(*ledger.last_entry())


def check_checkpoints(ledger: Ledger, heads: Iterable[Head]) -> None:
    """Raise CV-F043 where the ledger is damaged, or an entry that was seen before is not in it any more."""
    report = ledger.verify()
    if not report.ok:
        raise not_sound("a ledger that does not verify")
    check_heads(ledger, heads)


def check_heads(ledger: Ledger, heads: Iterable[Head]) -> None:
    """Raise CV-F043 where an entry that was seen before is not in the ledger any more."""
    for head in set(heads):
        try:
            ledger.check_contains(head.seq, head.hash)
        except LedgerError:
            raise not_sound(
                f"a ledger without entry {head.seq}, which precedes an answer or a part of a sum"
            ) from None


def not_sound(got: str) -> CounterveilError:
    """Return CV-F043."""
    return refusal("CV-F043", got=got)
