"""Effects at a finite set of queries: an answer and an interval for each, one guarantee for all."""

from __future__ import annotations

from dataclasses import dataclass
from math import log, sqrt
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import chdtri, ndtri

from counterveil.data.labels import Label
from counterveil.inference import level_of_each
from counterveil.inference.ratio import NoisyRatio
from counterveil.results.effect import Effect, check_level, interval_facts
from counterveil.results.result import Released, provenance_from_dict
from counterveil.results.stored import load, no_effects, reads_facts, save

Floats = NDArray[np.float64]
Query = dict[str, float | Label]
_NAME = 40  # letters of a query in a table


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class CateAnswers(Released):
    """Released effects at public queries; nothing in it is private any more and nothing it does spends budget.

    `sampling` and `noise` are standard deviations, one a query. `distinct` says how many different answers
    there are (queries in one bin share one) and `rank` how many released numbers they are made of.
    `noise_tail` is "normal" or "laplace".
    """

    queries: tuple[Query, ...]
    estimates: tuple[float, ...]
    sampling: tuple[float, ...]
    noise: tuple[float, ...]
    distinct: int
    rank: int
    noise_tail: str = "normal"

    @property
    def table(self) -> tuple[Effect, ...]:
        """The effect at every query; for intervals that hold for all of them, `band` may be shorter."""
        heavy = self.noise_tail != "normal"
        known = zip(self.queries, self.estimates, self.sampling, self.noise, strict=True)
        return tuple(
            Effect(
                query_name(query),
                NoisyRatio(estimate, 1.0, sampling**2, noise, 0.0, heavy=heavy),
                self.level,
                self.distinct,
            )
            for query, estimate, sampling, noise in known
        )

    def effect(self) -> Floats:
        """Return the answers, in the order of the queries."""
        return np.array(self.estimates)

    predict = effect

    @property
    def std_error(self) -> Floats:
        """Standard errors of the answers, sampling and privacy noise together."""
        return np.hypot(self.sampling, self.noise)

    def interval(self, level: float | None = None) -> tuple[Floats, Floats]:
        """Return the two ends of an interval for every answer; each holds by itself."""
        return self._around(self._half(self.level if level is None else check_level(level)))

    def effect_interval(self, alpha: float = 0.05) -> tuple[Floats, Floats]:
        """Return the two ends of an interval of level 1 - alpha for every answer."""
        return self.interval(1 - alpha)

    def band(self, level: float | None = None) -> tuple[Floats, Floats]:
        """Return the two ends of intervals that hold for all answers together.

        By Šidák's inequality over the distinct answers or, where it is shorter, by Scheffé's over the
        released numbers that they are made of.
        """
        chosen = self.level if level is None else check_level(level)
        half = self._half(level_of_each(chosen, self.distinct))
        if self.noise_tail == "normal":
            half = np.minimum(half, sqrt(float(chdtri(self.rank, 1 - chosen))) * self.std_error)
        return self._around(half)

    def _half(self, level: float) -> Floats:
        # Exact for normal noise; for the sum of a normal and a Laplace mechanism it errs on the long side.
        normal = -float(ndtri((1 - level) / 2))
        own = normal if self.noise_tail == "normal" else max(normal, -log(1 - level) / sqrt(2))
        return np.hypot(normal * np.array(self.sampling), own * np.array(self.noise))

    def _around(self, half: Floats) -> tuple[Floats, Floats]:
        return self.effect() - half, self.effect() + half

    def tidy(self) -> list[dict[str, Any]]:
        """Return one dictionary a query, with the names that R's `broom` uses, dots replaced by underscores."""
        source = {"level": self.level} | self._source()
        return [
            {
                "term": self.treatment,
                **query,
                "estimand": "CATE",
                "estimate": one["estimate"],
                "std_error": one["std_error"]["total"],
                "se_sampling": one["std_error"]["sampling"],
                "se_noise": one["std_error"]["noise"],
                "conf_low": one["interval"]["low"],
                "conf_high": one["interval"]["high"],
                "conf_low_simultaneous": one.get("simultaneous_interval", one["interval"])["low"],
                "conf_high_simultaneous": one.get("simultaneous_interval", one["interval"])["high"],
            }
            | source
            for query, one in zip(self.queries, self.effect_facts(), strict=True)
        ]

    def effect_facts(self) -> list[dict[str, Any]]:
        """Return every answer with its error and both its intervals; there are too many for p-values."""
        columns = (self.std_error, self.sampling, self.noise, *self.interval(), *self.band())
        rows = zip(*(np.asarray(column).tolist() for column in columns), strict=True)
        return [
            {
                "name": query_name(query),
                "estimate": estimate,
                "std_error": {"total": total, "sampling": sampling, "noise": noise},
                "interval": interval_facts(self.level, (low, high)),
            }
            # Queries in one bin share one answer: then there is nothing to hold together.
            | (
                {"simultaneous_interval": interval_facts(self.level, (least, most))}
                if self.distinct > 1
                else {}
            )
            for query, estimate, (total, sampling, noise, low, high, least, most) in zip(
                self.queries, self.estimates, rows, strict=True
            )
        ]

    def _shown(self) -> dict[str, Any]:
        (low, high), (least, most) = self.interval(), self.band()
        return {
            "std_error": {
                "total": self.std_error.tolist(),
                "sampling": list(self.sampling),
                "noise": list(self.noise),
            },
            "interval": {"level": self.level, "low": low.tolist(), "high": high.tolist()},
            "simultaneous_interval": {"level": self.level, "low": least.tolist(), "high": most.tolist()},
        }

    def report_facts(self) -> dict[str, Any]:
        """Return what reports and pictures show: the facts of `to_dict`, with a row for every query."""
        return self.to_dict() | {
            "sentence": f"effect at {len(self.queries)} quer{'y' if len(self.queries) == 1 else 'ies'}",
            "effects": self.effect_facts(),
        }

    def _numbers(self) -> dict[str, Any]:
        return {
            "queries": [dict(query) for query in self.queries],
            "estimates": list(self.estimates),
            "std_error": {"sampling": list(self.sampling), "noise": list(self.noise)},
            "distinct": self.distinct,
            "rank": self.rank,
            "noise_tail": self.noise_tail,
        }

    @classmethod
    @reads_facts
    def from_dict(cls, facts: dict[str, Any]) -> CateAnswers:
        """Return the answers written by `to_dict` or `stored`."""
        parts = (
            facts["queries"],
            facts["estimates"],
            *(facts["std_error"][part] for part in ("sampling", "noise")),
        )
        if len({len(part) for part in parts}) > 1:
            raise ValueError("every query has one answer")
        return cls(
            queries=tuple(dict(query) for query in facts["queries"]),
            estimates=tuple(facts["estimates"]),
            sampling=tuple(facts["std_error"]["sampling"]),
            noise=tuple(facts["std_error"]["noise"]),
            distinct=facts["distinct"],
            rank=facts["rank"],
            noise_tail=facts["noise_tail"],
            **provenance_from_dict(facts),
        )

    def save(self, path: str | Path) -> Path:
        """Write the answers as JSON, without any data in it; return the path."""
        return save(self.to_dict(), path)

    @classmethod
    def load(cls, path: str | Path) -> CateAnswers:
        """Return the answers that `save` wrote; another file is refused with CV-P552."""
        return load(path, cls.from_dict, lambda got: no_effects(got, "CateAnswers.save"))


def query_name(query: Query) -> str:
    """Return the values of a query as they stand in a table, cut where covariates are many."""
    values = (f"{value:.4g}" if isinstance(value, float) else str(value) for value in query.values())
    said = ", ".join(f"{name} {value}" for name, value in zip(query, values, strict=True))
    return said if len(said) <= _NAME else f"{said[: _NAME - 1]}…"
