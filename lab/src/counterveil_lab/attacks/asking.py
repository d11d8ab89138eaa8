"""A question asked of two neighbouring data sets, with everything that passes the gate noted."""

from __future__ import annotations

import io
import json
import logging
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass, field
from typing import Any

from counterveil.accounting import Reservation
from counterveil.data import Backend, Study
from counterveil.errors import CounterveilError
from counterveil.mechanisms import BitSource, SeededNoise
from counterveil.privacy import Budget
from counterveil.questions.session import Session
from counterveil.results.released import ReleasedAnswer
from counterveil.session import Request
from counterveil.session.session import Kind, Plan
from counterveil.session.summing import PartOfRows
from counterveil_lab.attacks.watching import Passed, WatchedGate

Columns = Mapping[str, Any]
Ask = Callable[..., Any]
Compute = Callable[[Any], dict[str, object]]
# Accounts of the audit hold enough for every question: what is left is not what is tested.
_PLENTY = Budget("1e9", "1/2")
# What two runs of the same question may differ in: when they were, and what follows from that.
_NOT_COMPARED = ("time", "registered")


@dataclass
class Watch:
    """What an audit puts into a session and takes out of it."""

    weaker: int = 1
    # What each gate in turn has to release, by name.
    forced: Sequence[Mapping[str, Any]] | None = None
    gates: list[WatchedGate] = field(default_factory=list)
    computed: list[tuple[Plan, Compute]] = field(default_factory=list)

    @property
    def passed(self) -> list[Passed]:
        """What passed all gates, in turn."""
        return [one for gate in self.gates for one in gate.passed]

    @property
    def releases(self) -> list[dict[str, Any]]:
        """What each gate released, by name: what another run can be forced to release."""
        return [{one.name: one.released for one in gate.passed} for gate in self.gates]

    def gate(self, plan: Plan, source: BitSource) -> WatchedGate:
        """Return the next gate."""
        place = len(self.gates)
        forced = None if self.forced is None else dict(self.forced[place]) if place < len(self.forced) else {}
        self.gates.append(WatchedGate(plan, source, weaker=self.weaker, forced=forced))
        return self.gates[-1]


class WatchedCurator(Session):
    """A session whose gates note what passes them; with several `parts` its rows are one of as many equal ones."""

    parts = 1

    @property
    def batches(self) -> Backend:
        """The rows in batches, with the number of all parts' rows."""
        own = super().batches
        return own if self.parts == 1 else PartOfRows(own, self.parts * own.rows)

    def public(self, name: str, numbers: tuple[int, ...], least: int = 0) -> tuple[tuple[int, ...], ...]:  # noqa: ARG002
        """Return the numbers of every part, which are all alike."""
        return (numbers,) * self.parts

    def watch(self, watch: Watch) -> WatchedCurator:
        """Return this session, which notes everything in `watch`."""
        self._watch = watch
        return self

    def run(self, request: Request, compute: Compute) -> dict[str, object]:
        """Return the answer to a request; its computation is kept, to be run again."""
        self._watch.computed.append((request.plan, compute))
        return super().run(request, compute)

    def _gate(self, plan: Plan, reservation: Reservation) -> WatchedGate:  # noqa: ARG002
        return self._watch.gate(plan, self._noise)


@dataclass(frozen=True, slots=True)
class Question:
    """One way to ask: the study, and the call on a session that gets epsilon and delta."""

    study: Study
    ask: Ask
    budget: Budget


@dataclass(frozen=True)
class Seen:
    """What a run showed to whoever asked: by channel, as text."""

    channels: dict[str, str]

    def differences(self, other: Seen) -> list[str]:
        """Return the channels in which two runs differ, each with the place where they do."""
        names = sorted(self.channels.keys() | other.channels.keys())
        texts = [(name, self.channels.get(name, ""), other.channels.get(name, "")) for name in names]
        return [f"{name}: {_apart(a, b)}" for name, a, b in texts if a != b]


def ask(question: Question, data: object, watch: Watch, source: BitSource) -> Seen:
    """Return everything that asking a question shows, with what passed the gate noted in `watch`."""
    channels: dict[str, str] = {}
    with (
        overheard(channels),
        noted_error(channels),
        WatchedCurator(data, question.study, budget=_PLENTY, noise=source) as session,
    ):
        ask_session(question, session.watch(watch), channels)
    return Seen(channels)


def _plain(value: object) -> object:
    return list(value) if isinstance(value, Sequence) else str(value)


def ask_session(
    question: Question, session: WatchedCurator, channels: dict[str, str], step: str = ""
) -> None:
    """Ask a question of an open account, and note the answer and what the account then holds."""
    budget = question.budget
    try:
        answer = question.ask(
            session, epsilon=budget.epsilon, delta=budget.delta, request_id=f"audit{step}".strip()
        )
        # Pages show more than what is stored: a table of public covariates, how to ask again.
        pages = {"pages": answer.page_facts()} if isinstance(answer, ReleasedAnswer) else {}
        channels[f"answer{step}"] = json.dumps(answer.to_dict() | pages, sort_keys=True, default=_plain)
        channels[f"text{step}"] = str(answer)
    finally:
        facts = [
            (entry.kind, {name: fact for name, fact in entry.facts.items() if name not in _NOT_COMPARED})
            for entry in session.ledger.entries()
        ]
        channels[f"ledger{step}"] = json.dumps(facts, sort_keys=True, default=str)
        channels[f"account{step}"] = str(session.account())


@contextmanager
def noted_error(channels: dict[str, str], step: str = "") -> Iterator[None]:
    """Note the text of an error; that of a fault of the program is visible too, and may quote rows."""
    try:
        yield
    except CounterveilError as error:
        channels[f"error{step}"] = str(error)
    except Exception as error:
        channels[f"error{step}"] = f"{type(error).__name__}: {error}"


@contextmanager
def overheard(channels: dict[str, str]) -> Iterator[None]:
    """Note what is printed, warned of and logged."""
    out, err, log = io.StringIO(), io.StringIO(), io.StringIO()
    handler = logging.StreamHandler(log)
    logging.getLogger().addHandler(handler)
    try:
        with redirect_stdout(out), redirect_stderr(err), warnings.catch_warnings(record=True) as warned:
            warnings.simplefilter("always")
            yield
    finally:
        logging.getLogger().removeHandler(handler)
    said = {"printed": out, "errors printed": err, "log": log}
    channels |= {name: stream.getvalue() for name, stream in said.items() if stream.getvalue()}
    if warned:
        channels["warnings"] = "\n".join(str(one.message) for one in warned)


def _apart(a: str, b: str) -> str:
    """Return where two texts begin to differ, a few words of each."""
    place = next((i for i, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), min(len(a), len(b)))
    start = max(place - 30, 0)
    return f"{a[start : place + 30]!r} against {b[start : place + 30]!r}"


@dataclass(frozen=True)
class Computation:
    """What a question computes behind its gate, to be run many times without asking again."""

    plan: Plan
    compute: Compute
    # Answers say what is left of the budget, so that the account stays open.
    session: WatchedCurator

    @classmethod
    def of(cls, question: Question, data: object) -> Computation | None:
        """Return the computation of a question on a data set, None where it is refused before it is charged."""
        watch, budget, channels = Watch(), question.budget, dict[str, str]()
        with overheard(channels), noted_error(channels):
            session = WatchedCurator(data, question.study, budget=_PLENTY, noise=SeededNoise(0)).watch(watch)
            question.ask(session, epsilon=budget.epsilon, delta=budget.delta)
        return cls(*watch.computed[0], session) if watch.computed else None

    def run(
        self, source: BitSource, weaker: int = 1, forced: Mapping[str, Any] | None = None
    ) -> list[Passed]:
        """Return what passes a gate: drawn from the source, or forced. An error is the last thing to pass."""
        gate = WatchedGate(self.plan, source, weaker=weaker, forced=forced)
        try:
            self.compute(gate)
        except Exception as error:
            gate.passed.append(Passed("an error", Kind.LABELS, type(error).__name__, None, (), None))
        return gate.passed
