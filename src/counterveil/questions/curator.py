"""`Curator`: several questions against one budget."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from counterveil.accounting import Remaining
from counterveil.data.labels import Label
from counterveil.privacy import Number, Unit
from counterveil.questions.arms import asked_arms
from counterveil.questions.asking import ask_of
from counterveil.questions.ate import asked_ate
from counterveil.questions.cate.cate import asked_cate
from counterveil.questions.event_study import asked_event_study
from counterveil.questions.groups.groups import asked_groups
from counterveil.questions.groups.question import By
from counterveil.questions.interim import answer_look
from counterveil.questions.moments import asked_moments
from counterveil.questions.outcomes import asked_outcomes
from counterveil.questions.overlap import asked_overlap
from counterveil.questions.policy.policy import EffectModel, asked_policy_value, asked_targeting_curve
from counterveil.questions.survival import asked_survival
from counterveil.results import (
    ArmsResult,
    CateAnswers,
    CateModel,
    EventStudyResult,
    GroupsResult,
    Moments,
    OutcomesResult,
    PolicyValue,
    Result,
    TargetingCurve,
)
from counterveil.results.overlap import OverlapSummary
from counterveil.results.survival import SurvivalResult
from counterveil.session import Session
from counterveil.settings import Arms, DifferenceInMeans, Groups, Matching, Survival, Weighting
from counterveil.settings.ranges import Settings


class Curator(Session):
    """Holds a table and its budget; every question asked of it is charged to the same ledger.

    Args:
        source: the data, as for `counterveil.ate`; they are attached once.
        study: column roles, public bounds and categories.
        budget: total budget; needed if the data set is not registered yet, otherwise omitted or the same.
        ledger: path or URL of an existing ledger, or a `Ledger`; None keeps one in memory for this curator.
        dataset: account in the ledger; if omitted, its only account, or "data" in a new one.
        noise: `SeededNoise(seed)` for tests and experiments; results are then marked as simulated.
        attach: False leaves the rows unread until a question needs them.
        analyst: who asks, as the ledger records it; None is the operating system's user.
        charter: what an account that is registered here permits; for an existing one omitted or the same.
    """

    def ate(
        self,
        *,
        protects: str,
        epsilon: Number,
        delta: Number = 0,
        method: str = "auto",
        estimand: str | None = None,
        level: float = 0.95,
        mechanism: str | None = None,
        settings: Settings | None = None,
        trim: float | str | None = None,
        measure: str = "difference",
        request_id: str | None = None,
    ) -> Result:
        """Return the private average treatment effect; see `counterveil.ate` for the arguments."""
        return ask_of(self, asked_ate, locals())

    def look(
        self,
        number: int,
        *,
        protects: str,
        method: str = "auto",
        estimand: str | None = None,
        mechanism: str | None = None,
        settings: Settings | None = None,
    ) -> Result:
        """Return the effect at a planned look; see `counterveil.interim.look` for the arguments."""
        asked = {"protects": protects, "method": method, "estimand": estimand}
        return answer_look(self, number, **asked, mechanism=mechanism, settings=settings)

    def arms(
        self,
        *,
        protects: str,
        epsilon: Number,
        delta: Number = 0,
        method: str = "auto",
        level: float = 0.95,
        mechanism: str | None = None,
        settings: Arms | None = None,
        request_id: str | None = None,
    ) -> ArmsResult:
        """Return the private effects of several arms; see `counterveil.arms` for the arguments."""
        return ask_of(self, asked_arms, locals())

    def cate(
        self,
        *,
        protects: str = "record",
        epsilon: Number,
        delta: Number | None = None,
        method: str = "auto",
        level: float = 0.95,
        queries: Any = None,
        settings: Settings | None = None,
        request_id: str | None = None,
    ) -> CateModel | CateAnswers:
        """Return the private effect as a function; see `counterveil.cate` for the arguments."""
        return ask_of(self, asked_cate, locals())

    def event_study(
        self,
        *,
        protects: str,
        epsilon: Number,
        delta: Number = 0,
        reference: Label | None = None,
        method: str = "auto",
        estimand: str | None = None,
        level: float = 0.95,
        mechanism: str | None = None,
        settings: DifferenceInMeans | Matching | Weighting | None = None,
        request_id: str | None = None,
    ) -> EventStudyResult:
        """Return the private effects by period; see `counterveil.event_study` for the arguments."""
        return ask_of(self, asked_event_study, locals())

    def groups(
        self,
        *,
        by: By,
        protects: str,
        epsilon: Number,
        delta: Number = 0,
        method: str = "auto",
        level: float = 0.95,
        mechanism: str | None = None,
        settings: DifferenceInMeans | Groups | Matching | Weighting | None = None,
        request_id: str | None = None,
    ) -> GroupsResult:
        """Return the private effects of public groups; see `counterveil.groups` for the arguments."""
        return ask_of(self, asked_groups, locals())

    def outcomes(
        self,
        *,
        protects: str,
        epsilon: Number,
        delta: Number = 0,
        method: str = "auto",
        estimand: str = "ATE",
        measure: str = "difference",
        importance: Mapping[str, Number] | None = None,
        level: float = 0.95,
        mechanism: str | None = None,
        settings: Arms | DifferenceInMeans | Matching | Weighting | None = None,
        request_id: str | None = None,
    ) -> OutcomesResult:
        """Return the private effects on several outcomes; see `counterveil.outcomes` for the arguments."""
        return ask_of(self, asked_outcomes, locals())

    def moments(
        self,
        *,
        protects: str = "record",
        epsilon: Number,
        delta: Number = 0,
        outcomes: Sequence[str] = (),
        interactions: Sequence[str] = (),
        level: float = 0.95,
        mechanism: str | None = None,
        request_id: str | None = None,
    ) -> Moments:
        """Return private second moments for free regressions; see `counterveil.moments` for the arguments."""
        return ask_of(self, asked_moments, locals())

    def overlap(
        self,
        *,
        protects: str = "record",
        epsilon: Number,
        delta: Number = 0,
        level: float = 0.95,
        mechanism: str | None = None,
        request_id: str | None = None,
    ) -> OverlapSummary:
        """Return how alike private arms are; see `counterveil.overlap` for the arguments."""
        return ask_of(self, asked_overlap, locals())

    def policy_value(
        self,
        *,
        policy: Any,
        cost: Number | None = None,
        protects: str = "record",
        epsilon: Number,
        delta: Number = 0,
        method: str = "auto",
        level: float = 0.95,
        settings: Groups | None = None,
        request_id: str | None = None,
    ) -> PolicyValue:
        """Return what a public rule gains; see `counterveil.policy_value` for the arguments."""
        return ask_of(self, asked_policy_value, locals())

    def survival(
        self,
        *,
        protects: str,
        epsilon: Number,
        delta: Number = 0,
        method: str = "auto",
        level: float = 0.95,
        mechanism: str | None = None,
        settings: Survival | None = None,
        request_id: str | None = None,
    ) -> SurvivalResult:
        """Return private survival curves and restricted means; see `counterveil.survival` for the arguments."""
        return ask_of(self, asked_survival, locals())

    def targeting_curve(
        self,
        *,
        model: EffectModel,
        bins: int = 10,
        thresholds: Sequence[float] | None = None,
        cost: Number = 0,
        protects: str = "record",
        epsilon: Number,
        delta: Number = 0,
        method: str = "auto",
        level: float = 0.95,
        settings: Groups | None = None,
        request_id: str | None = None,
    ) -> TargetingCurve:
        """Return what treating the highest ranked gains; see `counterveil.targeting_curve` for the arguments."""
        return ask_of(self, asked_targeting_curve, locals())

    def remaining(self, protects: str = "outcome") -> Remaining:
        """Return what requests at a level of protection can still ask for; those that protect records may have less."""
        return self.account().left(Unit.parse(protects))
