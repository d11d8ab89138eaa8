"""Which columns of a study answers may show exactly at a level of protection, and what is declared of each."""

from __future__ import annotations

from dataclasses import dataclass

from counterveil.data.domains import Domain, Label, listed
from counterveil.data.study import Study
from counterveil.privacy import Unit


@dataclass(frozen=True, slots=True)
class PublicColumn:
    """A column of which answers may show every value.

    Attributes:
        name: of the column.
        role: "treatment", "covariate", "person", "row order", "cluster" or "subset".
        values: the declared labels of a treatment, the declared domain of a covariate, None where none is declared.
    """

    name: str
    role: str
    values: Domain | tuple[Label, ...] | None = None

    def words(self) -> str:
        """Return the column with what is declared of it, as a sentence names both."""
        if self.values is None:
            return f"{self.name!r} ({self.role})"
        if isinstance(self.values, tuple):
            return f"{self.name!r} (treatment: {listed([repr(label) for label in self.values])})"
        return f"{self.name!r} {self.values.words()}"


def public_columns(study: Study, unit: Unit) -> tuple[PublicColumn, ...]:
    """Return the columns that become public where `unit` is protected, in the order in which they are read."""
    beside: dict[str, str] = {} if study.where is None else dict.fromkeys(study.where.columns, "subset")
    beside |= {} if study.cluster is None else {study.cluster.column: "cluster"}
    if study.person is not None:
        beside |= dict.fromkeys(study.person.columns, "row order") | {study.person.column: "person"}
    found = []
    for name in study.public_columns(unit):
        if name == study.treatment:
            found.append(PublicColumn(name, "treatment", study.treatment_labels or None))
        elif name in study.covariates:
            found.append(PublicColumn(name, "covariate", study.covariates[name]))
        else:
            found.append(PublicColumn(name, beside.get(name, "subset")))
    return tuple(found)
