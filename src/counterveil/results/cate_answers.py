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
from counterveil.errors import refusal
from counterveil.inference import level_of_each
from counterveil.inference.ratio import NoisyRatio
from counterveil.report.caveats import first_words
from counterveil.results.effect import Effect, check_level, interval_facts
from counterveil.results.result import Released, provenance_from_dict
from counterveil.results.stored import load, no_effects, reads_facts, save

Floats = NDArray[np.float64]
Query = dict[str, float | Label]
_NAME = 40  # letters of a query in a table
ONE_EFFECT = (
    "ONE EFFECT FOR ALL: rows and budget do not show that effects differ between people; the interval is "
    "for the average effect, and there is none for people; counterveil.groups gives effects of groups"
)


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class CateAnswers(Released):
    """Released effects at public queries; nothing in it is private any more and nothing it does spends budget.

    `sampling` and `noise` are standard deviations, one a query. `distinct` says how many different answers
    there are (queries in one bin share one) and `rank` how many released numbers they are made of.
    `noise_tail` is "normal" or "laplace". `one_effect` says that the answers are all the average effect: then
    they have no intervals, and only that effect is shown with one. `shrunk` says by how much shrinkage moved each
    answer, by which intervals are longer at both ends; empty where nothing was shrunk apart from them.
    """

    queries: tuple[Query, ...]
    estimates: tuple[float, ...]
    sampling: tuple[float, ...]
    noise: tuple[float, ...]
    distinct: int
    rank: int
    noise_tail: str = "normal"
    one_effect: bool = False
    shrunk: tuple[float, ...] = ()

    @property
    def caution(self) -> str | None:
        """What every rendering says first: that the effect is one number, or that no interval is for it."""
        return said_first(self, self.one_effect)

    @property
    def _names(self) -> tuple[str, ...]:
        """The names of the effects that are shown: one for every query, or one for everybody."""
        return tuple(query_name(query) for query in self.queries) if not self.one_effect else ("everybody",)

    @property
    def table(self) -> tuple[Effect, ...]:
        """The effect at every query; for intervals that hold for all of them, `band` may be shorter."""
        heavy = self.noise_tail != "normal"
        # One effect for everybody is the first of equal answers.
        shrunk = self.shrunk or (0.0,) * len(self.estimates)
        columns = (self.estimates, self.sampling, self.noise, shrunk)
        known = zip(self._names, *columns, strict=not self.one_effect)
        return tuple(
            Effect(
                name,
                NoisyRatio(estimate, 1.0, sampling**2, noise, 0.0, bias=bias, heavy=heavy),
                self.level,
                self.distinct,
            )
            for name, estimate, sampling, noise, bias in known
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
        """Return the two ends of an interval for every answer; each holds by itself.

        One effect for all has none: CV-P528.
        """
        if self.one_effect:
            raise refusal("CV-P528")
        return self._interval(self.level if level is None else check_level(level))

    def _interval(self, level: float) -> tuple[Floats, Floats]:
        return self._around(self._half(level))

    def effect_interval(self, alpha: float = 0.05) -> tuple[Floats, Floats]:
        """Return the two ends of an interval of level 1 - alpha for every answer."""
        return self.interval(1 - alpha)

    def band(self, level: float | None = None) -> tuple[Floats, Floats]:
        """Return the two ends of intervals that hold for all answers together.

        By Šidák's inequality over the distinct answers or, where it is shorter, by Scheffé's over the
        released numbers that they are made of. One effect for all has none: CV-P528.
        """
        if self.one_effect:
            raise refusal("CV-P528")
        return self._band(self.level if level is None else check_level(level))

    def _band(self, chosen: float) -> tuple[Floats, Floats]:
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
        whole = half + np.array(self.shrunk) if self.shrunk else half
        return self.effect() - whole, self.effect() + whole

    def _rows(self) -> list[dict[str, Any]]:
        """Return one dictionary a query, with the names that R's `broom` uses, dots replaced by underscores."""
        source = {"level": self.level} | self._source()
        asked: tuple[Query, ...] = ({},) if self.one_effect else self.queries
        return [
            {
                "term": self.treatment,
                **query,
                "estimand": "ATE" if self.one_effect else "CATE",
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
            for query, one in zip(asked, self.effect_facts(), strict=True)
        ]

    def effect_facts(self) -> list[dict[str, Any]]:
        """Return every answer with its error and both its intervals; there are too many for p-values."""
        ends = (*self._interval(self.level), *self._band(self.level))
        columns = (self.std_error, self.sampling, self.noise, *ends)
        rows = zip(*(np.asarray(column).tolist() for column in columns), strict=True)
        return [
            {
                "name": name,
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
            for name, estimate, (total, sampling, noise, low, high, least, most) in zip(
                self._names, self.estimates, rows, strict=not self.one_effect
            )
        ]

    def _shown(self) -> dict[str, Any]:
        errors = {
            "std_error": {
                "total": self.std_error.tolist(),
                "sampling": list(self.sampling),
                "noise": list(self.noise),
            },
        }
        if self.one_effect:
            return errors
        (low, high), (least, most) = self.interval(), self.band()
        return errors | {
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
            "one_effect": self.one_effect,
            "shrunk": list(self.shrunk),
        }

    @classmethod
    @reads_facts
    def from_dict(cls, facts: dict[str, Any]) -> CateAnswers:
        """Return the answers written by `to_dict` or `stored`."""
        parts = (
            facts["queries"],
            facts["estimates"],
            *(facts["std_error"][part] for part in ("sampling", "noise")),
            *([facts["shrunk"]] if facts["shrunk"] else []),
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
            one_effect=facts["one_effect"],
            shrunk=tuple(facts["shrunk"]),
            **provenance_from_dict(facts),
        )

    def save(self, path: str | Path) -> Path:
        """Write the answers as JSON, without any data in it; return the path."""
        return save(self.to_dict(), path)

    @classmethod
    def load(cls, path: str | Path) -> CateAnswers:
        """Return the answers that `save` wrote; another file is refused with CV-P552."""
        return load(path, cls.from_dict, lambda got: no_effects(got, "CateAnswers.save"))


def said_first(effects: Released, one_effect: bool) -> str | None:
    """Return what every rendering of effects says first, None where there is nothing to say."""
    graver = first_words(interval_of=effects.interval_of, condition=effects.condition)
    more = ONE_EFFECT if one_effect and effects.interval_of is None else None
    models = first_words(interval_of=None, assumes=effects.assumes) if graver is None else None
    return "; ".join(text for text in (graver, more, models) if text) or None


def query_name(query: Query) -> str:
    """Return the values of a query as they stand in a table, cut where covariates are many."""
    values = (f"{value:.4g}" if isinstance(value, float) else str(value) for value in query.values())
    said = ", ".join(f"{name} {value}" for name, value in zip(query, values, strict=True))
    return said if len(said) <= _NAME else f"{said[: _NAME - 1]}…"
