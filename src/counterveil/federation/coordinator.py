"""The coordinator: asks every site until it answers or time is up, and keeps each reply as it arrives.

It sees released results and codes of refusals. It holds no rows, no ledger and no gate, and imports none.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

from counterveil.errors import CounterveilError
from counterveil.federation import messages as refusals
from counterveil.federation.judging import NOT_AN_ANSWER, SetAsideError, judged
from counterveil.federation.messages import Reply
from counterveil.federation.study_files import StudyFolder

# What a coordinator needs of whatever carries its messages.


class Engine(Protocol):
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

Teller = Callable[[str], None]


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
    engine: Engine
    tell: Teller
    clock: Clock = field(default_factory=Clock)
    seen: set[str] = field(default_factory=set)
    times: dict[str, float] = field(default_factory=dict)
    wrong: dict[str, int] = field(default_factory=dict)

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
            aside = {site: NOT_AN_ANSWER for site, times in self.wrong.items() if times >= _MOST_WRONG}
            facts = {"seen": sorted(self.seen), "seconds": self.times, "deadline": ends, "set_aside": aside}
            self.folder.note(facts)
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
                # A site that is slow, or was restarted, is asked again; it never pays twice for the same id.
                turn.due, turn.wait = now + turn.wait, min(2 * turn.wait, _LONGEST_RETRY)

    def _final(self, site: str, text: str) -> bool:
        """Return whether a reply settles a site's part in this run, keeping it if it is one."""
        reply = read_reply(self.folder, site, text)
        if reply is None:
            self.wrong[site] = self.wrong.get(site, 0) + 1
            self.tell(f"{site}: sent a message that is not an answer to this request")
            return self.wrong[site] >= _MOST_WRONG
        before = self.folder.replies().get(site)
        self.folder.keep(site, reply)
        said = describe(reply)
        if reply.ok:
            said = self._judged(site, reply)
        if reply.refusal != refusals.WAITING or before != reply:
            self.tell(f"{site}: {said}")
        return reply.refusal != refusals.WAITING

    def _judged(self, site: str, reply: Reply) -> str:
        """Return what became of an answer, keeping the end of the site's ledger where it is believed."""
        folder = self.folder
        try:
            judged(folder.request(site), reply, folder.study.most_rows.get(site), folder.head(site))
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
    return f"refused, {reply.refusal}: {refusals.MEANINGS[reply.refusal]}"
