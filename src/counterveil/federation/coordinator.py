"""The coordinator: asks every site until it answers or time is up, and keeps each reply as it arrives.

It sees released results and codes of refusals. It holds no rows, no ledger and no gate, and imports none.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field

from counterveil.errors import CounterveilError
from counterveil.estimators.pooled.reading import read_result
from counterveil.estimators.result import Result
from counterveil.federation import refusals
from counterveil.federation.engine import Engine
from counterveil.federation.messages import Ask, Reply
from counterveil.federation.study_folder import StudyFolder
from counterveil.privacy import Budget

_POLL = 0.5
_LONGEST_RETRY = 600.0

Teller = Callable[[str], None]


@dataclass(slots=True)
class Clock:
    """Time as the coordinator sees it; tests bring their own."""

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
    engine: Engine
    tell: Teller
    clock: Clock = field(default_factory=Clock)
    seen: set[str] = field(default_factory=set)
    times: dict[str, float] = field(default_factory=dict)

    def run(self) -> None:
        """Return when every site gave an answer or a final refusal, or when the deadline has passed."""
        study, start = self.folder.study, self.clock.now()
        ends = start + study.deadline
        replies = self.folder.replies()
        turns = {
            site: _Turn(start, study.retry)
            for site in study.asks
            if site not in replies or not replies[site].ok
        }
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
            self.folder.note({"seen": sorted(self.seen), "seconds": self.times, "deadline": ends})
        for site in turns:
            self.tell(f"{site}: {'no answer in time' if site in self.seen else 'never connected'}")

    def _ask(self, turns: dict[str, _Turn], ends: float) -> None:
        here = self.engine.connected()
        for site, turn in turns.items():
            if site in here and site not in self.seen:
                self.seen.add(site)
                self.tell(f"{site}: connected")
            now = self.clock.now()
            if site in here and now >= turn.due:
                request = self.folder.request(site, ends)
                self.engine.send(site, request.to_text(), ends - now)
                # A site that is slow, or was restarted, is asked again; it never pays twice for one id.
                turn.due, turn.wait = now + turn.wait, min(2 * turn.wait, _LONGEST_RETRY)

    def _final(self, site: str, text: str) -> bool:
        """Return whether a reply settles a site's part in this run, keeping it if it is one."""
        reply = read_reply(self.folder, site, text)
        if reply is None:
            self.tell(f"{site}: sent something that is not an answer to this request")
            return False
        before = self.folder.reply(site)
        self.folder.keep(site, reply)
        if reply.refusal != refusals.WAITING or before != reply:
            self.tell(f"{site}: {describe(reply)}")
        return reply.refusal != refusals.WAITING


def read_reply(folder: StudyFolder, site: str, text: str) -> Reply | None:
    """Return a site's reply if it is one to the request that was sent, with a result that keeps to it."""
    request = folder.request(site)
    try:
        reply = Reply.from_text(text)
        if reply.refusal == refusals.NOT_UNDERSTOOD:
            return Reply(request.study_id, request.request_id, refusal=reply.refusal)
        if (reply.study_id, reply.request_id) != (request.study_id, request.request_id):
            return None
        if reply.result is not None and not _keeps_to(request.ask, read_result(reply.result, site)):
            return None
    except CounterveilError:
        return None
    return reply


def _keeps_to(ask: Ask, result: Result) -> bool:
    """Return whether a result protects what was asked and names no larger loss."""
    asked, promised = Budget(ask.epsilon, ask.delta), result.guarantee
    return (
        promised.unit.value == ask.protects
        and result.estimand.value == ask.estimand
        and promised.epsilon <= asked.epsilon
        and promised.delta <= asked.delta
    )


def describe(reply: Reply | None) -> str:
    """Return a site's state in plain words; nothing that a site wrote is quoted."""
    if reply is None:
        return "no answer yet"
    if reply.refusal is None:
        return "answered"
    return f"refused, {reply.refusal}: {refusals.MEANINGS[reply.refusal]}"
