"""The section "Which method should I use?" of the how-to page: counts and ratios of the league, and nothing else."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import numpy as np

from benchmarks.accuracy.designs import DATA
from benchmarks.accuracy.entries import (
    APPROXIMATE,
    AUTO,
    GUARANTEES,
    OUTCOME,
    PURE,
    TARGET,
    UNADJUSTED,
    VALUE_ALONE,
    ZERO,
)
from benchmarks.accuracy.outcomes import NEAR, Outcome, answers, first_as_asked, is_trial, outcomes
from benchmarks.accuracy.standing import CLEAR, Cell, Cells, Key, compared, gap, ranked
from benchmarks.accuracy.summary import shares
from counterveil_lab.reproduce.rivals.catalogue import RIVALS
from counterveil_lab.reproduce.rivals.ours import KAPPA

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "choose-a-method.md"
BEGIN = "<!-- league: written by python -m benchmarks.accuracy --guide; do not edit -->"
END = "<!-- end of league -->"
_EPSILON = "1"
# Up to this ratio two errors count as equal.
_SAME = 1 + 1e-9


def section(found: Cells) -> str:
    """Return the section in Markdown."""
    ended, able = outcomes(found), compared(found)
    lines = [
        BEGIN,
        "## Which method should I use?",
        "",
        *_counts(ended, found),
        "",
        "The table has root mean square errors at epsilon 1, in percent of the outcome's range.",
        "",
        "| data | guarantee | draws | `auto` | its coverage | best of ours | best of the others | always zero "
        "| without privacy |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for name, data in DATA.items():
        for guarantee in GUARANTEES:
            cell = able.get((name, guarantee, _EPSILON))
            if cell:
                lines.append(_line(f"{name} ({data.about})", guarantee, cell))
    lines += ["", *(f"- {line}" for line in _advice(found, ended)), "", END]
    return "\n".join(lines)


def _counts(ended: list[Outcome], found: Cells) -> list[str]:
    """Return in how many cells ours and auto are first."""
    *parts, whole = shares(ended)
    won, at_delta = whole.won, next(one for one in parts if one.guarantee == APPROXIMATE)
    same = sum(_same_answers(found, key) for key in found if key[1] == PURE)
    pairs = sum(key[1] == PURE and (key[0], APPROXIMATE, key[2]) in found for key in found)
    return [
        f"Take `auto`. [The league](../../benchmarks/README.md#accuracy) has {whole.cells} cells: eight data sets, "
        "epsilon 0.5, 1 and 4, private outcomes and private records, with and without a delta. Methods whose claim is "
        "refuted do not take part.",
        "",
        f"- `auto` is closer to the truth than every competing method at equal guarantee in {won['auto']} cells, "
        f"clearly in {won['auto_clear']}: by {CLEAR:g} standard errors of the difference in squared error, over common "
        f'draws. It refuses {won["refused"]}, and answers no better than "always zero" in {won["no_better"]}.',
        f"- The best of our methods, chosen in hindsight, is closer than every competing method in {won['ours']} "
        f"cells, clearly in {won['ours_clear']}; a competing method is clearly closer than all of ours in "
        f"{won['beaten']}. `auto` is within {100 * (NEAR - 1):.0f} % of the "
        f"first of all, ours included, in {won['near']}.",
        "- A pure guarantee holds at any delta: with a delta the better of a method's two answers counts, chosen in "
        f"hindsight. Asked with the delta, `auto` is first in {first_as_asked(found)} of {at_delta.cells} such cells; "
        f"with the better of its two answers, in {at_delta.won['auto']}. In "
        f"{same} of {pairs} pairs of cells with and without a delta it gives the same answers, or refuses both: these "
        "count twice.",
    ]


def _same_answers(found: Cells, key: Key) -> bool:
    one = found[key].get(AUTO[PURE])
    two = found.get((key[0], APPROXIMATE, key[2]), {}).get(AUTO[APPROXIMATE])
    return one is not None and two is not None and one.squares == two.squares


def _line(title: str, guarantee: str, cell: dict[str, Cell]) -> str:
    order, auto = ranked(cell), cell.get(AUTO[guarantee])
    own = [name for name in order if RIVALS[name].ours]
    others = [name for name in order if not RIVALS[name].ours]
    draws = max(one.draws for one in cell.values())

    def shown(name: str, title: str) -> str:
        few = f" ({cell[name].draws} draws)" if cell[name].draws < draws else ""
        return f"{_percent(cell[name].rmse)}, {title}{few}"

    given = auto is not None and auto.draws > 0
    columns = [
        title,
        guarantee,
        str(draws),
        _percent(auto.rmse) if auto is not None and given else "refused",
        f"{auto.coverage:.2f}" if auto is not None and given else "",
        shown(own[0], own[0].removeprefix("ours, ").split(" (")[0]) if own else "none",
        shown(others[0], others[0]) if others else "none",
        *(_percent(cell[name].rmse) if name in cell else "" for name in (ZERO, TARGET)),
    ]
    return "| " + " | ".join(columns) + " |"


def _percent(value: float) -> str:
    return "" if np.isnan(value) else f"{100 * value:.2g}"


def _advice(found: Cells, ended: list[Outcome]) -> list[str]:
    """Return what follows for an analyst, with counts of this league."""
    refused = [one for one in ended if one.refused]
    records = [one for one in ended if one.key[1] != OUTCOME]
    lost = [one for one in ended if not one.auto and not one.refused]
    return [
        "Covariates and treatments are public: protect outcomes, as adjusting costs no budget. At epsilon 1 the error "
        f"of `auto` is {_range(_to_target(found))} times that of AIPW without privacy.",
        *_with_delta(found),
        f"`auto` refuses {len(refused)} cells, observational studies whose budget affords no adjusted answer. With a "
        f"declared bound on confounding, `cv.settings.Auto(kappa={KAPPA:g})`, it always answers, and is first in "
        f"{sum(one.bounded for one in refused)} of these and in {sum(one.bounded for one in records)} of "
        f"{len(records)} cells of records instead of {sum(one.auto for one in records)}. Its interval covers only if "
        "the bound is true.",
        *_ahead(found, lost),
        *_coverage(found),
        f'An error as large as that of "always zero" ({_listed([one.key for one in ended if one.no_better])}) means '
        "that no answer at that budget is worth its cost: raise epsilon.",
    ]


def _to_target(found: Cells) -> list[float]:
    return [
        gap(cell[AUTO[OUTCOME]], cell[TARGET]).ratio
        for key, cell in found.items()
        if key[1:] == (OUTCOME, _EPSILON) and answers(cell, AUTO[OUTCOME]) and answers(cell, TARGET)
    ]


def _with_delta(found: Cells) -> list[str]:
    """Return in how many pairs of cells a delta makes the answer of auto better."""
    better, worse, same = [], [], 0
    for key, cell in found.items():
        other = found.get((key[0], APPROXIMATE, key[2]))
        if key[1] != PURE or other is None or not answers(other, AUTO[APPROXIMATE]):
            continue
        name = (key[0], key[2])
        ratio = gap(other[AUTO[PURE]], cell[AUTO[PURE]]).ratio if answers(cell, AUTO[PURE]) else 0.0
        if ratio > _SAME:
            worse.append((*name, f"{ratio:.3g} times"))
        elif ratio < 1 / _SAME:
            better.append(name)
        else:
            same += 1
    if not (better or worse or same):
        return []
    return [
        f"Records are private: asked with a delta, `auto` has a smaller error in {len(better)} pairs of cells, a "
        f"refusal counting as larger, the same in {same}, and a larger one in {len(worse)} ({_listed(worse)})."
    ]


def _ahead(found: Cells, lost: list[Outcome]) -> list[str]:
    """Return who is ahead of auto where it answers: those that do not adjust, and those without an interval."""
    able = compared(found)
    gaps = {one.key: gap(able[one.key][AUTO[one.key[1]]], able[one.key][one.best]) for one in lost}

    def counted(own: list[Outcome]) -> str:
        ratios = _range([gaps[one.key].ratio for one in own])
        clear = sum(gaps[one.key].clear for one in own)
        return f"{len(own)} cells, clearly in {clear}; the error of `auto` is {ratios} times theirs there"

    unadjusted = [one for one in lost if one.best in UNADJUSTED and not is_trial(one.key[0])]
    rest = [one for one in lost if one not in unadjusted]
    found_lines = []
    if unadjusted:
        found_lines.append(
            "In observational studies that `auto` answers, a competing difference in means is ahead of it in "
            f"{counted(unadjusted)}. Its bias is below what adjusting costs. Only an analyst who knows that "
            "confounding is weak can rely on that; `kappa` says so in the result."
        )
    if rest:
        without = sum(np.isnan(able[one.key][one.best].coverage) for one in rest)
        found_lines.append(
            f"Another competing method is ahead of `auto` in {counted(rest)}. In {without} of them it has no interval, "
            "and spends everything on the point estimate; `auto` always buys an interval. With `variance_share=0` "
            "in `cv.settings.Weighting` or `cv.settings.DifferenceInMeans` their methods spend everything on the point "
            f"estimate too, for intervals {_range(_lengths(found))} times as long as those of `auto`."
        )
    return found_lines


def _lengths(found: Cells) -> list[float]:
    """Return how long intervals are where everything is spent on the value, beside those of auto."""
    return [
        cell[name].width / cell[AUTO[OUTCOME]].width
        for key, cell in found.items()
        for name in VALUE_ALONE
        if key[1] == OUTCOME and answers(cell, name) and answers(cell, AUTO[OUTCOME])
    ]


def _coverage(found: Cells) -> list[str]:
    """Return how often intervals of auto cover, over all answers, and where they do so least."""
    own = [(cell[AUTO[key[1]]], key) for key, cell in found.items() if answers(cell, AUTO[key[1]])]
    given = sum(cell.draws for cell, _ in own)
    covered = sum(cell.coverage * cell.draws for cell, _ in own)
    least, key = min(own, key=lambda one: one[0].coverage)
    return [
        f"The 95 % intervals of `auto` cover the truth in {100 * covered / given:.1f} % of {given:,} answers, least "
        f"often in {_listed([key])}: {round(least.coverage * least.draws)} of {least.draws}."
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
