"""Effects at a finite set of queries: an answer and an interval for each, one promise for all."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import log, sqrt
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import chdtri, ndtri

from counterveil.data.labels import Label
from counterveil.inference import level_of_each
from counterveil.privacy import Budget, Guarantee
from counterveil.report.text import Cells, percent, rounded, span, summary_items, text_table, wrapped
from counterveil.results.estimated import check_level
from counterveil.results.result import Answered, answer_facts, answer_from_dict, opening_facts, promise_row
from counterveil.results.saved import load, no_effects, reads_facts, save

# Answers at queries as plain text: a table of the first of them, then the promise and its price in words.


_SHOWN = 12


def answers_text(facts: dict[str, Any]) -> str:
    """Return the answers as text; only the first dozen queries are shown."""
    lines = [
        line for key in ("warning", "caution") if facts.get(key) for line in wrapped(f"*** {facts[key]} ***")
    ]
    lines += [
        f"Effect of {facts['treatment']} on {facts['outcome']} at {len(facts['queries'])} queries",
        *wrapped(facts["method"]),
        *text_table(_cells(facts)),
    ]
    left = len(facts["queries"]) - _SHOWN
    lines += [f"... and {left} more"] if left > 0 else []
    covers = (
        'each interval covers sampling error and privacy noise together; those "for all" hold for all queries'
    )
    return "\n".join([*lines, *summary_items(facts, covers)])


def _cells(facts: dict[str, Any]) -> Cells:
    level = percent(facts["level"])
    names = list(facts["queries"][0]) if facts["queries"] else []
    headings = [*names, "effect", "std. error", f"{level} interval", f"{level} for all"]
    rows = []
    for place, query in enumerate(facts["queries"][:_SHOWN]):
        error = facts["std_error"]["total"][place]
        shown = [f"{value:.4g}" if isinstance(value, float) else str(value) for value in query.values()]
        ends = [
            span({end: facts[kind][end][place] for end in ("low", "high")}, error)
            for kind in ("interval", "simultaneous_interval")
        ]
        rows.append([*shown, rounded(facts["estimates"][place], error), rounded(error, error), *ends])
    return Cells(headings, rows)


Floats = NDArray[np.float64]
Query = dict[str, float | Label]


@dataclass(frozen=True, slots=True)
class CateAnswers(Answered):
    """Released effects at public queries; nothing in it is private any more and nothing it does spends budget.

    `sampling` and `noise` are standard deviations, one a query. `distinct` says how many different answers
    there are (queries in one bin share one) and `rank` how many released numbers they are made of.
    `noise_tail` is "normal" or "laplace". `interval_of` is None where the intervals are for the effect;
    otherwise it says what they are for instead, and every rendering starts by saying so.
    """

    queries: tuple[Query, ...]
    estimates: tuple[float, ...]
    sampling: tuple[float, ...]
    noise: tuple[float, ...]
    guarantee: Guarantee
    spent: Budget
    method: str
    treatment: str
    outcome: str
    level: float
    releases: tuple[tuple[str, str], ...]
    not_covered: tuple[str, ...]
    distinct: int
    rank: int
    noise_tail: str = "normal"
    details: dict[str, float | str] = field(default_factory=dict)
    interval_of: str | None = None

    @property
    def caution(self) -> str | None:
        """What every rendering says first: that no interval is for the effect."""
        if self.interval_of is None:
            return None
        return f"NO VALID INTERVAL FOR THE EFFECT: the intervals are for {self.interval_of}"

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
        # Exact for normal noise; for the sum of a normal and a Laplace law it errs on the long side.
        normal = -float(ndtri((1 - level) / 2))
        own = normal if self.noise_tail == "normal" else max(normal, -log(1 - level) / sqrt(2))
        return np.hypot(normal * np.array(self.sampling), own * np.array(self.noise))

    def _around(self, half: Floats) -> tuple[Floats, Floats]:
        return self.effect() - half, self.effect() + half

    def tidy(self) -> list[dict[str, Any]]:
        """Return one row a query with the names that `broom` uses, ready for a data frame."""
        low, high = self.interval()
        least, most = self.band()
        shared = {"conf.level": self.level, "conf.of": self.interval_of or "the effect"}
        shared |= promise_row(self.guarantee, self.spent)
        return [
            {
                "term": self.treatment,
                **query,
                "estimate": self.estimates[place],
                "std.error": float(self.std_error[place]),
                "std.error.sampling": self.sampling[place],
                "std.error.noise": self.noise[place],
                "conf.low": float(low[place]),
                "conf.high": float(high[place]),
                "conf.low.simultaneous": float(least[place]),
                "conf.high.simultaneous": float(most[place]),
                **shared,
            }
            for place, query in enumerate(self.queries)
        ]

    def to_dict(self) -> dict[str, Any]:
        """Return everything as JSON-ready facts; `CateAnswers.from_dict` reads them back."""
        low, high = self.interval()
        least, most = self.band()
        facts = opening_facts(self.guarantee, caution=self.caution, interval_of=self.interval_of)
        return (
            facts
            | answer_facts(self)
            | {
                **self._released(),
                "std_error": {
                    "total": self.std_error.tolist(),
                    "sampling": list(self.sampling),
                    "noise": list(self.noise),
                },
                "interval": {"level": self.level, "low": low.tolist(), "high": high.tolist()},
                "simultaneous_interval": {"level": self.level, "low": least.tolist(), "high": most.tolist()},
            }
        )

    def stored(self) -> dict[str, Any]:
        """Return what the ledger keeps: numbers as released and public parameters, from which all else follows."""
        own = {"std_error": {"sampling": list(self.sampling), "noise": list(self.noise)}}
        return answer_facts(self) | self._released() | own | {"interval_of": self.interval_of}

    def _released(self) -> dict[str, Any]:
        return {
            "queries": [dict(query) for query in self.queries],
            "estimates": list(self.estimates),
            "distinct": self.distinct,
            "rank": self.rank,
            "noise_tail": self.noise_tail,
        }

    @classmethod
    @reads_facts
    def from_dict(cls, facts: dict[str, Any]) -> CateAnswers:
        """Return the answers written by `to_dict` or `stored`."""
        return cls(
            queries=tuple(dict(query) for query in facts["queries"]),
            estimates=tuple(facts["estimates"]),
            sampling=tuple(facts["std_error"]["sampling"]),
            noise=tuple(facts["std_error"]["noise"]),
            distinct=facts["distinct"],
            rank=facts["rank"],
            noise_tail=facts["noise_tail"],
            interval_of=facts.get("interval_of"),
            **answer_from_dict(facts),
        )

    def save(self, path: str | Path) -> Path:
        """Write the answers as JSON, without any data in it; return the path."""
        return save(self.to_dict(), path)

    @classmethod
    def load(cls, path: str | Path) -> CateAnswers:
        """Return the answers that `save` wrote; another file is refused with CV-P552."""
        return load(path, cls.from_dict, lambda got: no_effects(got, "CateAnswers.save"))

    def __str__(self) -> str:
        return answers_text(self.to_dict())
