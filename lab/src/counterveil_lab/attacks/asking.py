"""A question asked of two neighbouring data sets, through a gate that notes what passes or draws less noise."""

from __future__ import annotations

import io
import json
import logging
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass, field, replace
from fractions import Fraction
from math import log
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from counterveil.accounting import Reservation
from counterveil.data import Backend, Study
from counterveil.errors import CounterveilError
from counterveil.mechanisms import (
    Ball,
    BitSource,
    Box,
    Gaussian,
    KnownSensitivityMechanism,
    Laplace,
    Noise,
    RandomizedResponse,
    SeededNoise,
    StableHistogram,
)
from counterveil.privacy import Budget
from counterveil.questions.session import Session
from counterveil.results.released import ReleasedAnswer
from counterveil.session import BaseSession, Request
from counterveil.session.session import Gate, Kind, Label, Plan, Released, ReleasedVector, Responses, Values
from counterveil.session.summing import PartOfRows

Law = KnownSensitivityMechanism | Noise | Ball | Box | RandomizedResponse | StableHistogram
T = TypeVar("T")
# What every noise of a weakened copy is divided by.
WEAKER = 3


@dataclass(frozen=True, slots=True)
class Passed:
    """One release as its gate saw it: what was private, the distribution that was drawn from, and what came out.

    `public` is what must not depend on private rows beside earlier releases: the sensitivity, or the grid's scale.
    """

    name: str
    kind: Kind
    exact: Any
    law: Law | None
    public: tuple[object, ...]
    released: Any


class WatchedGate(Gate):
    """A gate that notes every release in `passed`.

    `weaker` divides the noise. With `forced` nothing is drawn: a release of a name that is in it returns what it says.
    """

    def __init__(
        self,
        plan: Plan,
        source: BitSource,
        *,
        rows: BaseSession | None = None,
        weaker: int = 1,
        forced: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(plan, source, rows=rows)
        self.passed: list[Passed] = []
        self._weaker = weaker
        self._forced = forced

    def release(self, name: str, value: Fraction, sensitivity: Fraction) -> Released:
        """Return the number that passes, with the noise that the plan states."""
        stated = self._plan.noise(name, sensitivity)
        law = self._plan.noise(name, sensitivity / self._weaker)

        def drawn() -> Fraction:
            return super(WatchedGate, self).release(name, value, sensitivity / self._weaker).value

        return Released(self._note(name, Kind.NUMBER, (value,), law, (sensitivity,), drawn), stated)

    def release_smooth(
        self, name: str, value: Fraction, bound: Fraction, smoothness: Fraction, least: Fraction
    ) -> Fraction:
        """Return the number that passes with noise that follows a private bound."""
        part = bound / self._weaker
        law = self._plan.smooth_noise(name, smoothness).distribution(part) if part > 0 else None

        def drawn() -> Fraction:
            return super(WatchedGate, self).release_smooth(name, value, part, smoothness, least)

        return self._note(name, Kind.SMOOTH, (value,), law, (smoothness, least), drawn)

    def release_vector(self, name: str, values: Values, sensitivity: Fraction) -> ReleasedVector:
        """Return the vector that passes."""
        values = values() if callable(values) else values
        kind = self._plan.kind(name)
        amount = self._plan.amount(name, kind)
        normal = self._plan.mechanism == "gaussian" or kind is Kind.NORMAL

        def law(size: Fraction) -> Gaussian | Ball:
            return Gaussian(size, amount) if normal else Ball(size, amount, len(values))

        def drawn() -> tuple[Fraction, ...]:
            return super(WatchedGate, self).release_vector(name, values, sensitivity / self._weaker).values

        own = law(sensitivity / self._weaker)
        found = self._note(name, kind, tuple(values), own, (sensitivity, len(values)), drawn)
        return ReleasedVector(found, law(sensitivity).variance)

    def release_several(
        self,
        name: str,
        values: Sequence[Fraction],
        sensitivities: Sequence[Fraction],
        weights: Sequence[Fraction],
    ) -> list[Released]:
        """Return the numbers that pass together; box noise is noted in units of their bounds, other noise apart."""
        stated = self._plan.several_noise(name, sensitivities, weights)
        parts = [bound / self._weaker for bound in sensitivities]

        def drawn() -> tuple[Fraction, ...]:
            found = super(WatchedGate, self).release_several(name, values, parts, weights)
            return tuple(one.value for one in found)

        if isinstance(stated[0], Box):
            law = Box(Fraction(1, self._weaker), stated[0].epsilon, len(values))
            scaled = _divided(values, sensitivities)
            noted = self._note(
                name,
                Kind.SEVERAL,
                scaled,
                law,
                tuple(sensitivities),
                lambda: _divided(drawn(), sensitivities),
            )
            noisy = [value * bound for value, bound in zip(noted, sensitivities, strict=True)]
            return [Released(value, noise) for value, noise in zip(noisy, stated, strict=True)]
        names = [f"{name} {place}" for place in range(len(values))]
        if self._forced is None or names[0] not in self._forced:
            apart = drawn()
        else:
            self._pay(name, Kind.SEVERAL)
            apart = tuple(self._forced[one] for one in names)
        laws = self._plan.several_noise(name, parts, weights)
        for one, value, law_, bound, noisy_ in zip(names, values, laws, sensitivities, apart, strict=True):
            self.passed.append(Passed(one, Kind.NUMBER, (value,), law_, (bound,), noisy_))
        return [Released(value, noise) for value, noise in zip(apart, stated, strict=True)]

    def release_cells(self, name: str, values: Values, sensitivity: Fraction) -> ReleasedVector:
        """Return the cells that pass."""
        values = values() if callable(values) else values
        amount = self._plan.amount(name, Kind.CELLS)
        law = Laplace(sensitivity / self._weaker, amount)

        def drawn() -> tuple[Fraction, ...]:
            return super(WatchedGate, self).release_cells(name, values, sensitivity / self._weaker).values

        found = self._note(name, Kind.CELLS, tuple(values), law, (sensitivity, len(values)), drawn)
        return ReleasedVector(found, Laplace(sensitivity, amount).variance)

    def release_rows(
        self, name: str, steps: NDArray[np.int64], low: int, high: int, step: Fraction
    ) -> NDArray[np.float64]:
        """Return the rows that pass."""
        inside = np.clip(steps, low, high)
        width = max((high - low) // self._weaker, 1)
        law = Laplace(width * step, self._plan.amount(name, Kind.ROWS))

        def drawn() -> NDArray[np.float64]:
            # The noise is made for a part of the width; the rows keep theirs.
            nothing = np.zeros(len(steps), np.int64)
            noise = super(WatchedGate, self).release_rows(name, nothing, 0, width, step)
            found: NDArray[np.float64] = inside + noise
            return found

        exact = tuple((inside * float(step)).tolist())
        return self._note(name, Kind.ROWS, exact, law, (low, high, step), drawn)

    def release_labels(self, name: str, counts: Mapping[Label, int]) -> dict[Label, int]:
        """Return the labels that pass; they are no numbers, so that only samples are looked at."""
        delta = self._plan.label_delta
        law = StableHistogram(self._plan.amount(name, Kind.LABELS) * self._weaker, delta)

        def drawn() -> dict[Label, int]:
            self._pay(name, Kind.LABELS)
            return law.release(counts, self._source)

        return self._note(name, Kind.LABELS, dict(counts), law, (), drawn)

    def respond(self, name: str, flags: NDArray[np.bool_]) -> Responses:
        """Return the truth values that pass; a weakened copy lies a third as often."""
        stated = RandomizedResponse(self._plan.amount(name, Kind.RESPONSE), 2)
        law = stated if self._weaker == 1 else fewer_lies(stated, self._weaker)

        def drawn() -> NDArray[np.bool_]:
            self._pay(name, Kind.RESPONSE)
            return law.release_many(flags.astype(np.int64), self._source).astype(np.bool_)

        exact = tuple(flags.tolist())
        return Responses(self._note(name, Kind.RESPONSE, exact, law, (len(flags),), drawn), stated.truth)

    def _note(
        self,
        name: str,
        kind: Kind,
        exact: Any,
        law: Law | None,
        public: tuple[object, ...],
        drawn: Callable[[], T],
    ) -> T:
        """Return what is released, and note it; a forced release is paid for too, so that none passes twice."""
        if self._forced is None or name not in self._forced:
            found = drawn()
        else:
            self._pay(name, kind)
            found = self._forced[name]
        value = found[0] if kind is Kind.NUMBER and isinstance(found, tuple) else found
        self.passed.append(Passed(name, kind, exact, law, public, value))
        return value


class WeakGate(WatchedGate):
    """A gate that draws a third of the noise it should: what an audit must catch."""

    def __init__(self, plan: Plan, source: BitSource) -> None:
        super().__init__(plan, source, weaker=WEAKER)


def _divided(values: Sequence[Fraction], bounds: Sequence[Fraction]) -> tuple[Fraction, ...]:
    return tuple(value / bound for value, bound in zip(values, bounds, strict=True))


def fewer_lies(mechanism: RandomizedResponse, parts: int) -> RandomizedResponse:
    """Return randomized response that lies so many times more rarely."""
    others = mechanism.categories - 1
    lies = (1 - mechanism.truth) / parts
    return RandomizedResponse(log((1 - lies) * others / lies), mechanism.categories)


def moved(passed: Passed, other: Passed) -> Passed:
    """Return a release moved by the difference of its private numbers: what an uncharged copy of it would show."""
    if passed.kind in (Kind.RESPONSE, Kind.LABELS):
        return replace(passed, released=_as(passed.kind, other.exact))
    gaps = [theirs - own for own, theirs in zip(passed.exact, other.exact, strict=True)]
    if passed.kind is Kind.ROWS:
        step = float(passed.public[2])  # type: ignore[arg-type]
        return replace(passed, released=passed.released + np.array(gaps) / step)
    if isinstance(passed.released, Fraction):
        return replace(passed, released=passed.released + gaps[0])
    return replace(passed, released=tuple(x + gap for x, gap in zip(passed.released, gaps, strict=True)))


def _as(kind: Kind, exact: Any) -> Any:
    return np.array(exact, np.bool_) if kind is Kind.RESPONSE else exact


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
    computed: list[tuple[Plan, Compute, WatchedCurator]] = field(default_factory=list)

    @property
    def passed(self) -> list[Passed]:
        """What passed all gates, in turn."""
        return [one for gate in self.gates for one in gate.passed]

    @property
    def releases(self) -> list[dict[str, Any]]:
        """What each gate released, by name: what another run can be forced to release."""
        return [{one.name: one.released for one in gate.passed} for gate in self.gates]

    def gate(self, plan: Plan, source: BitSource, rows: BaseSession) -> WatchedGate:
        """Return the next gate."""
        place = len(self.gates)
        forced = None if self.forced is None else dict(self.forced[place]) if place < len(self.forced) else {}
        self.gates.append(WatchedGate(plan, source, rows=rows, weaker=self.weaker, forced=forced))
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
        self._watch.computed.append((request.plan, compute, self))
        return super().run(request, compute)

    def _gate(self, plan: Plan, reservation: Reservation) -> WatchedGate:  # noqa: ARG002
        return self._watch.gate(plan, self._noise, self)


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
        return cls(*watch.computed[0]) if watch.computed else None

    def run(
        self, source: BitSource, weaker: int = 1, forced: Mapping[str, Any] | None = None
    ) -> list[Passed]:
        """Return what passes a gate: drawn from the source, or forced. An error is the last thing to pass."""
        gate = WatchedGate(self.plan, source, rows=self.session, weaker=weaker, forced=forced)
        try:
            self.compute(gate)
        except Exception as error:
            gate.passed.append(Passed("an error", Kind.LABELS, type(error).__name__, None, (), None))
        return gate.passed
