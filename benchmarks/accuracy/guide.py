"""The section "Which method should I use?" of the how-to page, from the league."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from benchmarks.accuracy.designs import DATA
from benchmarks.accuracy.entries import AUTO, GUARANTEES, TARGET, UNADJUSTED
from benchmarks.accuracy.standing import Cell, Cells, Outcome, is_trial, outcomes, ranked
from benchmarks.accuracy.summary import shares
from counterveil.reproduce.rivals.catalogue import RIVALS

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "choose-a-method.md"
BEGIN = "<!-- league: written by python -m benchmarks.accuracy --guide; do not edit -->"
END = "<!-- end of league -->"
_EPSILON = "1"


def section(found: Cells) -> str:
    """Return the section in Markdown."""
    ended = outcomes(found)
    whole = shares(ended)[-1]
    auto, ours = whole.won["auto"], whole.won["ours"]
    lines = [
        BEGIN,
        "## Which method should I use?",
        "",
        f"Take `auto`. Beside other methods at equal guarantee it is the most accurate in {auto} of "
        f"{whole.cells} cells of [the league](../../benchmarks/README.md#accuracy), and some method of ours, which "
        f"one is known only afterwards, in {ours}: eight data sets, epsilon 0.5, 1 and 4, private outcomes and "
        "private records, with and without a delta. Methods whose claim is refuted do not take part. The table has "
        "root mean square errors at epsilon 1, in percent of the outcome's range.",
        "",
        "| data | guarantee | `auto` | best of ours | best of the others | always zero | without privacy |",
        "|---|---|---|---|---|---|---|",
    ]
    for name, data in DATA.items():
        for guarantee in GUARANTEES:
            cell = found.get((name, guarantee, _EPSILON))
            if cell:
                lines.append(_line(f"{name} ({data.about})", guarantee, cell))
    lines += ["", *_advice(found, ended), END]
    return "\n".join(lines)


def _line(title: str, guarantee: str, cell: dict[str, Cell]) -> str:
    order = ranked(cell)
    own = [name for name in order if RIVALS[name].ours]
    others = [name for name in order if not RIVALS[name].ours]
    auto = cell.get(AUTO[guarantee])
    chosen = "refused" if auto is None or not auto.draws else _percent(auto.rmse)
    best = f"{_percent(cell[own[0]].rmse)}, {_short(own[0])}" if own else "none"
    other = f"{_percent(cell[others[0]].rmse)}, {others[0]}" if others else "none"
    free = _percent(cell[TARGET].rmse) if TARGET in cell else ""
    zero = _percent(cell["zero"].rmse) if "zero" in cell else ""
    return f"| {title} | {guarantee} | {chosen} | {best} | {other} | {zero} | {free} |"


def _short(name: str) -> str:
    return name.removeprefix("ours, ").split(" (")[0]


def _percent(value: float) -> str:
    return "" if np.isnan(value) else f"{100 * value:.2g}"


def _advice(found: Cells, ended: list[Outcome]) -> list[str]:
    """Return what follows for an analyst, with counts of this league."""
    refused = [one for one in ended if not _answers(found[one.key].get(AUTO[one.key[1]]))]
    bounded = sum(one.bounded for one in refused)
    unadjusted = [
        one
        for one in ended
        if one not in refused and not one.auto and one.first in UNADJUSTED and not is_trial(one.key[0])
    ]
    return [
        "- Covariates and treatments are public: protect outcomes. Errors are then close to those without privacy, and "
        "adjusting costs no budget.",
        "- Records are private: allow a delta. It matters most for models of all covariates.",
        f"- `auto` refuses {len(refused)} cells, observational studies whose budget affords no adjusted answer. With "
        "`cv.settings.Auto(kappa=...)`, a declared bound on confounding, it answers, and is first in "
        f"{bounded} of them.",
        f"- In {len(unadjusted)} more cells of observational studies a plain difference in means is closest: its bias "
        "is below what adjusting costs. Only who knows that confounding is weak can rely on that; "
        "`kappa` says so in the result.",
        "- Methods without intervals spend the whole budget on the value and may be a little closer for it. Ours "
        "always buy an interval.",
        '- If an error exceeds that of "always zero", no answer at that budget is worth its cost: raise epsilon.',
        "",
    ]


def _answers(cell: Cell | None) -> bool:
    return cell is not None and cell.draws > 0


def rewrite(found: Cells, path: Path = PAGE) -> None:
    """Put the section into the page, in the place of the one that is there or at the end."""
    text = path.read_text()
    made = section(found)
    if BEGIN in text:
        head, rest = text.split(BEGIN, 1)
        path.write_text(head + made + rest.split(END, 1)[1])
    else:
        path.write_text(text.rstrip("\n") + "\n\n" + made + "\n")
