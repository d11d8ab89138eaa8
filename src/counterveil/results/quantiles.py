"""The answer about whole distributions: quantiles of both arms, their differences, and distribution functions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from counterveil.errors import refusal
from counterveil.inference.crossings import Crossing, CrossingGap
from counterveil.inference.distributions import NoisyHistograms, distributions_of
from counterveil.inference.survival import Complement, Gap, SurvivalAnswers
from counterveil.numerics.arrays import Ends
from counterveil.privacy.caveats import Caveat
from counterveil.results.effect import Effect, check_level
from counterveil.results.question import Question, adjusted_caveats, causal_caveats
from counterveil.results.released import ReleasedAnswer
from counterveil.results.survival import OpenEnded, check_arm, check_share, said
from counterveil.session import BaseSession


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class QuantilesResult(ReleasedAnswer):
    """Released counts of outcomes by cell, and all that follows from them; nothing it does spends budget.

    Effects are differences of both arms' quantiles at the `shares` that were asked for, treated minus control. Arms are
    "treated" and "control". Other shares, and distribution functions at the edges of cells, are free.
    """

    histograms: NoisyHistograms
    shares: tuple[float, ...]

    @property
    def edges(self) -> tuple[float, ...]:
        """The edges of the cells."""
        return self.histograms.edges

    @property
    def _answers(self) -> SurvivalAnswers:
        return distributions_of(self.histograms)

    def quantile(self, arm: str, share: float = 0.5) -> Effect:
        """Return the value below which a share of an arm's outcomes lies."""
        return Effect(f"{100 * share:g} % quantile, {arm}", OpenEnded(self._crossing(arm, share)), self.level)

    def quantile_difference(self, share: float = 0.5) -> Effect:
        """Return the difference of both arms' quantiles, treated minus control."""
        return self._difference(share, 1)

    def _difference(self, share: float, several: int) -> Effect:
        gap = CrossingGap(self._crossing("treated", share), self._crossing("control", share))
        return Effect(f"{100 * share:g} % quantile", OpenEnded(gap), self.level, several)

    def _crossing(self, arm: str, share: float) -> Crossing:
        return Crossing(self._answers, check_arm(arm), 1 - check_share(share))

    def distribution(self, arm: str, value: float) -> Effect:
        """Return the share of an arm's outcomes below an edge of a cell."""
        known = Complement(self._answers.at(check_arm(arm), self._place(value)))
        return Effect(f"below {value:g}, {arm}", known, self.level)

    def distribution_difference(self, value: float) -> Effect:
        """Return the difference of both arms' shares of outcomes below an edge of a cell, treated minus control."""
        gap = self._answers.gap(self._place(value))
        return Effect(f"below {value:g}", Gap(gap.other, gap.one, gap.shared), self.level)

    def bands(self, level: float | None = None) -> list[dict[str, Any]]:
        """Return a row for every inner edge: difference of distribution functions, interval, and band for all edges."""
        wide = self._answers.band_level(self.level if level is None else check_level(level), (0, 1))
        return [self._band(edge, level, wide) for edge in self.edges[1:-1]]

    def _band(self, edge: float, level: float | None, wide: float) -> dict[str, Any]:
        one = self.distribution_difference(edge)
        names = ("low", "high", "band_low", "band_high")
        ends = dict(zip(names, (*one.interval(level), *one.interval(wide)), strict=True))
        return {"value": edge, "estimate": one.estimate} | ends

    def quantile_band(self, shares: tuple[float, ...], level: float | None = None) -> list[dict[str, Any]]:
        """Return a row for every share: difference of quantiles, and a band that holds at all shares at once.

        Each arm's band has half of the error, so the differences hold together.
        """
        chosen = 1 - (1 - (self.level if level is None else check_level(level))) / 2
        wide = [self._answers.band_level(chosen, (arm,)) for arm in (0, 1)]
        found = []
        for share in shares:
            one = self.quantile_difference(share)
            (least, most), (low, high) = (
                self._crossing(arm, share).interval(own)
                for arm, own in zip(("control", "treated"), wide, strict=True)
            )
            ends = {"band_low": low - most, "band_high": high - least}
            found.append({"share": share, "estimate": one.estimate} | ends)
        return found

    def _place(self, value: float) -> int:
        if value in self.edges:
            return self.edges.index(value)
        raise refusal("CV-P690", times=", ".join(f"{one:g}" for one in self.edges), time=value)

    @property
    def table(self) -> tuple[Effect, ...]:
        """The differences of quantiles at the shares that were asked for."""
        return tuple(self._difference(share, len(self.shares)) for share in self.shares)

    def interval(self, level: float | None = None, simultaneous: bool = False) -> dict[str, Ends]:
        """Return the intervals of the differences by name; with `simultaneous`, they hold together."""
        return {str(one.name): one.interval(level, simultaneous) for one in self.table}

    def _check(self) -> None:
        ReleasedAnswer._check(self)
        if not self.shares:
            raise ValueError("no shares")
        for share in self.shares:
            check_share(share)

    def _columns(self) -> list[dict[str, Any]]:
        return [
            {"contrast": one.name, "share": share} for one, share in zip(self.table, self.shares, strict=True)
        ]

    def _shown(self) -> dict[str, Any]:
        return {
            "title": f"Effect of {self.treatment} on the distribution of {self.outcome}",
            "sentence": "treated minus control, for everyone in the study: values below which a share of outcomes lies",
            "effects": [one.facts() for one in self.table],
            "notes": [
                (
                    f"{100 * share:g} % quantile",
                    "; ".join(said(self.quantile(arm, share), arm) for arm in ("treated", "control")),
                )
                for share in self.shares
            ],
        }


def quantiles_result(
    session: BaseSession,
    question: Question,
    histograms: NoisyHistograms,
    page: str,
    shares: tuple[float, ...],
) -> QuantilesResult:
    """Return the answer made of released counts."""
    study, noise = session.study, "laplace" if histograms.heavy else "gaussian"
    weighted = question.method == "weighting"
    caveats = adjusted_caveats(study) if weighted else causal_caveats(study, question.estimand)
    bound = (2.0, "sum of changes") if histograms.heavy else (2**0.5, "length of the change")
    return QuantilesResult(
        histograms=histograms,
        shares=shares,
        guarantee=question.guarantee(session, page, mechanisms=(noise,)),
        method="quantiles of each arm",
        **question.terms(study),
        releases=(("counts of outcomes", f"{bound[1]} {bound[0]:.4g}"),),
        not_covered=(*caveats, Caveat.UNEVEN_WITHIN_CELLS),
        details={"rows": session.batches.rows, "cells": len(histograms.edges) - 1, "mechanism": noise},
    )
