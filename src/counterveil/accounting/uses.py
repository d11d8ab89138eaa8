"""What a request uses, to be compared with the charter of its account."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from types import MappingProxyType
from typing import Any

from counterveil.errors import LedgerError
from counterveil.privacy import Unit

MOST_NAMES = 10_000
LONGEST_NAME = 200
_LISTS = ("covariates", "more_outcomes", "subsets", "subset_columns")


@dataclass(frozen=True, slots=True)
class Uses:
    """What one request uses: columns by role, missing rules, level, method and whether its form is proved."""

    unit: Unit
    question: str
    method: str
    treatment: str
    outcome: str
    covariates: tuple[str, ...] = ()
    missing: Mapping[str, str] = field(default_factory=dict)
    order: str | None = None
    unproved: bool = False
    # The column that identifies people with several rows, and the one that puts their rows in order.
    person: str | None = None
    row_order: str | None = None
    # The column that names clusters, whether whole clusters are protected, and whether each is in one arm.
    cluster: str | None = None
    whole_cluster: bool = False
    assigned_cluster: bool = False
    # Private columns that the outcome is compared with or divided by: as private as the outcome.
    more_outcomes: tuple[str, ...] = ()
    # By what rows are chosen, a condition or periods, and the columns that this looks at.
    subsets: tuple[str, ...] = ()
    subset_columns: tuple[str, ...] = ()
    # Which of the planned looks this is, from 1 on; None for other requests.
    look: int | None = None

    def __post_init__(self) -> None:
        _check_columns((*self.columns, *self._beside))
        for name in _LISTS:
            object.__setattr__(self, name, tuple(getattr(self, name)))
        object.__setattr__(self, "missing", MappingProxyType(dict(self.missing)))

    @property
    def columns(self) -> tuple[str, ...]:
        """All columns of the study: treatment, outcomes, covariates."""
        return (self.treatment, *self.outcomes, *self.covariates)

    @property
    def outcomes(self) -> tuple[str, ...]:
        """The columns that outcomes are made of."""
        return (self.outcome, *self.more_outcomes)

    @property
    def read(self) -> tuple[str, ...]:
        """All columns that are read, in whatever role."""
        return (*self.columns, *self._beside, *(() if self.order is None else (self.order,)))

    @property
    def made_public(self) -> tuple[str, ...]:
        """The columns whose exact values the answer may show: none where whole records are protected."""
        return (self.treatment, *self.covariates, *self._beside) if self.unit is Unit.OUTCOME else ()

    @property
    def _beside(self) -> tuple[str, ...]:
        """The columns of people, of their order and clusters, and those that choose rows."""
        known = (self.person, self.row_order, self.cluster)
        return (*(name for name in known if name is not None), *self.subset_columns)

    @property
    def protected_cluster(self) -> str | None:
        """The column of the clusters that are protected as a whole, if any are."""
        return self.cluster if self.whole_cluster else None

    @property
    def named_cluster(self) -> str | None:
        """The column of clusters of protected people: which clusters there are is shown."""
        return None if self.whole_cluster else self.cluster

    def to_dict(self) -> dict[str, object]:
        """Return the facts as they stand in a ledger."""
        own = {each.name: getattr(self, each.name) for each in fields(self)}
        changed = {"unit": self.unit.value, "missing": dict(self.missing)}
        return own | changed | {name: list(getattr(self, name)) for name in _LISTS}

    @classmethod
    def from_dict(cls, facts: Mapping[str, Any]) -> Uses:
        """Return what `to_dict` wrote."""
        return cls(**{**facts, "unit": Unit(facts["unit"])})

    def __hash__(self) -> int:
        # Read-only mappings have no hash.
        return hash((self.unit, self.question, self.method, self.treatment, self.outcome, self.covariates))

    def __reduce__(self) -> tuple[object, ...]:
        # Read-only mappings do not pickle.
        return (Uses.from_dict, (self.to_dict(),))


def usable(name: object, longest: int = LONGEST_NAME) -> bool:
    """Return whether a name of a column or method can be written down and read back."""
    if not isinstance(name, str) or not name.strip() or len(name) > longest:
        return False
    return name.isascii() or not any("\ud800" <= character <= "\udfff" for character in name)


def _check_columns(columns: tuple[object, ...]) -> None:
    """Raise CV-L048 where the columns of a study cannot be written into a ledger."""
    wrong = next((name for name in columns if not usable(name)), None)
    if wrong is not None or len(columns) > MOST_NAMES:
        raise LedgerError(
            "CV-L048",
            "the columns of this study cannot be written into a ledger",
            expected=f"at most {MOST_NAMES} columns with names of 1 to {LONGEST_NAME} characters",
            got=f"{len(columns)} columns" if wrong is None else repr(wrong)[:LONGEST_NAME],
            fix="rename or leave out columns; the ledger keeps the names of the columns that a request uses",
        )
