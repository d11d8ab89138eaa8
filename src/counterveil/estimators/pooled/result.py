"""The answer from several sites: a weighted average, its uncertainty, and how far the sites differ."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from counterveil.errors import ParameterError
from counterveil.estimators.pooled.wording import METHOD_TEXTS, report_facts
from counterveil.estimators.result import Result, StdError, check_level
from counterveil.inference import Heterogeneity, PooledUncertainty
from counterveil.privacy import Budget, Estimand, Guarantee
from counterveil.report import html_page, latex_table, text_summary


@dataclass(frozen=True, slots=True)
class PooledSite:
    """One site's part: its released result, its weight in the average and its public number of rows."""

    name: str
    weight: float
    rows: int
    result: Result


@dataclass(frozen=True, slots=True)
class PooledResult:
    """A weighted average of released effects; nothing in it is private and nothing it does spends budget.

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

    @property
    def caution(self) -> str | None:
        """What every rendering says first where a site in the average has something to say first, else None."""
        said = [site.result.caution for site in self.sites if site.weight > 0 and site.result.condition]
        if self.interval_of is not None:
            said.insert(0, f"NO VALID INTERVAL FOR THE EFFECT: the interval is for {self.interval_of}")
        return "; ".join(dict.fromkeys(filter(None, said))) or None

    @property
    def std_error(self) -> StdError:
        """Standard error: total, sampling part, privacy-noise part; the total holds differences of sites too."""
        known = self.uncertainty
        return StdError(known.total_sd, known.sampling_sd, known.noise_sd)

    def interval(self, level: float | None = None) -> tuple[float, float]:
        """Return the two ends of an interval that covers sampling error and privacy noise together."""
        half = self.uncertainty.half_width(self.level if level is None else check_level(level))
        return self.estimate - half, self.estimate + half

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
        return self.estimate - half, self.estimate + half

    @property
    def p_value(self) -> float:
        """Two-sided p-value of no effect, noise included."""
        return self.uncertainty.p_value(self.estimate, self.level)

    def tidy(self) -> list[dict[str, float | str]]:
        """Return a row for each site and one for all, with the names that `broom` uses."""
        rows = [_site_row(site, self.level) for site in self.sites]
        named: dict[str, float | str] = {"site": "pooled", "type": "summary", "weight": 1.0}
        return [*rows, named | self._row()]

    def _row(self) -> dict[str, float | str]:
        low, high = self.interval()
        error = self.std_error
        return {
            "term": self.treatment,
            "estimand": self.estimand.value,
            "estimate": self.estimate,
            "std.error": error.total,
            "std.error.sampling": error.sampling,
            "std.error.noise": error.noise,
            "statistic": self.estimate / error.total,
            "p.value": self.p_value,
            "conf.low": low,
            "conf.high": high,
            "conf.level": self.level,
            "conf.of": self.interval_of or "the effect",
            "epsilon": float(self.spent.epsilon),
            "delta": float(self.spent.delta),
            "protects": self.guarantee.unit.value,
            "proof": self.guarantee.proof.value,
        }

    def to_dict(self) -> dict[str, Any]:
        """Return everything as JSON-ready facts, the sites' results among them; `from_dict` reads them back."""
        low, high = self.interval()
        error, bare = self.std_error, self.uncertainty.naive_half_width(self.level)
        warning = self.guarantee.warning
        facts: dict[str, Any] = {"warning": warning} if warning else {}
        facts |= {"caution": self.caution} if self.caution else {}
        facts |= {"interval_of": self.interval_of} if self.interval_of else {}
        if self.uncertainty.spread is not None:
            least, most = self.prediction_interval()
            facts["prediction"] = {"level": self.level, "low": least, "high": most}
        return facts | {
            "pooled": self.method,
            "method": METHOD_TEXTS[self.method],
            "estimand": self.estimand.value,
            "treatment": self.treatment,
            "outcome": self.outcome,
            "estimate": self.estimate,
            "std_error": {"total": error.total, "sampling": error.sampling, "noise": error.noise},
            "interval": {"level": self.level, "low": low, "high": high},
            "interval_without_noise": {"low": self.estimate - bare, "high": self.estimate + bare},
            "p_value": self.p_value,
            "heterogeneity": self.heterogeneity.to_dict(),
            "guarantee": self.guarantee.to_dict(),
            "spent": self.spent.to_dict(),
            "releases": [[site.name, _spending(site)] for site in self.sites],
            "not_covered": list(self.not_covered),
            "sites": [_site_facts(site, self.level) for site in self.sites],
        }

    @classmethod
    def from_dict(cls, facts: dict[str, Any]) -> PooledResult:
        """Return the result written by `to_dict`, pooled again from the sites' results in it."""
        # Imported here because the front door makes objects of this class.
        from counterveil.estimators.pooled.front_door import pool

        sites = {site["name"]: site["result"] for site in facts["sites"]}
        return pool(sites, method=facts["pooled"], level=facts["interval"]["level"])

    def to_latex(self) -> str:
        """Return a booktabs table with a row for each site and one for all, and the promise."""
        return latex_table(report_facts(self.to_dict()))

    def to_html(self, path: str | Path) -> Path:
        """Write a self-contained page with a forest plot of sites and pooled effect; return its path."""
        target = Path(path)
        target.write_text(html_page(report_facts(self.to_dict())), encoding="utf-8")
        return target

    def __str__(self) -> str:
        return text_summary(report_facts(self.to_dict()))


def _site_row(site: PooledSite, level: float) -> dict[str, float | str]:
    (row,) = site.result.tidy()
    low, high = site.result.interval(level)
    interval: dict[str, float | str] = {"conf.low": low, "conf.high": high, "conf.level": level}
    named: dict[str, float | str] = {"site": site.name, "type": "study", "weight": site.weight}
    return named | row | interval


def _spending(site: PooledSite) -> str:
    return f"{site.result.method}, {site.result.spent}"


def _site_facts(site: PooledSite, level: float) -> dict[str, Any]:
    low, high = site.result.interval(level)
    return {
        "name": site.name,
        "weight": site.weight,
        "rows": site.rows,
        "interval": {"level": level, "low": low, "high": high},
        "result": site.result.to_dict(),
    }
