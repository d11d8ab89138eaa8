"""The coordinator's side of a sum: keys and rows of all sites, then one sum after another, then the answer.

It adds up masked numbers. Which release comes next, and what follows from the sums, is the sites' to compute; all of
them compute the same.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from counterveil.bounded_reading import Fields, UnreadableError
from counterveil.errors import CounterveilError, refusal
from counterveil.federation import messages as refusals
from counterveil.federation.files import damaged, read_json, write_json
from counterveil.federation.masking import Member, Step, SumRequest, read_numbers, total_of
from counterveil.federation.messages import Reply
from counterveil.federation.study_files import StudyFolder
from counterveil.questions.pooled.pool import released_numbers
from counterveil.results.result import Result

if TYPE_CHECKING:
    from counterveil.federation.coordinator import Clock, SiteEngine

_POLL, _LONGEST_RETRY, _MOST_WRONG = 0.5, 600.0, 3
# Noise of the least part of a budget exceeds this many of its scales once in 1e26 sums.
_FAR, _PARTS = 60, 50
_STATE = "sum.json"


@dataclass(slots=True)
class SumRound:
    """One run of a sum; it goes on where an earlier run stopped, and sites send the same parts again."""

    folder: StudyFolder
    engine: SiteEngine
    tell: Callable[[str], None]
    clock: Clock

    def run(self) -> None:
        """Return when all members sent their answer, or when the deadline has passed."""
        folder, study, start = self.folder, self.folder.study, self.clock.now()
        ends = start + study.deadline
        step, failed = _state(folder)
        if not step.members and not failed:
            # Sites that are late are left out: nothing was drawn yet.
            offers = self._gather(step, study.asks, start + study.deadline / 2, ends, self._offer)
            if len(offers) < study.quorum:
                return self.tell(f"{len(offers)} sites take part, of at least {study.quorum}")
            step = replace(step, members=tuple(offers[site] for site in sorted(offers)))
            _keep(folder, step)
        names = [member.site for member in step.members]
        while not failed:
            parts = self._gather(step, names, ends, ends, self._part(step))
            if len(parts) < len(names):
                gone = ", ".join(site for site in names if site not in parts)
                return self.tell(f"no part of {gone}; run the study again")
            said = {part for part, _ in parts.values()}
            if said == {None}:
                return self.tell(f"{len(names)} sites computed the answer")
            totals = total_of(numbers for _, numbers in parts.values())
            (first, *others), limit = said, _limit(study.ask.epsilon, step)
            failed = bool(others) or first is None or max(map(abs, totals)) > first[1] * limit
            if first is not None and not failed:
                step = replace(step, totals={**step.totals, first[0]: totals})
                self.tell(f"{first[0]}: added up")
            _keep(folder, step, failed)
        return self.tell("the parts do not add up to what the declared outcome allows")

    def _gather(
        self,
        step: Step,
        sites: Iterable[str],
        until: float,
        ends: float,
        read: Callable[[str, Reply], Any],
    ) -> dict[str, Any]:
        """Return what `read` makes of each site's reply to a step; sites that refuse for good are left out."""
        found: dict[str, Any] = {}
        due = dict.fromkeys(sites, self.clock.now())
        wait, wrong = dict.fromkeys(due, self.folder.study.retry), Counter[str]()
        while due and self.clock.now() < until:
            here, now = self.engine.connected(), self.clock.now()
            for site in [one for one in due if one in here and now >= due[one]]:
                request = SumRequest(self.folder.request(site, ends), step)
                self.engine.send(site, request.to_text(), ends - now)
                due[site], wait[site] = now + wait[site], min(2 * wait[site], _LONGEST_RETRY)
            for site, text in self.engine.received():
                if site not in due:
                    continue
                reply = None if text is None else _reply(self.folder, site, text)
                if reply is not None and reply.refusal is not None:
                    self.folder.keep(site, reply)
                    self.tell(f"{site}: refused, {reply.refusal}: {refusals.MEANINGS[reply.refusal]}")
                    if reply.refusal != refusals.WAITING:
                        del due[site]
                    continue
                try:
                    if reply is not None:
                        found[site] = read(site, reply)
                        del due[site]
                except UnreadableError:
                    reply = None
                if reply is None:
                    wrong[site] += text is not None
                    due[site] = self.clock.now() + _POLL
                    if wrong[site] >= _MOST_WRONG:
                        self.tell(f"{site}: sent messages that are not answers to this step")
                        del due[site]
            if due:
                self.clock.sleep(_POLL)
        return found

    def _offer(self, site: str, reply: Reply) -> Member:
        """Return the member that a site offers to be."""
        said = _said(reply, ("key", "rows", "signature"))
        member = Member.read({**said.values, "site": site, "request_id": reply.request_id})
        study = self.folder.study
        known = member.is_signed(study.study_id, self.folder.public_key(site))
        if not known or member.rows > study.max_rows.get(site, member.rows):
            raise UnreadableError("an offer: not of this site")
        return member

    def _part(
        self, step: Step
    ) -> Callable[[str, Reply], tuple[tuple[str, int, int] | None, tuple[int, ...]]]:
        """Return what reads a part of the next sum: its name, its bound and how many numbers it has, and these."""

        def read(site: str, reply: Reply) -> tuple[tuple[str, int, int] | None, tuple[int, ...]]:
            if reply.result is not None and "summed" not in reply.result:
                self.folder.keep(site, reply)
                return None, ()
            said = _said(reply, ("name", "numbers", "bound", "context"))
            if said.text("context") != step.context(self.folder.request(site)).hex():
                raise UnreadableError("a part of another sum")
            name = said.text("name")
            numbers, (bound,) = (
                read_numbers(said.values, "numbers"),
                read_numbers({"bound": [said.text("bound")]}, "bound"),
            )
            if name in step.totals or not numbers or min(numbers) < 0 or bound < 1:
                raise UnreadableError("a part of another sum")
            read_numbers({name: []}, name)
            return (name, bound, len(numbers)), numbers

        return read


def agreed(folder: StudyFolder, results: Mapping[str, Result]) -> tuple[Result, set[str]]:
    """Return the answer that more than half of the members computed, and the members; CV-F501 where there is none."""
    step, failed = _state(folder)
    members = {member.site for member in step.members}
    given = {site: released_numbers(result) for site, result in results.items() if site in members}
    ((numbers, count),) = Counter(given.values()).most_common(1) or [((), 0)]
    if failed or not members or 2 * count <= len(members):
        got = "sums beyond it" if failed else f"{count} of {len(members)} sites with one answer"
        raise refusal("CV-F501", sites=", ".join(sorted(members or folder.study.asks)), got=got)
    return results[next(site for site in given if given[site] == numbers)], members


def most_rows(folder: StudyFolder, site: str) -> int | None:
    """Return how many rows an answer of a site can be about: its own, or those of all members of a sum."""
    return _state(folder)[0].rows if folder.study.colluding else folder.study.max_rows.get(site)


def _limit(epsilon: str, step: Step) -> int:
    """Return how far a sum can be from zero, in sensitivities: a row adds at most one, and noise rarely more."""
    return step.rows + int(_FAR * _PARTS * len(step.members) / Fraction(epsilon)) + 1


def _reply(folder: StudyFolder, site: str, text: str) -> Reply | None:
    """Return a reply to the request of a site, None where it is none."""
    try:
        reply = Reply.from_text(text)
    except CounterveilError:
        return None
    request = folder.request(site)
    if reply.refusal == refusals.NOT_UNDERSTOOD:
        return Reply.to(request, refusal=reply.refusal)
    return reply if reply.answers(request) else None


def _said(reply: Reply, names: tuple[str, ...]) -> Fields:
    return Fields.of("a part", (reply.result or {}).get("summed"), names)


def _keep(folder: StudyFolder, step: Step, failed: bool = False) -> None:
    write_json(folder.path / _STATE, step.to_document() | {"failed": failed})


def _state(folder: StudyFolder) -> tuple[Step, bool]:
    """Return where the sum of a study stands, and whether it failed."""
    path = folder.path / _STATE
    kept = read_json(path, "failed")
    if kept is None:
        return Step(colluding=folder.study.colluding), False
    try:
        return Step.read({name: value for name, value in kept.items() if name != "failed"}), bool(
            kept["failed"]
        )
    except UnreadableError as error:
        raise damaged(path, str(error)) from None
