"""What stratified results say about themselves."""

from __future__ import annotations

from counterveil.data import Study
from counterveil.privacy import Estimand

_PEOPLE = {
    Estimand.ATE: "everyone",
    Estimand.ATT: "the treated",
    Estimand.ATC: "the untreated",
}


def population(estimand: Estimand, limit: float | None) -> str:
    """Return for whom the effect speaks, as a caveat."""
    people = _PEOPLE[estimand]
    if limit is None:
        return f"people in strata that lack an arm: the effect is that of {people} in the other strata"
    return (
        f"strata that lack an arm or are lopsided: the effect is an average over {people} in which a stratum "
        f"counts at most {limit:g} times its smaller arm (the weight kept says how much that takes away)"
    )


def caveats(study: Study, *own: str) -> tuple[str, ...]:
    """Return what the interval does not cover, from what the study declares."""
    found = [*own, "clamping of outcomes to the declared range"]
    if study.randomised is not True:
        found.insert(0, "CONFOUNDING within strata: by anything that is not one of the declared strata")
    found.append("chance in who was sampled: strata and their sizes are taken as they are")
    return tuple(found)
