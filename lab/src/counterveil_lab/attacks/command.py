"""Audits by name: what is examined, with which testers, and the table and page of everything together."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from math import isfinite
from multiprocessing import get_context

from counterveil.errors import refusal, shown
from counterveil.privacy import Budget, Number
from counterveil_lab.attacks.catalogue import CATALOGUE, Audited
from counterveil_lab.attacks.gallery import SCENARIOS, Scenario
from counterveil_lab.attacks.mechanisms import MECHANISMS, AuditedMechanism
from counterveil_lab.attacks.own_methods import AuditedBounds, audits_of, is_own
from counterveil_lab.attacks.release import CANARIES, Canaries, LossTester, ReplayTester, worst_pair
from counterveil_lab.audit import AuditReport, AuditRow, Given, Tester, ThresholdTester, Verdict, audit

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
    "Made by `counterveil audit --all {trials}--page FILE`. What a pass means: [auditing](auditing.md).\n"
    "\n"
    "Every variant of every question is asked of small data sets that differ in one unit, which takes every extreme "
    "value. On the worst pair:\n"
    "\n"
    "- **exact**: the largest loss of each release, from its distribution, composed over the run; an epsilon at the "
    "claimed delta.\n"
    "- **sampled**: a lower bound on epsilon from many runs through the real gate (log likelihood ratio, thresholds, "
    "or canaries in one run).\n"
    "- **replay**: the neighbour is forced to release the same numbers; counts differences in answers, texts, errors, "
    "warnings, ledger entries and sensitivities.\n"
    "\n"
    'Cells are "found / found with a third of the noise" (replay: with one release that leaks). The second figure must '
    "exceed the claim; otherwise the verdict is inconclusive.\n"
    "\n"
    "| audited | claim | exact | sampled | replay | verdict |\n"
    "|---|---|---|---|---|---|\n"
)


def page(found: Sequence[Examined]) -> str:
    """Return the page: what is done, the table of all audits, and the totals."""
    lines = []
    for one in found:
        cells = dict.fromkeys(("exact", "sampled", "replay"), "")
        for row in one.report.rows:
            column = row.tester if row.tester in cells else "sampled"
            cells[column] = f"{_figure(row.ours.found)} / {_figure(row.weakened.found)}"
        lines.append(
            f"| `{one.name}` | {_claim(one)} | {' | '.join(cells.values())} | {one.verdict.value} |\n"
        )
    sampled = any(row.tester == "likelihood ratio" for one in found for row in one.report.rows)
    introduction = _INTRODUCTION.replace("{trials}", "" if sampled else "--trials 0 ")
    return introduction + "".join(lines) + f"\n{totals(found)}.\n"


# With this probability no sound form of one audit is called violated.
CONFIDENCE = 0.999
_FIRST = Given(lambda rows: rows[:, 0])
Anything = Audited | AuditedBounds | AuditedMechanism | Canaries | Scenario
EVERYTHING: dict[str, Anything] = {**MECHANISMS, **CATALOGUE, **CANARIES, **SCENARIOS}


@dataclass(frozen=True)
class Examined:
    """One audited thing: its name, what its neighbours differ in, the report, and what it cost."""

    name: str
    unit: str
    report: AuditReport
    seconds: float

    @property
    def verdict(self) -> Verdict:
        """The verdict of the report."""
        return self.report.verdict

    def to_dict(self) -> dict[str, object]:
        """Return everything as JSON-ready facts."""
        return {"name": self.name, "unit": self.unit, "cpu_seconds": self.seconds} | self.report.to_dict()


def chosen(words: list[str], everything: bool) -> dict[str, Anything]:
    """Return what is audited: all, or what has one of the words for its name or a part of it.

    A word such as "module:MyMethod" stands for a method of somebody's own.
    """
    if everything:
        return dict(EVERYTHING)
    own: dict[str, Anything] = {}
    for word in filter(is_own, words):
        own |= audits_of(word)
    words = [word for word in words if not is_own(word)]
    if own and not words:
        return own
    found = own | {
        name: one
        for name, one in EVERYTHING.items()
        if any(word == name or word in name.split("/") for word in words)
    }
    unknown = [
        word for word in words if not any(word == name or word in name.split("/") for name in EVERYTHING)
    ]
    if unknown or not found:
        raise refusal("CV-A009", got=shown(unknown[0]) if unknown else "no name")
    return found


def examine(
    one: Anything, *, budget: Budget | None = None, samples: int | None = None, seed: int = 1
) -> Examined:
    """Return the audit of one thing, at another budget or with another number of samples if given."""
    began = time.process_time()
    if isinstance(one, AuditedMechanism):
        report, unit = examine_mechanism(one, samples, seed), "value"
    elif isinstance(one, AuditedBounds | Canaries | Scenario):
        report, unit = one.examine(seed), one.unit
    else:
        report, unit = examine_form(one, budget, samples, seed), one.unit
    return Examined(report.name, unit, report, time.process_time() - began)


def examine_mechanism(one: AuditedMechanism, samples: int | None = None, seed: int = 1) -> AuditReport:
    """Return the audit of a mechanism, at the budget that its noise was made for."""
    testers = one.testers(
        samples or one.samples
    )  # a quick audit takes usual samples of a mechanism: they are cheap
    return audit(
        one.claim,
        one.ours,
        one.weakened,
        one.pairs,
        testers,
        seed=seed,
        confidence=CONFIDENCE,
        name=f"mechanism/{one.name}",
    )


def examine_form(
    one: Audited, budget: Budget | None = None, samples: int | None = None, seed: int = 1
) -> AuditReport:
    """Return the audit of a form of a question on the worst of its neighbours; no samples leave the bet on them out."""
    claim = budget or one.budget
    release, tried = worst_pair(one.asked(claim), one.pools(), seed)
    testers: list[Tester] = [LossTester(tried=tried), ReplayTester()]
    runs = one.samples if samples is None else samples
    if runs:
        testers.insert(1, ThresholdTester(runs, (_FIRST,), name="likelihood ratio"))
    report = audit(
        claim, release, release.weakened(), [(0, 1)], testers, seed=seed, confidence=CONFIDENCE, name=one.name
    )
    return replace(report, pairs=tried)


def examine_all(
    things: dict[str, Anything],
    *,
    epsilon: Number | None = None,
    delta: Number | None = None,
    samples: int | None = None,
    seed: int = 1,
    jobs: int = 1,
) -> Iterator[Examined]:
    """Yield the audits in their order, several at a time where there are several jobs."""
    budgets = [_budget(one, epsilon, delta) for one in things.values()]
    asked = [(name, budget, samples, seed) for name, budget in zip(things, budgets, strict=True)]
    if jobs == 1 or len(asked) == 1:
        yield from (_examined(one) for one in asked)
        return
    with ProcessPoolExecutor(jobs, get_context("spawn")) as pool:
        yield from pool.map(_examined, asked)


def _examined(asked: tuple[str, Budget | None, int | None, int]) -> Examined:
    name, budget, samples, seed = asked
    one = EVERYTHING[name] if name in EVERYTHING else audits_of(name.rpartition("/")[2])[name]
    return examine(one, budget=budget, samples=samples, seed=seed)


def _budget(one: Anything, epsilon: Number | None, delta: Number | None) -> Budget | None:
    """Return the budget of a form that was asked for, None where its own is."""
    if not isinstance(one, Audited) or (epsilon is None and delta is None):
        return None
    usual = one.budget
    return Budget(usual.epsilon if epsilon is None else epsilon, usual.delta if delta is None else delta)
