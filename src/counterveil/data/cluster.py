"""Clusters of people whose outcomes depend on each other: schools, clinics, villages."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from counterveil.data.person import Person, declared
from counterveil.errors import Refusal, StudyError, shown

if TYPE_CHECKING:
    from counterveil.data.study import Study


@dataclass(frozen=True, slots=True)
class Cluster:
    """Which rows belong to one cluster, and what is protected.

    Attributes:
        column: the column that names the cluster of a row.
        whole: whether a cluster with all its rows is protected, and reduced to one row; else each row, or person, is.
        assigned: whether whole clusters were assigned to the arms, and which was assigned to which is public.
    """

    column: str
    whole: bool = False
    assigned: bool = False

    def to_dict(self, study: Study) -> dict[str, Any]:
        """Return the declaration as it stands in a study file."""
        flags = {"protected": self.whole, "assigned": self.assigned}
        found: dict[str, Any] = {"column": self.column} | {name: True for name, flag in flags.items() if flag}
        if self.whole:
            assert study.person is not None
            found |= {name: value for name, value in study.person.to_dict(study).items() if name != "column"}
        return found


def declared_cluster(
    study: Study, column: object, whole: object, assigned: object, rules: object, person: object
) -> Cluster | None:
    """Return the declaration, or None where no column names clusters; raises CV-S025 for one that is invalid."""
    if column is None:
        if rules is not None or whole is not False or assigned is not False:
            raise _invalid(
                "cluster= beside protects_cluster=, assigned_by_cluster= and per_cluster=", "no cluster"
            )
        return None
    if not isinstance(column, str) or not column.strip() or column in (*study.columns, person):
        raise _invalid("the name of a column without another role", shown(column))
    for name, flag in (("protects_cluster", whole), ("assigned_by_cluster", assigned)):
        if not isinstance(flag, bool):
            raise _invalid(f"{name}=True or False", shown(flag))
    if whole and person is not None:
        raise _invalid(
            "protects_cluster=True without person=: all rows of a cluster become one",
            f"person={shown(person)}",
        )
    if not whole and rules is not None:
        raise _invalid(
            "per_cluster= with protects_cluster=True, where the rows of a cluster become one", shown(rules)
        )
    return Cluster(column, bool(whole), bool(assigned))


def declared_unit(
    study: Study,
    person: tuple[object, object],
    cluster: tuple[object, object],
    order: object,
    most_rows: object,
) -> Person | None:
    """Return how the rows of a person, or of a cluster that is protected as a whole, become one; None for neither."""
    if study.cluster is None or not study.cluster.whole:
        return declared(study, *person, order, most_rows)
    # Rules for people have no place beside those for clusters: CV-S016.
    declared(study, *person, None, None)
    return declared(study, *cluster, order, most_rows, True)


_invalid = Refusal(
    "CV-S025",
    "the declaration of clusters is invalid",
    expected="{expected}",
    got="{got}",
    fix='for example Study(..., cluster="school"), and protects_cluster=True to protect whole schools',
)


def arguments_of(table: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the arguments of `Study` in the table [cluster] of a study file, None for one that is invalid."""
    whole = table.get("protected") is True
    names = {"column": "cluster", "protected": "protects_cluster", "assigned": "assigned_by_cluster"}
    names |= {"rules": "per_cluster", "order": "order", "most_rows": "most_rows"} if whole else {}
    if "column" not in table or not set(table) <= set(names):
        return None
    return {names[key]: value for key, value in table.items()}


def unit_uses(study: Study) -> dict[str, Any]:
    """Return what a ledger is told about people and clusters, as arguments of `Uses`."""
    person, cluster = study.person, study.cluster
    whole = cluster is not None and cluster.whole
    return {
        "person": None if person is None or whole else person.column,
        "row_order": None if person is None else person.order,
        "cluster": None if cluster is None else cluster.column,
        "whole_cluster": whole,
        "assigned_cluster": cluster is not None and cluster.assigned,
    }


def cluster_in_spark(cluster: Cluster) -> StudyError:
    """Return CV-S017, for rows that stay where they are."""
    return StudyError(
        "CV-S017",
        "rows in Spark are not added up by cluster",
        expected="a file, a frame, a DuckDB relation or a PostgreSQL table",
        got=f"cluster={cluster.column!r} with rows in Spark",
        fix="protect whole clusters, which become one row each: protects_cluster=True; or write the rows to a Parquet "
        "file if your policy allows it",
    )
