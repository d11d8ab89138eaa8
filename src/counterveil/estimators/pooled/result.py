"""The answer from several sites: a weighted average, its uncertainty, and how far the sites differ."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from counterveil.errors import ParameterError
from counterveil.estimators.estimated import Ends, around, check_level, interval_facts
from counterveil.estimators.pooled.weight_limits import WeightLimits
from counterveil.estimators.pooled.wording import METHOD_TEXTS, report_facts
from counterveil.estimators.promise import opening_facts
from counterveil.estimators.read_back import reads_facts
from counterveil.estimators.result import OneEffect, Result, one_effect_facts, one_effect_row
from counterveil.inference import Heterogeneity, PooledUncertainty
from counterveil.privacy import Budget, Estimand, Guarantee


@dataclass(frozen=True, slots=True)
class PooledSite:
    """One site's part: its released result, its weight in the average and its public number of rows."""

    name: str
    weight: float
    rows: int
    result: Result


@dataclass(frozen=True, slots=True)
class PooledResult(OneEffect):
    """A weighted average of released effects; nothing in it is private and nothing it does spends budget.

    `estimate` is cut to `limits`, what the effect can be at all. `weight_limits` are those that were asked for.
    `spent` is the most that any one person's data have spent. `interval_of` is as in `Result`.
    """

    estimate: float
    uncertainty: PooledUncertainty
    sites: tuple[PooledSite, ...]
    heterogeneity: Heterogeneity
    guarantee: Guarantee
    spent: Budget
    estimand: Estimand
    method: str
    treatment: str
    outcome: str
    level: float
    not_covered: tuple[str, ...]
    interval_of: str | None = None
    limits: Ends | None = None
    weight_limits: WeightLimits | None = None

    @property
    def caution(self) -> str | None:
        """What every rendering says first where a site in the average has something to say first, else None."""
        said = [site.result.caution for site in self.sites if site.weight > 0 and site.result.condition]
        if self.interval_of is not None:
            said.insert(0, f"NO VALID INTERVAL FOR THE EFFECT: the interval is for {self.interval_of}")
        return "; ".join(dict.fromkeys(filter(None, said))) or None

    def prediction_interval(self, level: float | None = None) -> tuple[float, float]:
        """Return the two ends of an interval for the effect at one more site like these; random effects only."""
        half = self.uncertainty.reach(self.level if level is None else check_level(level))
        if half is None:
            raise ParameterError(
                "CV-P507",
                "these sites are not averaged as a sample of sites",
                expected='pool(..., method="random_effects")',
                got=f"method={self.method!r}, an average of these sites alone",
                fix='pool the same results again with method="random_effects"; that spends nothing',
            )
        return around(self.estimate, half)

    def tidy(self) -> list[dict[str, float | str]]:
        """Return a row for each site and one for all, with the names that `broom` uses."""
        rows = [_site_row(site, self.level) for site in self.sites]
        named: dict[str, float | str] = {"site": "pooled", "type": "summary", "weight": 1.0}
        return [*rows, named | one_effect_row(self)]

    def to_dict(self) -> dict[str, Any]:
        """Return everything as JSON-ready facts, the sites' results among them; `from_dict` reads them back."""
        facts = opening_facts(self.guarantee, caution=self.caution, interval_of=self.interval_of)
        if self.uncertainty.spread is not None:
            facts["prediction"] = interval_facts(self.level, self.prediction_interval())
        if self.weight_limits is not None:
            facts["weight_limits"] = self.weight_limits.to_dict()
        facts |= {"pooled": self.method, "method": METHOD_TEXTS[self.method]} | one_effect_facts(self)
        return facts | {
            "heterogeneity": self.heterogeneity.to_dict(),
            "guarantee": self.guarantee.to_dict(),
            "spent": self.spent.to_dict(),
            "releases": [[site.name, _spending(site)] for site in self.sites],
            "not_covered": list(self.not_covered),
            "sites": [_site_facts(site, self.level) for site in self.sites],
        }

    @classmethod
    @reads_facts
    def from_dict(cls, facts: dict[str, Any]) -> PooledResult:
        """Return the result written by `to_dict`, pooled again from the sites' results in it."""
        # Imported here because the front door makes objects of this class.
        from counterveil.estimators.pooled.front_door import pool

        sites = {site["name"]: site["result"] for site in facts["sites"]}
        bounds = WeightLimits.from_dict(facts["weight_limits"]) if "weight_limits" in facts else None
        level = facts["interval"]["level"]
        return pool(sites, method=facts["pooled"], level=level, weight_limits=bounds)

    def report_facts(self) -> dict[str, Any]:
        """Return what reports and pictures show: the facts of `to_dict`, with a row for every site and one for all."""
        return report_facts(self.to_dict())


def _site_row(site: PooledSite, level: float) -> dict[str, float | str]:
    (row,) = site.result.tidy()
    low, high = site.result.interval(level)
    interval: dict[str, float | str] = {"conf.low": low, "conf.high": high, "conf.level": level}
    named: dict[str, float | str] = {"site": site.name, "type": "study", "weight": site.weight}
    return named | row | interval


def _spending(site: PooledSite) -> str:
    return f"{site.result.method}, {site.result.spent}"


def _site_facts(site: PooledSite, level: float) -> dict[str, Any]:
    return {
        "name": site.name,
        "weight": site.weight,
        "rows": site.rows,
        "interval": interval_facts(level, site.result.interval(level)),
        "result": site.result.to_dict(),
    }
