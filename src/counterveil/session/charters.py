"""The charter that fits a study, as a steward's first draft."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from counterveil.accounting import Charter
from counterveil.data import Study
from counterveil.privacy import Unit


def drafted_charter(study: Study, unit: Unit) -> Charter:
    """Return a charter that permits a study at one level of protection and nothing beyond it."""
    public = study.public_columns if unit is Unit.OUTCOME else ()
    missing = {name: rule for name, rule in study.missing_kinds.items() if name not in public}
    outcomes = study.outcomes if unit is Unit.OUTCOME else None
    return Charter(
        public=public,
        outcomes=outcomes,
        missing=missing,
        protects=(unit,),
        **shown_at_record_level(study, (unit,)),
        **study.unit_columns,
    )


def shown_at_record_level(study: Study, levels: Iterable[str]) -> dict[str, Any]:
    """Return what a study shows of private columns, as arguments of a charter: chosen rows by text, and clusters."""
    if Unit.RECORD not in levels:
        return {}
    assigned = study.cluster is not None and study.cluster.assigned
    return {"subsets": study.subsets, "assigned_clusters" if assigned else "clusters": study.cluster_columns}
