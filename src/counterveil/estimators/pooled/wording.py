"""A pooled result in words and as the rows of a report."""

from __future__ import annotations

from math import sqrt
from typing import Any

from counterveil.report.numbers import probability

METHOD_TEXTS = {
    "mvagg": "least-variance subset of sites, by size",
    "ivw": "all sites, by inverse variance",
    "all": "all sites, by size",
    "largest": "the largest site alone",
    "random_effects": "random effects: equal weights, Student's t over sites",
}
# What the average is of; for random effects the sites are a sample of all there could be.
_AVERAGES = "the average of the sites' effects with the weights shown, whether or not the sites differ"
_MEAN = "the mean effect of sites like these, which may differ; wide for a few sites"


def report_facts(facts: dict[str, Any]) -> dict[str, Any]:
    """Return the facts of a pooled result with the rows and notes that reports show."""
    pooled = {key: facts[key] for key in ("estimate", "std_error", "interval", "p_value")}
    rows = [_row(site) for site in facts["sites"]]
    rows.append(pooled | {"name": "pooled", "weight": 1.0, "summary": True})
    return facts | {"effects": rows, "notes": _notes(facts)}


def _row(site: dict[str, Any]) -> dict[str, Any]:
    result = site["result"]
    kept = {key: result[key] for key in ("estimate", "std_error", "p_value")}
    return kept | {key: site[key] for key in ("name", "weight", "interval")}


def _held(facts: dict[str, Any]) -> str:
    """Return what was done because sites are not trusted with their own weight."""
    limits = facts["weight_limits"]
    own = ", or its share of the rows that sites are known to have" if limits["own"] else ""
    return f"from sizes and noise, not from variances that sites report; at most {limits['most_weight']:.0%} each{own}"


def _notes(facts: dict[str, Any]) -> list[tuple[str, str]]:
    found = facts["heterogeneity"]
    differ = (
        f"Q = {found['q']:.3g} on {found['df']} degrees of freedom, p = {probability(found['p_value'])}; "
        f"I^2 = {found['i_squared']:.0%}; standard deviation of the sites' effects (tau) "
        f"{sqrt(found['tau_squared']):.3g}"
    )
    average = _MEAN if facts["pooled"] == "random_effects" else _AVERAGES
    notes = [("Average", average), ("Differences", differ)]
    if "weight_limits" in facts:
        notes.append(("Weights", _held(facts)))
    if "prediction" in facts:
        ahead = facts["prediction"]
        notes.append(
            (
                "One more site",
                f"its effect lies in [{ahead['low']:.4g}, {ahead['high']:.4g}] ({ahead['level']:.0%}, rather too wide)",
            )
        )
    return notes
