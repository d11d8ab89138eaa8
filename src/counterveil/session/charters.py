"""The charter that fits a study, as a steward's first draft."""

from __future__ import annotations

from counterveil.accounting import Charter
from counterveil.data import Study
from counterveil.privacy import Unit


def drafted_charter(study: Study, unit: Unit) -> Charter:
    """Return a charter that permits a study at one level of protection and nothing beyond it."""
    public = study.public_columns if unit is Unit.OUTCOME else ()
    missing = {name: rule for name, rule in study.missing_kinds.items() if name not in public}
    outcomes = study.outcomes if unit is Unit.OUTCOME else None
    # At record level a condition on private columns is permitted by its text.
    subsets = (study.where.text,) if study.where is not None and unit is Unit.RECORD else ()
    return Charter(
        public=public,
        outcomes=outcomes,
        missing=missing,
        protects=(unit,),
        subsets=subsets,
        **study.unit_columns,
    )
