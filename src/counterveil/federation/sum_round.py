"""The coordinator's side of a sum: keys and rows of all sites, then one sum after another, then the answer.

It adds up masked numbers. Which release comes next, and what follows from the sums, is the sites' to compute; all of
them compute the same.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

from counterveil.bounded_reading import Fields, UnreadableError
from counterveil.errors import refusal
from counterveil.federation.coordinator import (
    Clock,
    Progress,
    Round,
    SiteEngine,
    keep_step,
    kept_step,
    read_reply,
)
from counterveil.federation.masking import Member, Step, read_numbers, sum_request, total_of
from counterveil.federation.messages import Reply, SiteRequest
from counterveil.federation.study_files import StudyFolder

# The name of what is summed next, its sensitivity in steps, and how many numbers it has; None for an answer.
_Next: TypeAlias = tuple[str, int, int] | None


@dataclass(slots=True)
class _StepRound(Round):
    """Puts one step of a sum to some sites until a time."""

    step: Step = field(default_factory=Step)
    sites: tuple[str, ...] = ()
    until: float = 0.0
    found: dict[str, Any] = field(default_factory=dict)

    def _ends(self, start: float) -> float:  # noqa: ARG002 - one end for all steps
        return self.until

    def _asked(self) -> list[str]:
        return list(self.sites)

    def _text(self, request: SiteRequest) -> str:
        return sum_request(request, self.step)

    def _final(self, site: str, text: str) -> bool:
        reply = read_reply(self.folder, site, text)
        if reply is None or not reply.ok:
            return Round._final(self, site, text)
        try:
            self.found[site] = self._part(site, reply) if self.step.members else self._offer(site, reply)
        except UnreadableError:
            # A late reply to an earlier step, perhaps: it is passed over.
            return False
        return True

    def _offer(self, site: str, reply: Reply) -> Member:
        """Return the member that a site offers to be."""
        said = _said(reply, ("key", "rows", "signature"))
        member = Member.read({**said.values, "site": site, "request_id": reply.request_id})
        study = self.folder.study
        known = member.is_signed(study.study_id, self.folder.public_key(site))
        if not known or member.rows > study.max_rows.get(site, member.rows):
            raise UnreadableError("an offer: not of this site")
        return member

    def _part(self, site: str, reply: Reply) -> tuple[_Next, tuple[int, ...]]:
        """Return a site's part of the next sum, or nothing where it computed the answer."""
        if "summed" not in (reply.result or {}):
            self.folder.keep(site, reply)
            return None, ()
        said = _said(reply, ("name", "numbers", "bound", "context"))
        name = said.text("name")
        numbers = read_numbers(said.values, "numbers")
        (bound,) = read_numbers({"bound": [said.text("bound")]}, "bound")
        own = said.text("context") == self.step.context(self.folder.request(site)).hex()
        if not own or name in self.step.totals or not numbers or min(numbers) < 0 or bound < 1:
            raise UnreadableError("a part of another sum")
        read_numbers({name: []}, name)
        return (name, bound, len(numbers)), numbers


def run_sum(folder: StudyFolder, engine: SiteEngine, progress: Progress, clock: Clock) -> None:
    """Return when all members computed the answer, or when the deadline has passed.

    A run goes on where an earlier one stopped, and sites send the same parts again.
    """
    study = folder.study
    start = clock.now()
    step, failed = kept_step(folder)

    def gather(sites: tuple[str, ...], until: float) -> dict[str, Any]:
        asked = _StepRound(folder, engine, progress, clock, step=step, sites=sites, until=until)
        asked.run()
        return asked.found

    if not step.members and not failed:
        # Sites that are late are left out: nothing was drawn yet.
        offers = gather(tuple(study.asks), start + study.deadline / 2)
        if len(offers) < study.quorum:
            return progress(f"{len(offers)} sites take part, of at least {study.quorum}")
        step = replace(step, members=tuple(offers[site] for site in sorted(offers)))
        keep_step(folder, step)
    names = tuple(member.site for member in step.members)
    limit = step.farthest(study.ask.epsilon)
    while not failed:
        parts = gather(names, start + study.deadline)
        if len(parts) < len(names):
            return None
        first, *others = {part for part, _ in parts.values()}
        if first is None and not others:
            return progress(f"{len(names)} sites computed the answer")
        failed = first is None or bool(others)
        if first is not None and not failed:
            totals = total_of(numbers for _, numbers in parts.values())
            failed = max(map(abs, totals)) > first[1] * limit
            step = step if failed else replace(step, totals={**step.totals, first[0]: totals})
            progress(f"{first[0]}: {'not a sum' if failed else 'added up'}")
        keep_step(folder, step, failed)
    return progress("the parts do not add up to what the declared outcome allows")


def _said(reply: Reply, names: tuple[str, ...]) -> Fields:
    return Fields.of("a part", (reply.result or {}).get("summed"), names)


# This machine alone, or every network it is on; a firewall can say more.
_LISTEN = ("127.0.0.1", "0.0.0.0")


def run_study(folder: StudyFolder, listen: str, progress: Progress) -> dict[str, float]:
    """Ask the sites that have not answered yet and return how many seconds each part took."""
    from counterveil.federation.engines.flower.wire import prepare

    if listen not in _LISTEN:
        raise refusal(
            "CV-P600", what="the address to listen on", expected=" or ".join(_LISTEN), got=repr(listen)
        )
    start = time.monotonic()
    with folder.running():
        prepare(folder.path / "flower")
        from counterveil.federation.engines.flower.link import FlowerLink

        loaded = time.monotonic()
        with FlowerLink(folder, listen) as link:
            ready = time.monotonic()
            progress(f"listening on {folder.study.address}")
            if folder.study.colluding:
                run_sum(folder, link, progress, Clock())
            else:
                Round(folder, link, progress).run()
            answered = time.monotonic()
    return {
        "load": loaded - start,
        "link": ready - loaded,
        "answers": answered - ready,
        "stop": time.monotonic() - answered,
    }
