"""How each cell ended: whether auto or another method of ours is first, whether by more than chance, and why not."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from benchmarks.accuracy.designs import DATA
from benchmarks.accuracy.entries import (
    AUTO,
    BOUNDED,
    GUARANTEES,
    OUTCOME,
    UNADJUSTED,
    VALUE_ALONE,
    ZERO,
)
from benchmarks.accuracy.standing import FEWEST, Cell, Cells, Key, compared, gap, ranked
from counterveil_lab.reproduce.rivals.catalogue import RIVALS
from counterveil_lab.reproduce.rivals.encoding import Rival

# Auto is near the first if its error is at most this many times as large.
NEAR = 1.1


@dataclass(frozen=True)
class Outcome:
    """How a cell ended; other methods of ours compete with auto in `near` and `closer` alone.

    Nobody leads where no other method has enough answers, nor with too few answers or a refusal of its own.

    `best` is the first of others' methods. `ours` and `auto` say whether one of our methods and
    auto are ahead of all others', the clear ones by more than chance, `beaten` whether one of the others' is clearly
    ahead of all of ours; `bounded` the same of auto with a bound on
    confounding, `adjusted` of auto beside methods that adjust, in a trial beside all. `no_better` says whether auto
    answers no better than zero. `why` explains a cell that auto does not win, `closer` one in which another method
    of ours is closer than auto.
    """

    key: Key
    best: str
    ours: bool
    ours_clear: bool
    beaten: bool
    auto: bool
    auto_clear: bool
    near: bool
    bounded: bool
    adjusted: bool
    refused: bool
    no_better: bool
    why: str
    closer: str


def outcome(key: Key, cell: dict[str, Cell], rivals: dict[str, Rival] = RIVALS) -> Outcome:
    """Return how one cell ended."""
    auto, order = AUTO[key[1]], ranked(cell, rivals)
    others = [name for name in order if not rivals[name].ours]
    own = [name for name in order if rivals[name].ours]
    refused = not answers(cell, auto)
    adjusting = others if is_trial(key[0]) else [name for name in others if name not in UNADJUSTED]
    ahead = leads(cell, auto, others)
    return Outcome(
        key,
        others[0] if others else "",
        ours=any(leads(cell, name, others) for name in own),
        ours_clear=any(leads(cell, name, others, clearly=True) for name in own),
        beaten=any(leads(cell, name, own, clearly=True) for name in others),
        auto=ahead,
        auto_clear=leads(cell, auto, others, clearly=True),
        near=not refused and all(gap(cell[auto], cell[name]).ratio <= NEAR for name in order),
        bounded=leads(cell, auto if key[1] == OUTCOME else BOUNDED, others),
        adjusted=leads(cell, auto, adjusting),
        refused=refused,
        no_better=not refused and ZERO in cell and gap(cell[auto], cell[ZERO]).mean >= 0,
        why="" if ahead else explained(key, cell, others),
        closer="" if refused else closer_of_ours(key, cell, own),
    )


def answers(cell: dict[str, Cell], name: str) -> bool:
    """Return whether a method has enough answers and refused none."""
    return name in cell and cell[name].draws >= FEWEST and not cell[name].refusal


def leads(cell: dict[str, Cell], name: str, among: list[str], *, clearly: bool = False) -> bool:
    """Return whether a method is ahead of others, by more than chance if that is asked."""
    if not among or not answers(cell, name):
        return False
    if clearly:
        return all(gap(cell[one], cell[name]).clear for one in among)
    return all(gap(cell[name], cell[one]).mean <= 0 for one in among)


def is_trial(data: str) -> bool:
    """Return whether data are a trial's."""
    return data in DATA and DATA[data].trial


def explained(key: Key, cell: dict[str, Cell], others: list[str]) -> str:
    """Return why auto is not first."""
    auto = AUTO[key[1]]
    if not others:
        return f"no other method has {FEWEST} answers"
    if not answers(cell, auto):
        code = f" ({cell[auto].refusal})" if auto in cell else ""
        beside = (
            f"; with a bound on confounding {_percent(cell[BOUNDED].rmse)}%" if answers(cell, BOUNDED) else ""
        )
        best = others[0]
        return (
            f"auto refuses{code}: no adjusted answer is affordable; "
            f"{best} has {_percent(cell[best].rmse)} %{beside}"
        )
    # Draws differ in number: who leads auto by most over those of both.
    best = max(others, key=lambda name: gap(cell[auto], cell[name]).mean)
    return _reason(key, cell, best)


def closer_of_ours(key: Key, cell: dict[str, Cell], own: list[str]) -> str:
    """Return which method of ours is closer than auto, if any is; one that buys no variance is another product."""
    auto = AUTO[key[1]]
    arm_correlation = [name for name in own if name not in VALUE_ALONE]
    best = max(arm_correlation, key=lambda name: gap(cell[auto], cell[name]).mean, default=auto)
    return _reason(key, cell, best) if gap(cell[auto], cell[best]).mean > 0 else ""


def _reason(key: Key, cell: dict[str, Cell], best: str) -> str:
    """Return in words why another method is closer than auto, or that chance may be the reason."""
    found = gap(cell[AUTO[key[1]]], cell[best])
    figures = f"{_percent(found.other)}% and {_percent(found.mine)}%, {found.draws} draws"
    trait, reason = _trait(key, cell, best)
    if found.clear:
        return f"{best} {trait}{reason} ({figures})"
    return f"{best}, which {trait}, leads by less than chance ({figures})"


def _trait(key: Key, cell: dict[str, Cell], best: str) -> tuple[str, str]:
    """Return what tells a method from auto, and what follows if its lead is clear."""
    if best in UNADJUSTED and not is_trial(key[0]):
        if np.isnan(cell[best].coverage):
            return "does not adjust and has no interval", ": its bias is below what both cost at this budget"
        return "does not adjust", ": its bias is below what adjusting costs at this budget"
    if "stratified" in best:
        return "adjusts for a few covariates, halved", ": its bias is below what others cost"
    if np.isnan(cell[best].coverage):
        return "has no interval", ": everything is spent on the value"
    return "has an interval too", ", and is more accurate"


def _percent(value: float) -> str:
    return f"{100 * value:.3g}"


def outcomes(found: Cells, rivals: dict[str, Rival] = RIVALS) -> list[Outcome]:
    """Return how every cell ended, in the order of the tables; at a delta a pure answer may stand."""
    able = compared(found)
    return [outcome(key, able[key], rivals) for key in sorted(able, key=_place)]


def _place(key: Key) -> tuple[int, str, float]:
    return GUARANTEES.index(key[1]), key[0], float(key[2])
