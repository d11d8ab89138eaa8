"""Who is first, as text: shares by guarantee, and a line for every cell that is lost."""

from __future__ import annotations

from benchmarks.accuracy.entries import GUARANTEES
from benchmarks.accuracy.standing import Cells, Outcome, outcomes


def shares(ended: list[Outcome]) -> list[tuple[str, int, int, int, int]]:
    """Return, by guarantee and in all: cells, those where auto is first, where any of ours is, auto better than zero."""
    found = []
    for guarantee in (*GUARANTEES, "all"):
        own = [one for one in ended if guarantee in (one.key[1], "all")]
        counts = (
            sum(one.auto for one in own),
            sum(one.ours for one in own),
            sum(one.beats_zero for one in own),
        )
        found.append((guarantee, len(own), *counts))
    return found


def text(found: Cells) -> str:
    """Return the summary that the command prints."""
    ended = outcomes(found)
    lines = ["cells, auto first, any of ours first, auto better than zero"]
    lines += [f"  {name}: {count}, {auto}, {ours}, {zero}" for name, count, auto, ours, zero in shares(ended)]
    lost = [one for one in ended if not one.auto]
    lines += [f"lost: {' / '.join(one.key)}: {one.why}" for one in lost]
    return "\n".join(lines)
