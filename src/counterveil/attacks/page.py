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


_INTRODUCTION = (
    "# How we attack ourselves\n"
    "\n"
    "Made by `counterveil audit --all {trials}--page docs/explanation/how-we-attack-ourselves.md`; do not edit. "
    "What the testers do, and what a pass means, is on the page on [auditing](auditing.md).\n"
    "\n"
    "Every form of every question is asked of data sets that differ in one unit: an outcome, a record, a "
    "person with all rows, a cluster with all rows. Data sets are small, and the replaced unit takes "
    "every extreme value. Of all pairs the worst is kept, and three attacks follow:\n"
    "\n"
    "- **exact**: the releases of a run are forced on the neighbour. The largest loss of each release, at"
    " any output, is computed from its distribution, and the losses of a run are composed. The figure is "
    "an epsilon at the claimed delta.\n"
    "- **likelihood ratio**: the form runs many times on both data sets through the real gate. The log "
    "likelihood ratio of everything that was released is the score; events are chosen on half of the runs"
    " and counted on the other half, with Clopper-Pearson limits. It is run where a "
    "few hundred runs were seen to catch a third of the noise, and for any form with `--trials`; releases of the "
    "others are sampled by themselves in `tests/statistical`.\n"
    "- **replay**: the neighbour must release what the first run released. Then everything visible must "
    "be equal: the answer, its text, what reports show, errors, warnings, what is printed and logged, the account, the "
    "entries of the ledger. Sensitivities must be equal too, and no private number may move beyond its "
    "own. The figure is the number of differences. This finds what is disclosed without being charged.\n"
    "\n"
    "Each attack is repeated with a third of the noise (replay: with one release that shows how far its "
    'private number lies from the neighbour\'s). The column "at 1/3 noise" must exceed the claim; if it '
    "does not, the attack shows nothing and the verdict is inconclusive.\n"
    "\n"
    "Mechanisms are audited by themselves, on numbers that differ by their sensitivity. One run on the "
    "rows of LaLonde's trial has everybody for a canary: treatments are drawn by coins, and guessed from what was "
    "released. Two scenarios ask more than one question: two studies of one account, and a site "
    "that gets settings which name a private column.\n"
    "\n"
)


def page(found: Sequence[Examined]) -> str:
    """Return the page: what is done, the table of all audits, and the totals."""
    lines = ["| " + " | ".join(_HEADINGS) + " |", "|" + "---|" * len(_HEADINGS)]
    before = ""
    for row in rows(found):
        name = f"`{row[0]}`" if row[0] != before else ""
        lines.append("| " + " | ".join((name, *row[1:])) + " |")
        before = row[0]
    sampled = any(row.tester == "likelihood ratio" for one in found for row in one.report.rows)
    introduction = _INTRODUCTION.replace("{trials}", "" if sampled else "--trials 0 ")
    return introduction + "\n".join(lines) + f"\n\n{totals(found)}.\n"
