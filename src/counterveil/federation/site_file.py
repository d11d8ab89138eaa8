"""A site's own folder: its settings, and where its ledger, keys and answers lie."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

from counterveil.accounting import Charter
from counterveil.data import Study
from counterveil.errors import ParameterError
from counterveil.federation import messages as refusals
from counterveil.federation.files import (
    Settings,
    check_address,
    check_name,
    check_private,
    read_settings,
    wrong_setting,
)
from counterveil.federation.messages import Ask
from counterveil.privacy import Budget, Unit, exact

# What a site's steward allows: decided from the request and the ledger's totals, never from the rows.


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


FILE = "site.toml"
_DATABASES = ("postgresql://", "postgres://")


@dataclass(frozen=True, slots=True)
class SiteFile:
    """The settings of one site; relative paths start at its folder."""

    folder: Path
    name: str
    data: str
    table: str | None
    ledger: str
    dataset: str
    coordinator: str
    policy: Policy

    @classmethod
    def read(cls, folder: Path) -> SiteFile:
        """Return the settings in a site's folder, or raise CV-P600; CV-F045 where others can open it."""
        check_private(folder, folder / FILE, folder / "keys")
        table = Settings("the site's file", read_settings(folder / FILE, "the site's file"))
        table.known("name", "data", "table", "ledger", "dataset", "coordinator", "policy")
        return cls(
            folder=folder,
            name=check_name(table.get("name", str)),
            data=_place(folder, table.get("data", str)),
            table=table.get("table", str, "") or None,
            ledger=_place(folder, table.get("ledger", str, "ledger.db")),
            dataset=table.get("dataset", str, "records"),
            coordinator=check_address(table.get("coordinator", str)),
            policy=Policy.from_document(table.get("policy", dict)),
        )

    def to_document(self) -> dict[str, Any]:
        """Return the settings as the tables of a TOML file."""
        facts: dict[str, Any] = {
            "name": self.name,
            "data": self.data,
            "ledger": self.ledger,
            "dataset": self.dataset,
            "coordinator": self.coordinator,
        }
        facts |= {"table": self.table} if self.table else {}
        return facts | {"policy": self.policy.to_document()}

    @property
    def declaration(self) -> Path:
        """The site's own declaration of roles, bounds and categories."""
        return self.folder / "declaration.toml"

    @property
    def answers(self) -> Path:
        """Where answers and waiting requests are kept."""
        return self.folder / "answers"

    @property
    def keys(self) -> Path:
        """Where the node's key, the coordinator's certificate and the local certificates are kept."""
        return self.folder / "keys"


def _place(folder: Path, place: str) -> str:
    return place if place.startswith(_DATABASES) else str(folder / place)
