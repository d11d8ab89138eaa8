"""What a site's steward allows: decided from the request and the ledger's totals, never from the rows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from counterveil.accounting import Charter
from counterveil.data import Study
from counterveil.errors import ParameterError
from counterveil.federation import refusals
from counterveil.federation.messages import Ask
from counterveil.federation.toml_files import Settings, wrong_setting
from counterveil.privacy import Budget, Unit, exact

AUTOMATIC, BY_HAND = "automatic", "by hand"
_WHAT = "the policy of the site"
_NUMBER = (int, float, str)


@dataclass(frozen=True, slots=True)
class Policy:
    """The rules of one site; all of them are public.

    `study_epsilon` is the most that one study may spend here; the ledger's total bounds all studies together.
    `least_rows` is compared with the number of rows, which is public; no other count is looked at.
    """

    estimators: tuple[str, ...]
    protects: tuple[str, ...]
    least_epsilon: Fraction
    study_epsilon: Fraction
    most_delta: Fraction
    least_rows: int
    approval: str
    diagnostics: bool

    @classmethod
    def from_document(cls, document: Mapping[str, Any]) -> Policy:
        """Return the policy in the table `[policy]` of a site's file, or raise CV-P600."""
        table = Settings(_WHAT, document)
        table.known(*cls.__dataclass_fields__)
        policy = cls(
            estimators=table.texts("estimators", ()),
            protects=table.texts("protects", ("outcome",)),
            least_epsilon=exact(table.get("least_epsilon", _NUMBER, 0), "least_epsilon"),
            study_epsilon=exact(table.get("study_epsilon", _NUMBER), "study_epsilon"),
            most_delta=exact(table.get("most_delta", _NUMBER, 0), "most_delta"),
            least_rows=table.get("least_rows", int, 0),
            approval=table.get("approval", str, AUTOMATIC),
            diagnostics=table.get("diagnostics", bool, False),
        )
        for unit in policy.protects:
            Unit.parse(unit)
        if policy.approval not in (AUTOMATIC, BY_HAND):
            raise wrong_setting(_WHAT, f'approval: "{AUTOMATIC}" or "{BY_HAND}"', repr(policy.approval))
        return policy

    def to_document(self) -> dict[str, Any]:
        """Return the policy as a table of a TOML file."""
        return {
            "estimators": list(self.estimators),
            "protects": list(self.protects),
            "least_epsilon": str(self.least_epsilon),
            "study_epsilon": str(self.study_epsilon),
            "most_delta": str(self.most_delta),
            "least_rows": self.least_rows,
            "approval": self.approval,
            "diagnostics": self.diagnostics,
        }

    def charter(self, study: Study) -> Charter:
        """Return the charter of the site's account; of this policy only the levels are in it, the rest may change."""
        public = (study.treatment, *study.covariates) if Unit.OUTCOME in self.protects else ()
        missing = {name: rule for name, rule in study.missing_kinds.items() if name not in public}
        return Charter(public=public, outcomes=(study.outcome,), missing=missing, protects=self.protects)

    def check(self, ask: Ask, spent: Fraction) -> None:
        """Raise the refusal of a question that this policy does not allow; `spent` is what its study spent here."""
        if ask.method not in self.estimators or ask.protects not in self.protects:
            raise refusals.RefusedError(refusals.NOT_ALLOWED)
        try:
            budget = Budget(ask.epsilon, ask.delta)
        except ParameterError:
            raise refusals.RefusedError(refusals.OUTSIDE_POLICY) from None
        if budget.epsilon < self.least_epsilon or budget.delta > self.most_delta:
            raise refusals.RefusedError(refusals.OUTSIDE_POLICY)
        if spent + budget.epsilon > self.study_epsilon:
            raise refusals.RefusedError(refusals.OUTSIDE_POLICY)
