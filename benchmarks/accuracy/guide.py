"""The section "Which method should I use?" of the how-to page: counts and ratios of the benchmark."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import numpy as np

from benchmarks.accuracy.designs import DATA
from benchmarks.accuracy.entries import AUTO, GUARANTEES, OUTCOME, TARGET, UNADJUSTED
from benchmarks.accuracy.outcomes import Outcome, answers, is_trial, outcomes
from benchmarks.accuracy.standing import CLEAR, Cell, Cells, compared, gap, ranked
from benchmarks.accuracy.summary import shares
from counterveil_lab.reproduce.rivals.catalogue import RIVALS
from counterveil_lab.reproduce.rivals.ours import KAPPA

PAGE = Path(__file__).parents[2] / "experiments" / "every_method" / "RESULTS.md"
BEGIN = "<!-- league: written by python -m benchmarks.accuracy --guide; do not edit -->"
END = "<!-- end of league -->"
_EPSILON = "1"


def section(found: Cells) -> str:
    """Return the section in Markdown."""
    ended, able = outcomes(found), compared(found)
    lines = [
        BEGIN,
        "## Which method should I use?",
        "",
        f"Take `auto`. [The benchmark](../../benchmarks/README.md#accuracy) has {len(ended)} settings. RMSE at epsilon "
        "1 in percent of the outcome's range, `auto` / the best competing method at equal guarantee:",
        "",
        f"| data | {' | '.join(GUARANTEES)} | AIPW without privacy |",
        "|---|" + "---|" * (len(GUARANTEES) + 1),
    ]
    for name, data in DATA.items():
        cells = [able.get((name, guarantee, _EPSILON)) for guarantee in GUARANTEES]
        shown = [_pair(guarantee, cell) for guarantee, cell in zip(GUARANTEES, cells, strict=True)]
        target = next((_percent(cell[TARGET].rmse) for cell in cells if cell and TARGET in cell), "")
        lines.append(f"| {name} ({data.about}) | {' | '.join(shown)} | {target} |")
    lines += ["", *(f"- {line}" for line in _advice(found, ended)), "", END]
    return "\n".join(lines)


def _pair(guarantee: str, cell: dict[str, Cell] | None) -> str:
    """Return the errors of auto and of the best competing method in one setting."""
    if cell is None:
        return ""
    auto = cell.get(AUTO[guarantee])
    others = [name for name in ranked(cell) if not RIVALS[name].ours]
    given = _percent(auto.rmse) if auto is not None and auto.draws > 0 else "refused"
    return f"{given} / {_percent(cell[others[0]].rmse) if others else 'none'}"


def _percent(value: float) -> str:
    return "" if np.isnan(value) else f"{100 * value:.2g}"


def _advice(found: Cells, ended: list[Outcome]) -> list[str]:
    """Return what follows for an analyst, with counts of this benchmark."""
    refused = [one for one in ended if one.refused]
    records = [one for one in ended if one.key[1] != OUTCOME]
    lost = [one for one in ended if not one.auto and not one.refused]
    won = shares(ended)[-1].won
    return [
        f"`auto` has the smaller error in {won['auto']} settings, clearly ({CLEAR:g} standard errors) in "
        f"{won['auto_clear']}. A competing method is clearly ahead of all of ours in {won['beaten']}.",
        *_coverage(found),
        *_ahead(found, lost),
        f"It refuses {len(refused)} observational settings. With `cv.settings.Auto(kappa={KAPPA:g})` it answers all, "
        f"and is first in {sum(one.bounded for one in records)} of {len(records)} settings of records instead of "
        f"{sum(one.auto for one in records)}.",
        f"In {sum(one.no_better for one in ended)} settings its error is as large as that of "
        '"always zero": raise epsilon.',
    ]


def _ahead(found: Cells, lost: list[Outcome]) -> list[str]:
    """Return who is ahead of auto where it answers: those that do not adjust, and those without an interval."""
    able = compared(found)
    gaps = {one.key: gap(able[one.key][AUTO[one.key[1]]], able[one.key][one.best]).ratio for one in lost}
    unadjusted = [one for one in lost if one.best in UNADJUSTED and not is_trial(one.key[0])]
    rest = [one for one in lost if one not in unadjusted]
    lines = []
    if unadjusted:
        ratios = _range([gaps[one.key] for one in unadjusted])
        lines.append(
            f"In {len(unadjusted)} observational settings an unadjusted difference in means is ahead ({ratios} times): "
            "its bias is below the cost of adjusting."
        )
    if rest:
        without = sum(np.isnan(able[one.key][one.best].coverage) for one in rest)
        lines.append(
            f"In {len(rest)} others a competing method is ahead ({_range([gaps[one.key] for one in rest])} times); "
            f"{without} of these have no interval."
        )
    return lines


def _coverage(found: Cells) -> list[str]:
    """Return how often intervals of auto cover, over all answers, and where they do so least."""
    own = [(cell[AUTO[key[1]]], key) for key, cell in found.items() if answers(cell, AUTO[key[1]])]
    given = sum(cell.draws for cell, _ in own)
    covered = sum(cell.coverage * cell.draws for cell, _ in own)
    least, key = min(own, key=lambda one: one[0].coverage)
    return [
        f"Its 95% intervals cover the truth in {100 * covered / given:.1f}% of {given:,} answers, least often in "
        f"{_listed([key])}: {round(least.coverage * least.draws)} of {least.draws}."
    ]


def _range(values: list[float]) -> str:
    return f"{min(values):.2g} to {max(values):.2g}" if values else "none"


def _listed(keys: Iterable[tuple[str, ...]]) -> str:
    return "; ".join(" / ".join(key) for key in keys) or "none"


def rewrite(found: Cells, path: Path = PAGE) -> None:
    """Put the section into the page, in the place of the one that is there or at the end."""
    text = path.read_text()
    made = section(found)
    if BEGIN in text:
        head, rest = text.split(BEGIN, 1)
        path.write_text(head + made + rest.split(END, 1)[1])
    else:
        path.write_text(text.rstrip("\n") + "\n\n" + made + "\n")
