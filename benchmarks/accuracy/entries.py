"""Who takes part at which guarantee, and how many draws a method gets."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from benchmarks.accuracy.designs import FEW_COLUMNS
from counterveil_lab.reproduce.rivals.catalogue import RIVALS
from counterveil_lab.reproduce.rivals.encoding import Budget, Rival

EPSILONS = (0.5, 1.0, 4.0)
DELTA = 1e-6
OUTCOME, PURE, APPROXIMATE = "outcome, pure", "record, pure", "record, delta 1e-6"
GUARANTEES = (OUTCOME, PURE, APPROXIMATE)
AUTO = {OUTCOME: "ours, auto (outcome)", PURE: "ours, auto (record)", APPROXIMATE: "ours, auto (record)"}
# The same with a declared bound on confounding: it always answers.
BOUNDED = "ours, auto, confounding bounded (record)"
# Everything is spent on the value.
VALUE_ALONE = (
    "ours, weighting, value alone (outcome)",
    "ours, difference in means, value alone (outcome)",
)
ZERO = "zero"
# Compare the arms as they are, in a trial or not.
UNADJUSTED = {name for name in RIVALS if "difference in means" in name}
# What estimates are compared with beside the truth.
TARGET = "AIPW, not private"
# Answer alike in this league: where auto does not choose them they are in `experiments.every_method`.
_LEFT_OUT = {
    "ours, weighting (outcome)",
    "ours, matching (outcome)",
    "ours, doubly robust (record)",
}
# Seconds of CPU for one answer: they get so many draws, after the others have had a few, of data with few columns.
SLOW = {"AIM": 1, "MST": 4, "DP-EBM, T-learner": 4, "DP-EBM, X-learner": 4}
_SLOW_FROM = 6
# Refuted methods and those without privacy are shown and not ranked.
_NOT_RANKED_DRAWS = 8
# Tables of every pair of columns: data beyond these rows are left to the others.
_SLOW_ROWS = 1000


@dataclass(frozen=True)
class Entry:
    """A method at a guarantee and an epsilon; None for those that need no budget."""

    method: str
    guarantee: str
    epsilon: float | None

    def budget(self) -> Budget:
        """Return what an answer may spend."""
        return Budget(self.epsilon or 1.0, DELTA if self.guarantee == APPROXIMATE else 0.0)


def guarantees_of(rival: Rival) -> tuple[str, ...]:
    """Return at which guarantees a method is drawn; noise of pure epsilon is drawn once and counts for both."""
    if rival.protects == "nothing":
        return ("",)
    if rival.protects == "outcome":
        return (OUTCOME,)
    return {"none": (PURE,), "needed": (APPROXIMATE,), "either": (PURE, APPROXIMATE)}[rival.delta]


def entries() -> Iterator[Entry]:
    """Yield everything that is asked of one draw, what is quick first."""
    chosen = [name for name in RIVALS if name not in _LEFT_OUT]
    for name in sorted(chosen, key=lambda one: one in SLOW):
        for guarantee in guarantees_of(RIVALS[name]):
            for epsilon in EPSILONS if guarantee else (None,):
                yield Entry(name, guarantee, epsilon)


def is_ranked(rival: Rival) -> bool:
    """Return whether a method is private by a claim that nobody refuted."""
    return rival.protects != "nothing" and rival.claim in ("holds", "unproved")


def takes_part(entry: Entry, draw: int, rows: int, columns: int) -> bool:
    """Return whether a method answers a draw of data of this size."""
    if entry.method in SLOW:
        return 0 <= draw - _SLOW_FROM < SLOW[entry.method] and columns <= FEW_COLUMNS and rows <= _SLOW_ROWS
    if not is_ranked(RIVALS[entry.method]) and entry.method not in (ZERO, TARGET):
        return draw < _NOT_RANKED_DRAWS
    return True


def counts_at(rival: Rival, guarantee: str) -> bool:
    """Return whether a method's answers keep a guarantee: pure ones keep a delta too."""
    own = guarantees_of(rival)
    return guarantee in own or (guarantee == APPROXIMATE and own == (PURE,))
