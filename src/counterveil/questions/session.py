"""`Session`: several questions against one budget."""

from __future__ import annotations

from typing import Any

from counterveil.accounting import Remaining
from counterveil.privacy import Unit
from counterveil.questions.arms import ArmsArguments
from counterveil.questions.asking import Arguments, method_of
from counterveil.questions.ate import AteArguments
from counterveil.questions.cate import CateArguments
from counterveil.questions.choices import AteMethod, EstimandName, Mechanism, Protects
from counterveil.questions.event_study import EventStudyArguments
from counterveil.questions.groups import GroupsArguments
from counterveil.questions.interim import answer_look
from counterveil.questions.moments import MomentsArguments
from counterveil.questions.outcomes import OutcomesArguments
from counterveil.questions.overlap import OverlapArguments
from counterveil.questions.policy import PolicyValueArguments, TargetingCurveArguments
from counterveil.questions.quantiles import QuantilesArguments
from counterveil.questions.survival import SurvivalArguments
from counterveil.results.result import Result
from counterveil.session import BaseSession
from counterveil.settings.methods import Settings

# Every question by its name.
QUESTIONS: dict[str, type[Arguments[Any]]] = {
    kind.name: kind
    for kind in (
        AteArguments,
        ArmsArguments,
        OutcomesArguments,
        GroupsArguments,
        EventStudyArguments,
        CateArguments,
        PolicyValueArguments,
        TargetingCurveArguments,
        SurvivalArguments,
        QuantilesArguments,
        MomentsArguments,
        OverlapArguments,
    )
}


class Session(BaseSession):
    """Holds a table and its budget; every question asked of it is charged to the same ledger.

    Args:
        source: the data, as for `counterveil.ate`; they are attached once.
        study: column roles, public bounds and categories.
        budget: total budget; needed if the data set is not registered yet, otherwise omitted or the same.
        ledger: path or URL of an existing ledger, or a `Ledger`; None keeps one in memory for this session.
        dataset: account in the ledger; if omitted, its only account, or "data" in a new one.
        noise: `SeededNoise(seed)` for tests and experiments; results are then marked as simulated.
        attach: False leaves the rows unread until a question needs them.
        analyst: who asks, as the ledger records it; None is the operating system's user.
        access_policy: what an account that is registered here permits; for an existing one omitted or the same.
    """

    # They take the fields of their classes as keyword arguments.
    ate = method_of(AteArguments)
    arms = method_of(ArmsArguments)
    cate = method_of(CateArguments)
    event_study = method_of(EventStudyArguments)
    groups = method_of(GroupsArguments)
    outcomes = method_of(OutcomesArguments)
    moments = method_of(MomentsArguments)
    overlap = method_of(OverlapArguments)
    policy_value = method_of(PolicyValueArguments)
    quantiles = method_of(QuantilesArguments)
    survival = method_of(SurvivalArguments)
    targeting_curve = method_of(TargetingCurveArguments)

    def look(
        self,
        number: int,
        *,
        protects: Protects,
        method: AteMethod = "auto",
        estimand: EstimandName | None = None,
        mechanism: Mechanism | None = None,
        settings: Settings | None = None,
    ) -> Result:
        """Return the effect at a planned look; see `counterveil.interim.look` for the arguments."""
        return answer_look(self, number, protects, method, estimand, mechanism, settings)

    def remaining(self, protects: Protects = "outcome") -> Remaining:
        """Return what requests at a level of protection can still ask for; those that protect records may have less."""
        return self.account().left(Unit.parse(protects))
