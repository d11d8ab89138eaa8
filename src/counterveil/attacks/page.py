"""What an audit of everything says: a table for the terminal, and the table of a page."""

from __future__ import annotations

from collections.abc import Sequence
from math import isfinite

from counterveil.attacks.command import Examined
from counterveil.audit import AuditRow, Verdict

_HEADINGS = ("audited", "unit", "pairs", "claim", "tester", "found", "at 1/3 noise", "verdict")


def rows(found: Sequence[Examined]) -> list[tuple[str, ...]]:
    """Return one row of texts for each tester of each audit."""
    return [
        (
            one.name,
            one.unit,
            str(one.report.pairs),
            _claim(one),
            row.tester,
            _figure(row.ours.found),
            _figure(row.weakened.found),
            row.verdict.value,
        )
        for one in found
        for row in one.report.rows
    ]


def _claim(one: Examined) -> str:
    claim = one.report.claim
    return f"{float(claim.epsilon):g}" + (f", {float(claim.delta):g}" if claim.delta else "")


def _figure(value: float) -> str:
    return f"{value:.3g}" if isfinite(value) else "infinite"


def summary(found: Sequence[Examined]) -> str:
    """Return the table and a last line that says how many audits ended how."""
    cells = [_HEADINGS, *rows(found)]
    widths = [max(len(line[k]) for line in cells) for k in range(len(_HEADINGS))]
    lines = [
        "  ".join(text.ljust(width) for text, width in zip(line, widths, strict=True)).rstrip()
        for line in cells
    ]
    rule = "-" * max(map(len, lines))
    return "\n".join([lines[0], rule, *lines[1:], rule, *witnesses(found), totals(found)])


def witnesses(found: Sequence[Examined]) -> list[str]:
    """Return where each broken claim was broken."""
    return [f"{one.name}, {row.tester}: {row.ours.witness}" for one in found for row in _broken(one)]


def _broken(one: Examined) -> list[AuditRow]:
    return [row for row in one.report.rows if row.verdict is Verdict.VIOLATED]


def totals(found: Sequence[Examined]) -> str:
    """Return how many audits ended how, and what they cost."""
    counts = {verdict: sum(one.verdict is verdict for one in found) for verdict in Verdict}
    said = ", ".join(f"{count} {verdict.value}" for verdict, count in counts.items())
    return f"{len(found)} audits: {said}; {sum(one.seconds for one in found) / 60:.1f} minutes of CPU"
