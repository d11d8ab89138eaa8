"""The outcome of a study: which sites answered, why the others did not, and the pooled effect."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from counterveil.errors import FederationError, ParameterError
from counterveil.federation.coordinator import aside, describe
from counterveil.federation.judging import COPY, NOT_AN_ANSWER, Declared, SetAsideError, judged
from counterveil.federation.study_files import StudyFolder, check_pooling
from counterveil.questions.pooled.pool import PooledResult, pool
from counterveil.questions.pooled.reading import rows_of
from counterveil.results.result import Result
from counterveil.settings import WeightLimits

_BROKEN = "its reply file is damaged"


@dataclass(frozen=True, slots=True)
class SiteState:
    """Where one site stands; `refusal` is a code, `state` says it in words, `result` is what can be pooled."""

    site: str
    epsilon: str
    state: str
    refusal: str | None
    result: Result | None

    @property
    def answered(self) -> bool:
        """Whether the site gave an answer that can be pooled."""
        return self.result is not None

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
    """Return where each site stands, in the order of the study file; every answer is judged anew."""
    found = {site: _state(folder, site) for site in folder.study.asks}
    # Two draws of noise do not agree in every number. Of answers that do, the first to arrive is believed.
    seen: set[object] = set()
    for site in sorted((site for site in found if found[site].answered), key=folder.arrived):
        release = _release(found[site].result)
        if release in seen:
            found[site] = replace(found[site], state=aside(COPY), refusal="CV-F041", result=None)
        seen.add(release)
    return list(found.values())


def _state(folder: StudyFolder, site: str) -> SiteState:
    epsilon, last = folder.study.asks[site].epsilon, folder.last_run()
    try:
        reply = folder.reply(site)
        if reply is not None and reply.ok:
            known, most_rows = folder.head(site), folder.study.most_rows.get(site)
            result = judged(folder.request(site), reply, most_rows, known)
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


def _release(result: Result | None) -> object:
    """Return the numbers that only one draw of noise has."""
    if result is None:
        return None
    known = result.uncertainty
    return (result.estimate, known.variance, known.variance_cap, result.method)


def pooled(folder: StudyFolder, method: str | None = None, level: float | None = None) -> PooledResult:
    """Return the pooled effect of the sites that answered, or raise CV-F020 where they are too few."""
    study, found = folder.study, states(folder)
    missing = [f"{each.site} ({each.state})" for each in found if not each.answered]
    results = {each.site: each.result for each in found if each.result is not None}
    if len(results) < study.quorum:
        raise FederationError(
            "CV-F020",
            "too few sites answered",
            expected=f"valid answers of at least {study.quorum} sites",
            got=f"{len(results)}; not {'; '.join(missing)}",
            fix="run the study again: sites that answered are not asked again, and nobody pays twice",
        )
    if method is not None:
        check_pooling(method, results, study.most_rows)
    effect = pool(
        results,
        method=method or study.pooling,
        level=study.ask.level if level is None else level,
        weight_limits=_weight_limits(folder, results),
    )
    if not missing:
        return effect
    absent = f"the people at sites without a valid answer: {'; '.join(missing)}"
    return replace(effect, not_covered=(absent, *effect.not_covered))


def _weight_limits(folder: StudyFolder, results: Mapping[str, Result]) -> WeightLimits:
    """Return what bounds each weight: a public rule, and what the coordinator knows of the sites' sizes."""
    study, declared = folder.study, Declared.of(folder.study.declaration)
    known = {site: study.most_rows[site] for site in results if site in study.most_rows}
    shares: dict[str, float] = {}
    if len(known) == len(results):
        shares = {site: rows / sum(known.values()) for site, rows in known.items()}
    rows = {site: rows_of(result) or 1 for site, result in results.items()}
    return WeightLimits(
        most_weight=study.most_weight,
        own={site: max(study.most_weight, share) for site, share in shares.items()},
        least_variance={site: declared.least_noise(study.asks[site], rows[site]) for site in results},
    )
