"""The coordinator: asks every site until it answers or time is up, and keeps each reply as it arrives.

It sees released results and codes of refusals. It holds no rows, no ledger and no gate, and imports none.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from math import isclose
from typing import Any, Protocol, TypeVar, cast

from counterveil.bounded_reading import UnreadableError
from counterveil.errors import CounterveilError, ParameterError, refusal
from counterveil.errors import refusals as refusals_table
from counterveil.federation import messages as refusals
from counterveil.federation.files import damaged, read_json, write_json
from counterveil.federation.judging import COPY, NOT_AN_ANSWER, DeclaredOutcome, SetAsideError, judged
from counterveil.federation.masking import Step
from counterveil.federation.messages import Reply, SiteRequest
from counterveil.federation.study_files import StudyFolder, check_pooling
from counterveil.privacy.caveats import SitesWithoutAnswer
from counterveil.questions.pooling.documents import computed_facts
from counterveil.questions.pooling.effects import PooledResult
from counterveil.questions.pooling.moments import PooledMoments
from counterveil.questions.pooling.pool import pool
from counterveil.questions.pooling.reading import rows_of
from counterveil.questions.pooling.tables import PooledTable
from counterveil.results.result import Result
from counterveil.settings import WeightLimits

# Where the sum of a study stands, kept in its folder, and the answer that its sites computed from it.


_STATE = "sum.json"
# Machines round differently, far below this.
_NEAR = {"rel_tol": 1e-6, "abs_tol": 1e-12}


def keep_step(folder: StudyFolder, step: Step, failed: bool = False) -> None:
    """Keep where a sum stands, and whether it failed."""
    write_json(folder.path / _STATE, step.to_document() | {"failed": failed})


def kept_step(folder: StudyFolder) -> tuple[Step, bool]:
    """Return where the sum of a study stands, and whether it failed."""
    path = folder.path / _STATE
    kept = read_json(path, "failed")
    if kept is None:
        return Step(colluding=folder.study.colluding), False
    try:
        return Step.read({name: kept[name] for name in kept if name != "failed"}), bool(kept["failed"])
    except UnreadableError as error:
        raise damaged(path, str(error)) from None


def members_of(folder: StudyFolder) -> tuple[str, ...]:
    """Return the sites of a sum: those on its list, or all that are asked before there is one."""
    listed = kept_step(folder)[0].members if folder.study.colluding else ()
    return tuple(member.site for member in listed) or tuple(folder.study.asks)


def agreed(folder: StudyFolder, results: Mapping[str, Any]) -> tuple[Any, set[str]]:
    """Return the answer that more than half of the members computed, and the members; CV-F501 where there is none."""
    step, failed = kept_step(folder)
    members = {member.site for member in step.members}
    given = {site: [*_leaves(computed_facts(results[site].to_dict()))] for site in results if site in members}
    votes = {site: sum(_alike(own, other) for other in given.values()) for site, own in given.items()}
    count = max(votes.values(), default=0)
    if failed or not members or 2 * count <= len(members):
        got = "sums beyond it" if failed else f"{count} of {len(members)} sites with one answer"
        raise refusal("CV-F501", sites=", ".join(sorted(members or folder.study.asks)), got=got)
    return results[next(site for site in votes if votes[site] == count)], members


def _leaves(value: object) -> Iterator[object]:
    """Yield the texts and numbers of a document, in order."""
    if isinstance(value, Mapping):
        value = [one for name in sorted(value) for one in (name, value[name])]
    if not isinstance(value, list | tuple):
        yield value
        return
    for one in value:
        yield from _leaves(one)


def _alike(own: list[object], other: list[object]) -> bool:
    """Return whether two answers are one, computed on machines that may round differently."""
    return len(own) == len(other) and all(
        one == two or (isinstance(one, float) and isinstance(two, float) and isclose(one, two, **_NEAR))
        for one, two in zip(own, other, strict=True)
    )


def most_rows(folder: StudyFolder, site: str) -> int | None:
    """Return how many rows an answer of a site can be about: its own, or those of all members of a sum."""
    return kept_step(folder)[0].rows if folder.study.colluding else folder.study.max_rows.get(site)


class SiteEngine(Protocol):
    """Carries texts to sites that proved who they are, and brings their replies."""

    def connected(self) -> set[str]:
        """Return the names of the sites that are there now."""
        ...

    def send(self, site: str, text: str, seconds: float) -> None:
        """Hand over a request that is worth nothing after so many seconds."""
        ...

    def received(self) -> list[tuple[str, str | None]]:
        """Return the replies since the last call with their sites; None stands for one that went wrong."""
        ...


_POLL = 0.5
_LONGEST_RETRY = 600.0
# After so many invalid messages, a site is set aside for this run.
_MOST_WRONG = 3

Progress = Callable[[str], None]
Pooled = PooledResult | Result | PooledTable | PooledMoments
Answer = TypeVar("Answer", bound=Pooled)


@dataclass(slots=True)
class Clock:
    """The coordinator's clock; tests pass their own."""

    now: Callable[[], float] = time.time
    sleep: Callable[[float], None] = time.sleep


@dataclass(slots=True)
class _Turn:
    """When a site is asked next, and how long is waited after that."""

    due: float
    wait: float


@dataclass(slots=True)
class Round:
    """One run: puts the question to the sites that have not answered it, under the ids they had before."""

    folder: StudyFolder
    engine: SiteEngine
    progress: Progress
    clock: Clock = field(default_factory=Clock)
    seen: set[str] = field(default_factory=set)
    times: dict[str, float] = field(default_factory=dict)
    wrong: dict[str, int] = field(default_factory=dict)

    def run(self) -> None:
        """Return when every site gave an answer or a final refusal, or when the deadline has passed."""
        study = self.folder.study
        start = self.clock.now()
        ends = self._ends(start)
        turns = {site: _Turn(start, study.retry) for site in self._asked()}
        try:
            while turns and self.clock.now() < ends:
                self._ask(turns, ends)
                for site, text in self.engine.received():
                    if site not in turns:
                        continue
                    if text is None:
                        # The node was lost, or its message; nothing is known of what the site did.
                        turns[site] = _Turn(self.clock.now() + _POLL, study.retry)
                    elif self._final(site, text):
                        self.times[site] = self.clock.now() - start
                        del turns[site]
                if turns:
                    self.clock.sleep(_POLL)
        finally:
            aside = {site: NOT_AN_ANSWER for site, times in self.wrong.items() if times >= _MOST_WRONG}
            facts = {"seen": sorted(self.seen), "seconds": self.times, "deadline": ends, "set_aside": aside}
            self.folder.note(facts)
        for site in turns:
            self.progress(f"{site}: {'no answer in time' if site in self.seen else 'never connected'}")

    def _ends(self, start: float) -> float:
        return start + self.folder.study.deadline

    def _asked(self) -> list[str]:
        """Return the sites that have not answered yet."""
        replies = self.folder.replies()
        return [site for site in self.folder.study.asks if site not in replies or not replies[site].ok]

    def _text(self, request: SiteRequest) -> str:
        """Return what a site is sent."""
        return request.to_text()

    def _ask(self, turns: dict[str, _Turn], ends: float) -> None:
        here = self.engine.connected()
        for site, turn in turns.items():
            if site in here and site not in self.seen:
                self.seen.add(site)
                self.progress(f"{site}: connected")
            now = self.clock.now()
            if site in here and now >= turn.due:
                request = self.folder.request(site, ends)
                self.engine.send(site, self._text(request), ends - now)
                # A site that is slow, or was restarted, is asked again; it never pays twice for the same id.
                turn.due, turn.wait = now + turn.wait, min(2 * turn.wait, _LONGEST_RETRY)

    def _final(self, site: str, text: str) -> bool:
        """Return whether a reply settles a site's part in this run, keeping it if it is one."""
        reply = read_reply(self.folder, site, text)
        if reply is None:
            self.wrong[site] = self.wrong.get(site, 0) + 1
            self.progress(f"{site}: sent a message that is not an answer to this request")
            return self.wrong[site] >= _MOST_WRONG
        before = self.folder.replies().get(site)
        self.folder.keep(site, reply)
        said = describe(reply)
        if reply.ok:
            said = self._judged(site, reply)
        if reply.refusal != refusals.WAITING or before != reply:
            self.progress(f"{site}: {said}")
        return reply.refusal != refusals.WAITING

    def _judged(self, site: str, reply: Reply) -> str:
        """Return what became of an answer, keeping the end of the site's ledger where it is believed."""
        folder = self.folder
        try:
            judged(folder.request(site), reply, folder.study.max_rows.get(site), folder.head(site))
        except SetAsideError as reason:
            return aside(str(reason))
        if reply.head is not None:
            folder.keep_head(site, reply.head)
        return describe(reply)


def read_reply(folder: StudyFolder, site: str, text: str) -> Reply | None:
    """Return a site's reply if it is one to the request that was sent; what it holds is judged later."""
    request = folder.request(site)
    try:
        reply = Reply.from_text(text)
    except CounterveilError:
        return None
    if reply.refusal == refusals.NOT_UNDERSTOOD:
        return Reply.to(request, refusal=reply.refusal)
    return reply if reply.answers(request) else None


def aside(reason: str) -> str:
    """Return the state of a site whose answer is not pooled; the reason is one of a fixed list."""
    return f"set aside, CV-F041: {reason}"


def describe(reply: Reply | None) -> str:
    """Return a site's state in words; nothing that a site wrote is quoted."""
    if reply is None:
        return "no answer yet"
    if reply.refusal is None:
        return "answered"
    return f"refused, {reply.refusal}: {refusals_table()[reply.refusal]['problem']}"


_BROKEN = "its reply file is damaged"


@dataclass(frozen=True, slots=True)
class SiteState:
    """Where one site stands; `refusal` is a code, `state` says it in words, `result` is what can be pooled."""

    site: str
    epsilon: str
    state: str
    refusal: str | None
    result: Any = None

    @property
    def answered(self) -> bool:
        """Whether the site gave an answer that can be pooled."""
        return self.result is not None

    def to_dict(self) -> dict[str, Any]:
        """Return the state as JSON-ready facts."""
        names = ("site", "epsilon", "state", "answered", "refusal")
        return {name: getattr(self, name) for name in names}


def states(folder: StudyFolder) -> list[SiteState]:
    """Return where each site stands, in the order of the study file; every answer is judged anew."""
    found = {site: _state(folder, site) for site in folder.study.asks}
    if folder.study.colluding:
        return list(found.values())
    # Two draws of noise do not agree in every number. Of answers that do, the first to arrive is believed.
    seen: set[object] = set()
    answered = {site: each.result for site, each in found.items() if each.result is not None}
    for site in sorted(answered, key=folder.arrived):
        release = answered[site]._site_numbers()
        if release in seen:
            found[site] = replace(found[site], state=aside(COPY), refusal="CV-F041", result=None)
        seen.add(release)
    return list(found.values())


def _state(folder: StudyFolder, site: str) -> SiteState:
    epsilon = folder.study.asks[site].epsilon
    last = folder.last_run()
    try:
        reply = folder.reply(site)
        if reply is not None and reply.ok:
            result = judged(folder.request(site), reply, most_rows(folder, site), folder.head(site))
            return SiteState(site, epsilon, describe(reply), None, result)
    except SetAsideError as reason:
        return SiteState(site, epsilon, aside(str(reason)), "CV-F041", None)
    except ParameterError as error:
        if error.code != "CV-P660":
            raise
        return SiteState(site, epsilon, aside(_BROKEN), "CV-F041", None)
    if reply is not None:
        return SiteState(site, epsilon, describe(reply), reply.refusal, None)
    said = describe(None)
    if last:
        said = "no answer in time" if site in last["seen"] else "never connected"
    if site in last.get("set_aside", {}):
        return SiteState(site, epsilon, aside(NOT_AN_ANSWER), "CV-F041", None)
    return SiteState(site, epsilon, said, None, None)


def pooled(folder: StudyFolder, method: str | None = None, level: float | None = None) -> Pooled:
    """Return the pooled effect of the sites that answered, or raise CV-F020 where they are too few.

    Where parts are summed it is the effect that most of the sites computed from the sums (else CV-F501).
    """
    study = folder.study
    found = states(folder)
    results = {each.site: each.result for each in found if each.result is not None}
    if study.colluding:
        effect, inside = agreed(folder, results)
        return cast("Pooled", _without(effect, [each for each in found if each.site not in inside]))
    gone = [each for each in found if not each.answered]
    if len(results) < study.quorum:
        raise refusal(
            "CV-F020",
            quorum=study.quorum,
            results=len(results),
            gone="; ".join(f"{each.site} ({each.state})" for each in gone),
        )
    if len(study.asks) == 1:
        (only,) = results.values()
        return cast("Pooled", only)
    if method is not None:
        check_pooling(method, results, study.max_rows, study.ask)
    pooled_effect = pool(
        results,
        method=method or study.pooling,
        level=study.ask.level if level is None else level,
        weight_limits=_weight_limits(folder, results),
    )
    return _without(pooled_effect, gone)


def _without(effect: Answer, gone: list[SiteState]) -> Answer:
    """Return an effect that names the sites which are not in it."""
    if not gone:
        return effect
    absent = SitesWithoutAnswer(tuple(each.site for each in gone), tuple(each.state for each in gone))
    return replace(effect, not_covered=(absent, *effect.not_covered))


def _weight_limits(folder: StudyFolder, results: Mapping[str, Any]) -> WeightLimits:
    """Return what bounds each weight: a public rule, and what the coordinator knows of the sites' sizes."""
    study = folder.study
    known = {site: study.max_rows[site] for site in results if site in study.max_rows}
    shares: dict[str, float] = {}
    if len(known) == len(results):
        shares = {site: rows / sum(known.values()) for site, rows in known.items()}
    least = {}
    if study.ask.question == "ate":
        declared = DeclaredOutcome.of(study.declaration)
        least = {
            site: declared.least_noise(study.asks[site], rows_of(result) or 1)
            for site, result in results.items()
        }
    return WeightLimits(
        max_weight=study.max_weight,
        own={site: max(study.max_weight, share) for site, share in shares.items()},
        min_variance=least,
    )
