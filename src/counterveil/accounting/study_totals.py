"""Running totals of studies: what the requests called `study@...` cost together, by face value.

A site of a federation limits what one study may spend. The newest reserve entry of a study carries the sum, so that
looking it up costs the same however many requests there were.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from counterveil.accounting.chain import study_of, unseal
from counterveil.accounting.rounding import shorten_up
from counterveil.accounting.store import Store
from counterveil.privacy import Charge, read_written, written


def study_spent(
    store: Store, dataset: str, study: str, before: int | None = None
) -> tuple[Fraction, Fraction]:
    """Return the epsilon and delta that a study was charged, or was charged before an entry."""
    row = store.latest_of_study(dataset, study, before) if study else None
    return (Fraction(0), Fraction(0)) if row is None else read_total(unseal(row)["study"])


def read_total(facts: dict[str, Any]) -> tuple[Fraction, Fraction]:
    """Return the two sums of a written total."""
    return read_written(facts["epsilon"]), read_written(facts["delta"])


def study_total(spent: tuple[Fraction, Fraction], request_id: str, charge: Charge) -> dict[str, str] | None:
    """Return the total after one more charge as facts, None for a request that belongs to no study."""
    if not study_of(request_id):
        return None
    epsilon, delta = spent[0] + charge.face.epsilon, spent[1] + charge.face.delta
    return {"epsilon": written(shorten_up(epsilon)), "delta": written(shorten_up(delta))}
