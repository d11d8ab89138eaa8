"""What became of a study: who answered, who did not and why, and the pooled effect of those who did."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from counterveil.errors import FederationError
from counterveil.estimators.pooled.front_door import pool
from counterveil.estimators.pooled.result import PooledResult
from counterveil.federation.coordinator import describe
from counterveil.federation.study_folder import StudyFolder


@dataclass(frozen=True, slots=True)
class SiteState:
    """Where one site stands; `refusal` is a code, `state` says it in words."""

    site: str
    epsilon: str
    state: str
    answered: bool
    refusal: str | None

    def to_dict(self) -> dict[str, Any]:
        """Return the state as JSON-ready facts."""
        return {
            "site": self.site,
            "epsilon": self.epsilon,
            "state": self.state,
            "answered": self.answered,
            "refusal": self.refusal,
        }


def states(folder: StudyFolder) -> list[SiteState]:
    """Return where each site stands, in the order of the study file."""
    replies, last = folder.replies(), folder.last_run()
    found = []
    for site, ask in folder.study.asks.items():
        reply = replies.get(site)
        said = describe(reply)
        if reply is None and last:
            said = "no answer in time" if site in last["seen"] else "never connected"
        answered = reply is not None and reply.ok
        found.append(SiteState(site, ask.epsilon, said, answered, None if reply is None else reply.refusal))
    return found


def pooled(folder: StudyFolder, method: str | None = None, level: float | None = None) -> PooledResult:
    """Return the pooled effect of the sites that answered, or raise CV-F020 where they are too few."""
    study, found = folder.study, states(folder)
    missing = [f"{each.site} ({each.state})" for each in found if not each.answered]
    results = {
        site: reply.result
        for site, reply in folder.replies().items()
        if reply.ok and reply.result is not None
    }
    if len(results) < study.quorum:
        raise FederationError(
            "CV-F020",
            "too few sites answered",
            expected=f"answers of at least {study.quorum} sites",
            got=f"{len(results)}; not {'; '.join(missing)}",
            fix="run the study again: sites that answered are not asked again, and nobody pays twice",
        )
    effect = pool(results, method=method or study.pooling, level=study.ask.level if level is None else level)
    if not missing:
        return effect
    absent = f"the people of sites that gave no answer: {'; '.join(missing)}"
    return replace(effect, not_covered=(absent, *effect.not_covered))
