"""Mutated messages and files of a federation, put to a site and to a coordinator.

`run(count, seed)` returns one line for each failure: an error without a code, more than five seconds of CPU, a private
value or a control character in a text, a pooled effect that no outcome can have. No line is what it should return.
"""

from __future__ import annotations

import atexit
import contextlib
import csv
import io
import json
import logging
import os
import random
import signal
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from types import FrameType
from typing import Any

from tools.fuzzing.mutations import CANARY, ESCAPE, mutated_json, mutated_toml
from tools.loose_study import study_of

import counterveil as cv
from counterveil.errors import CounterveilError
from counterveil.federation.coordinator import Clock, Round, keep_step, pooled, states
from counterveil.federation.masking import Member, Step, read_numbers, sum_request, total_of
from counterveil.federation.messages import Reply, SiteRequest
from counterveil.federation.setup import make_site, make_study
from counterveil.federation.site import Site
from counterveil.federation.site_files import SiteFile, SiteRecords, key_of
from counterveil.federation.study_files import StudyFolder
from counterveil.federation.sum_round import run_sum
from counterveil.questions.pooling.moments import PooledMoments
from counterveil.questions.pooling.tables import PooledTable
from counterveil.results import MeasureResult

_SECONDS = 5.0
_LOW, _HIGH = -3.0, 5.0
_SITES = ("North", "South", "West")
_STUDY = cv.Study(
    cv.Treatment("t", control=0), cv.Outcome("y", (-3, 5)), {"x": cv.Range(0, 1)}, assignment=cv.Trial()
)
_POLICY = {"estimators": ["difference_in_means"], "study_epsilon": "100000"}
_QUESTION = {"method": "difference_in_means", "protects": "outcome", "epsilon": "1"}
# Measures of the arms' means, of outcomes that are never negative.
_POSITIVE = cv.Study(
    cv.Treatment("t", control=0),
    cv.Outcome("y", (0, 8)),
    {"x": cv.Range(0, 1)},
    assignment=cv.Trial(),
)
_X: dict[str, Any] = {"covariates": {"x": cv.Range(0, 1)}, "randomised": True}
_ARMS = study_of("arm", "y", (-3, 5), arms=("a", "b", "c"), reference="a", **_X)
_TWO = study_of("t", outcomes={"y": (-3, 5), "z": (0, 1)}, control=0, treated=1, **_X)
_TIMES = study_of("t", "days", event="e", horizon=24, grid=4, control=0, treated=1, **_X)
# Studies and questions of the other messages: measures, and every answer of several effects.
_OTHERS: tuple[tuple[cv.Study, dict[str, Any]], ...] = (
    (_POSITIVE, _QUESTION | {"measure": "ratio"}),
    (_POSITIVE, _QUESTION | {"measure": "lift", "method": "trial", "protects": "record"}),
    (_ARMS, _QUESTION | {"question": "arms"}),
    (_STUDY, _QUESTION | {"question": "groups", "options": {"by": {"x": ["1/2"]}}}),
    (_TWO, _QUESTION | {"question": "outcomes"}),
    (_TIMES, _QUESTION | {"question": "survival", "method": "kaplan_meier", "protects": "record"}),
    (_STUDY, _QUESTION | {"question": "moments", "method": "moments"}),
)


class HangError(BaseException):
    """Raised after too many seconds of CPU; no handler of ours catches it."""


@dataclass(slots=True)
class World:
    """A study of three sites on a disk, all of which answered, and the last documents they exchanged."""

    path: Path
    study: StudyFolder
    sites: dict[str, Site]
    requests: dict[str, str]
    replies: dict[str, str]

    @classmethod
    def made(cls, path: Path, declared: cv.Study, question: dict[str, Any]) -> World:
        """Return a new world under a path."""
        document: dict[str, Any] = {"id": "s1", "address": "127.0.0.1:9092", "quorum": 2, "max_weight": 0.5}
        document["question"] = question
        document["sites"] = {name: {"max_rows": 500} for name in _SITES}
        make_study(path / "study", document, declared, {})
        policy = _POLICY | {"estimators": [question["method"]], "protects": [question["protects"]]}
        policy |= {"measures": [question.get("measure", "difference")]}
        policy |= {"questions": [question.get("question", "ate")]}
        sites = {name: _site(path, name, place, declared, policy) for place, name in enumerate(_SITES)}
        study = StudyFolder(path / "study")
        requests = {name: study.request(name, 4e9).to_text() for name in _SITES}
        replies = {name: sites[name].answer(text) for name, text in requests.items()}
        for name, text in replies.items():
            study.keep(name, Reply.from_text(text))
        return cls(path, study, sites, requests, replies)


def run(count: int, seed: int) -> list[str]:
    """Return one line for each of `count` mutated documents that was not met with an answer or a coded refusal."""
    source = random.Random(seed)
    failures: list[str] = []
    with _quiet(), _alarm():
        world = _world(os.getpid())
        for number in range(count):
            name, target = source.choice(list(_TARGETS.items()))
            said = _tried(world, target, source)
            if said is not None:
                failures.append(f"seed {seed}, number {number}, {name}: {said}")
    return failures


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Keep our loggers from printing every refusal; their level is put back for whoever runs in this process next."""
    logger = logging.getLogger("counterveil")
    before = logger.level
    logger.setLevel(logging.CRITICAL + 1)
    try:
        yield
    finally:
        logger.setLevel(before)


@cache
def _world(_process: int, other: int | None = None) -> World:
    """Return a world of this process, made once; its folder goes when the process ends."""
    folder = tempfile.TemporaryDirectory(prefix="fuzzing-messages-")
    atexit.register(folder.cleanup)
    path = Path(folder.name).resolve()
    return World.made(path, *((_STUDY, _QUESTION) if other is None else _OTHERS[other]))


def _tried(world: World, target: Callable[[World, random.Random], str], source: random.Random) -> str | None:
    """Return what went wrong with one mutated document, None for nothing."""
    printed = io.StringIO()
    signal.setitimer(signal.ITIMER_VIRTUAL, _SECONDS)
    try:
        with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(printed):
            text = target(world, source)
    except CounterveilError as error:
        text = error.text() + json.dumps(error.to_dict())
    except HangError:
        return f"more than {_SECONDS:.0f} s of CPU"
    except AssertionError as error:
        return f"WRONG: {error}"
    except Exception as error:
        place = error.__traceback__
        while place is not None and place.tb_next is not None:
            place = place.tb_next
        where = "" if place is None else f"{Path(place.tb_frame.f_code.co_filename).name}:{place.tb_lineno}"
        return f"an error without a code: {type(error).__name__} at {where}"
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
    seen = text + printed.getvalue()
    if CANARY in seen:
        return "a private value in a text"
    return "a control character in a text" if ESCAPE in seen or "\x9b" in seen else None


def _request(world: World, source: random.Random) -> str:
    """A site gets a mutated request; it answers with a reply, whatever it got."""
    site = source.choice(_SITES)
    text = mutated_json(world.requests[site], source).decode(
        "utf-8", source.choice(("replace", "surrogateescape"))
    )
    reply = world.sites[site].answer(text)
    Reply.from_text(reply)
    return reply


def _reply(world: World, source: random.Random) -> str:
    """A coordinator gets a mutated reply from one of three sites; the others are pooled without it, or all of them."""
    folder, site = world.study, source.choice(_SITES)
    text = mutated_json(world.replies[site], source).decode("utf-8", "replace")
    _drop(folder.path / "replies" / f"{site}.json")
    _drop(folder.path / "heads" / f"{site}.json")
    said: list[str] = []
    ticks = iter(range(10**9))
    clock = Clock(lambda: 1000.0 + next(ticks) * 100.0, lambda _: None)
    try:
        Round(folder, _Pigeon((site, text)), said.append, clock).run()
        return "\n".join(said) + _outcome(folder)
    finally:
        _drop(folder.path / "run.json")
        _drop(folder.path / "heads" / f"{site}.json")
        _drop(folder.path / "replies" / f"{site}.json")
        folder.keep(site, Reply.from_text(world.replies[site]))


def _other_reply(_: World, source: random.Random) -> str:
    """The same with the means of both arms in the reply, or several effects."""
    return _reply(_world(os.getpid(), source.randrange(len(_OTHERS))), source)


def _other_request(_: World, source: random.Random) -> str:
    """A site gets a mutated request for a measure, or for several effects; it charges nothing without an answer."""
    world = _world(os.getpid(), source.randrange(len(_OTHERS)))
    before = charged(world)
    said = _request(world, source)
    assert charged(world) == before or '"result": {' in said, "a charge without an answer"
    return said


def charged(world: World | SumWorld) -> list[str]:
    found = []
    for site in world.sites.values():
        with cv.open_ledger(site.file.ledger) as ledger:
            found.append(str(ledger.account(site.file.dataset).spent))
    return found


# What adds up over sites: a study and a question.
_RECORD, _OUTCOME = ({"protects": one, "epsilon": "8"} for one in ("record", "outcome"))
SUMS: tuple[tuple[cv.Study, dict[str, Any]], ...] = (
    (_STUDY, _RECORD | {"method": "trial", "settings": {"adjustment": "none"}}),
    (_TIMES, _RECORD | {"question": "survival", "method": "kaplan_meier"}),
    (_STUDY, _RECORD | {"question": "groups", "method": "arms", "options": {"by": {"x": ["1/2"]}}}),
    (_STUDY, _RECORD | {"question": "moments", "method": "moments", "options": {"robust": ["y ~ t"]}}),
    (_STUDY, _RECORD | {"question": "moments", "method": "moments", "delta": "1e-6"}),
    (_STUDY, _OUTCOME | {"method": "difference_in_means"}),
    (_TIMES, _OUTCOME | {"question": "survival", "method": "kaplan_meier"}),
)


@dataclass(slots=True)
class SumWorld:
    """A study whose sites' parts are summed, its sites, what they were sent and replied, and where the sum stands."""

    study: StudyFolder
    sites: dict[str, Site]
    said: list[tuple[str, str, str]]
    steps: list[Step]

    def replies(self, at: int) -> dict[str, str]:
        """Return what the sites replied to a step, by name."""
        first = len(self.sites) * at
        return {name: reply for name, _, reply in self.said[first : first + len(self.sites)]}

    def ask(self, step: Step) -> list[dict[str, Any]]:
        """Return what all sites say to a step."""
        self.steps.append(step)
        texts = {name: sum_request(self.study.request(name, 4e9), step) for name in self.sites}
        self.said += [(name, text, self.sites[name].answer(text)) for name, text in texts.items()]
        return [json.loads(text)["result"] for _, _, text in self.said[-len(self.sites) :]]


@cache
def sum_world(_process: int, place: int, whole: bool) -> SumWorld:
    """Return a sum with all that was said, to the answer that every site computed, or just after a list was fixed."""
    folder = tempfile.TemporaryDirectory(prefix="fuzzing-sums-")
    atexit.register(folder.cleanup)
    path, (declared, question) = Path(folder.name).resolve(), SUMS[place]
    document: dict[str, Any] = {"id": "s1", "address": "127.0.0.1:9092", "aggregation": "secure"}
    document |= {"question": question, "sites": {name: {} for name in _SITES}}
    make_study(path / "study", document, declared, {})
    policy = _POLICY | {
        "estimators": [question["method"]],
        "protects": [question["protects"]],
        "max_delta": "1e-6",
    }
    policy |= {"questions": [question.get("question", "ate")]}
    sites = {name: _site(path, name, place, declared, policy) for place, name in enumerate(_SITES)}
    study = StudyFolder(path / "study")
    for name, site in sites.items():
        for other in (study.path / "sites", *(path / one / "peers" for one in _SITES)):
            other.mkdir(exist_ok=True)
            (other / f"{name}.pub").write_bytes((site.file.keys / "node.pub").read_bytes())
    found = SumWorld(study, sites, [], [])
    offers = zip(_SITES, found.ask(Step()), strict=True)
    step = Step(
        tuple(
            Member.read(said["summed"] | {"site": name, "request_id": study.request(name).request_id})
            for name, said in offers
        )
    )
    if not whole:
        # Nobody got the first step with a list yet.
        found.said += [(name, sum_request(study.request(name, 4e9), step), "") for name in sites]
        return found
    while "summed" in (said := found.ask(step))[0]:
        parts = [read_numbers(one["summed"], "numbers") for one in said]
        step = replace(step, totals={**step.totals, said[0]["summed"]["name"]: total_of(parts)})
    return found


def _sum_request(_: World, source: random.Random) -> str:
    """A site gets a mutated step of a sum; it answers with a reply, and charges nothing without one."""
    world = sum_world(os.getpid(), source.randrange(len(SUMS)), source.random() < 0.5)
    name, text, _reply_text = source.choice(world.said)
    before = charged(world)
    reply = world.sites[name].answer(mutated_json(text, source).decode("utf-8", "replace"))
    Reply.from_text(reply)
    assert charged(world) == before or '"result": {' in reply, "a charge without an answer"
    return reply


def _sum_reply(_: World, source: random.Random) -> str:
    """A coordinator gets a mutated part of a sum, or a mutated answer, at the step it belongs to."""
    world = sum_world(os.getpid(), source.randrange(len(SUMS)), True)
    at, place = source.randrange(len(world.steps)), source.randrange(len(_SITES))
    replies = world.replies(at)
    name = _SITES[place]
    replies[name] = mutated_json(replies[name], source).decode("utf-8", "replace")
    told, found = heard(world, at, replies)
    return "\n".join(told) + ("" if found is None else json.dumps(found.stored()))


def heard(world: SumWorld, at: int, replies: dict[str, str]) -> tuple[list[str], Any]:
    """Return what a coordinator at a step tells of replies to it, and the pooled answer, None where there is none."""
    study, told, ticks = world.study, list[str](), iter(range(10**9))
    clock = Clock(lambda: 1000.0 + next(ticks) * 100.0, lambda _: None)
    if at:
        keep_step(study, world.steps[at])
    try:
        run_sum(study, _Pigeon(*replies.items()), told.append, clock)
        told.append(json.dumps([each.to_dict() for each in states(study)]))
        return told, pooled(study)
    except CounterveilError as error:
        if error.code != "CV-F501":
            raise
        return told, None
    finally:
        for path in (*study.path.glob("replies/*"), study.path / "run.json", study.path / "sum.json"):
            _drop(path)


class _Pigeon:
    """An engine whose only messages are there already."""

    def __init__(self, *messages: tuple[str, str | None]) -> None:
        self._messages = [*messages]

    def connected(self) -> set[str]:
        """Return that nobody needs to be asked."""
        return set()

    def send(self, site: str, text: str, seconds: float) -> None:
        """Send nothing."""

    def received(self) -> list[tuple[str, str | None]]:
        """Return the messages once."""
        messages, self._messages = self._messages, []
        return messages


def _outcome(folder: StudyFolder) -> str:
    """Return everything that is said of a study, with its pooled effect inside the range of effects."""
    listed = json.dumps([each.to_dict() for each in states(folder)])
    effect = pooled(folder)
    if isinstance(effect, MeasureResult):
        weights = [value for name, value in effect.details.items() if name.startswith("weight_")]
        assert all(isinstance(weight, float) and weight <= 0.5 + 1e-9 for weight in weights), (
            "a weight beyond"
        )
        assert effect.estimate >= -1, "a ratio below zero"
        # Intervals of ratios take too long to be looked at each time.
        return listed + json.dumps(effect.stored())
    if isinstance(effect, PooledTable | PooledMoments):
        rows = [row.weights for row in effect.rows] if isinstance(effect, PooledTable) else []
        rows += (
            [{one.name: one.weight for one in effect.answers}] if isinstance(effect, PooledMoments) else []
        )
        assert all(weight <= 0.5 + 1e-9 for row in rows for weight in row.values()), "a weight beyond"
        return listed + json.dumps(effect.stored())
    width = _HIGH - _LOW
    ends = (effect.estimate, *effect.interval())
    assert all(-width <= end <= width for end in ends), "a pooled value outside the range"
    assert all(site.weight <= 0.5 + 1e-9 for site in effect.sites), "a site with more than its weight"
    return listed + str(effect) + json.dumps(effect.to_dict())


def _coordinator_file(kind: str) -> Callable[[World, random.Random], str]:
    def target(world: World, source: random.Random) -> str:
        path = world.study.path / kind / f"{source.choice(_SITES)}.json"
        if not path.exists():
            world.study.keep_head(path.stem, Reply.from_text(world.replies[path.stem]).head)  # type: ignore[arg-type]
        with _changed(path, mutated_json, source):
            return _outcome(StudyFolder(world.study.path))

    return target


def _run_note(world: World, source: random.Random) -> str:
    world.study.note({"seen": ["North"], "seconds": {}, "deadline": 1.0, "set_aside": {}})
    with _changed(world.study.path / "run.json", mutated_json, source):
        return _outcome(StudyFolder(world.study.path))


def _kept_answer(world: World, source: random.Random) -> str:
    """A site finds a mutated answer of its own."""
    site = source.choice(_SITES)
    path = world.sites[site].file.answers / f"{key_of(SiteRequest.from_text(world.requests[site]))}.json"
    with _changed(path, mutated_json, source):
        text = world.sites[site].answer(world.requests[site])
        Reply.from_text(text)
        return text


def _last_head(world: World, source: random.Random) -> str:
    site = source.choice(_SITES)
    with _changed(world.sites[site].file.answers / "head.json", mutated_json, source):
        return world.sites[site].answer(world.requests[site])


def _waiting(world: World, source: random.Random) -> str:
    """A steward lists requests of which one is mutated."""
    records = SiteRecords(world.path / "waiting")
    request = SiteRequest.from_text(world.requests["North"])
    with records.locked():
        records.decision(request)
    (path,) = (world.path / "waiting" / "waiting").glob("*.json")
    with _changed(path, mutated_json, source):
        return "".join(
            f"{each.key} {each.state} {json.dumps(each.request['question'])}" for each in records.waiting()
        )


def _study_file(world: World, source: random.Random) -> str:
    name = source.choice(("study.toml", "declaration.toml"))
    with _changed(world.study.path / name, mutated_toml, source):
        return repr(StudyFolder(world.study.path).study.asks)


def _site_file(world: World, source: random.Random) -> str:
    with _changed(world.path / "North" / "site.toml", mutated_toml, source):
        return repr(SiteFile.read(world.path / "North").policy)


def _result_file(world: World, source: random.Random) -> str:
    """Somebody pools files of results, one of which is mutated."""
    paths = []
    for site in _SITES:
        path = world.path / f"{site}.json"
        path.write_text(json.dumps(json.loads(world.replies[site])["result"]))
        paths.append(path)
    with _changed(source.choice(paths), mutated_json, source):
        effect = cv.pool(paths, weight_limits=cv.settings.WeightLimits(0.5))
    low, high = effect.limits or (effect.estimate, effect.estimate)
    assert low <= effect.estimate <= high, "a pooled value outside the range"
    return str(effect) + json.dumps(effect.to_dict())


_TARGETS: dict[str, Callable[[World, random.Random], str]] = {
    "request": _request,
    "reply": _reply,
    "other reply": _other_reply,
    "other request": _other_request,
    "step of a sum": _sum_request,
    "part of a sum": _sum_reply,
    "kept answer": _kept_answer,
    "result file": _result_file,
    "request again": _request,
    "reply again": _reply,
    "kept reply": _coordinator_file("replies"),
    "kept request": _coordinator_file("requests"),
    "kept head": _coordinator_file("heads"),
    "note of a run": _run_note,
    "last head": _last_head,
    "waiting question": _waiting,
    "study file": _study_file,
    "site file": _site_file,
}


@contextlib.contextmanager
def _changed(
    path: Path, mutate: Callable[[str, random.Random], bytes], source: random.Random
) -> Iterator[None]:
    """Put a mutated file in the place of a good one, and the good one back."""
    whole = path.read_bytes()
    path.write_bytes(mutate(whole.decode("utf-8"), source))
    try:
        yield
    finally:
        path.write_bytes(whole)


@contextlib.contextmanager
def _alarm() -> Iterator[None]:
    def hang(_: int, __: FrameType | None) -> None:
        raise HangError

    before = signal.signal(signal.SIGVTALRM, hang)
    try:
        yield
    finally:
        signal.signal(signal.SIGVTALRM, before)


def _drop(path: Path) -> None:
    path.unlink(missing_ok=True)


def _site(path: Path, name: str, seed: int, declared: cv.Study, policy: dict[str, Any]) -> Site:
    source = random.Random(seed)
    data = path / f"{name}.csv"
    with data.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(("t", "y", "x", "id", "arm", "z", "days", "e"))
        for k in range(400):
            outcome = round(source.uniform(_LOW, _HIGH), 3)
            more = ("abc"[k % 3], round(source.random(), 3), 1 + k % 24, k % 3 % 2)
            writer.writerow((int(source.random() < 0.2), outcome, round(source.random(), 3), CANARY, *more))
    authority = path / "ca.crt"
    authority.write_text("-----BEGIN CERTIFICATE-----\n")
    document = {"name": name, "data": str(data), "coordinator": "127.0.0.1:9092", "policy": policy}
    return Site(
        make_site(path / name, document, declared, authority, cv.Budget(10**5, "1e-2")), clock=lambda: 1000.0
    )


if __name__ == "__main__":
    lines = run(*map(int, sys.argv[1:3] or ("300", "1")))
    print("\n".join(lines) or "no failure")
    sys.exit(bool(lines))
