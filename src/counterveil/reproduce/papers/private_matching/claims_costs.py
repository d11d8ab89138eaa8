"""What the text says of Tables IV and V, judged."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import pandas as pd

from counterveil.reproduce.papers.private_matching.costs import OURS
from counterveil.reproduce.papers.private_matching.methods import LABEL, SAMPLE
from counterveil.reproduce.papers.private_matching.studies import STUDIES
from counterveil.reproduce.protocol import Claim, Judged, Verdict

if TYPE_CHECKING:
    from counterveil.reproduce.papers.private_matching.tables import Tables

Judge = Callable[["Tables"], Judged]


def _line(table: pd.DataFrame, method: str) -> pd.Series[float]:
    found = table[table["method"] == method]
    line: pd.Series[float] = found[list(STUDIES)].iloc[0] if len(found) else pd.Series(dtype=float)
    return line.dropna().astype(float)


def below_a_second(tables: Tables) -> Judged:
    """Judge whether the direct methods take less than a second."""
    table = tables["table-4"]
    worst = {name: _line(table, name).max() for name in ("IPW-PP", "SmoothDPM", LABEL, SAMPLE)}
    number = ", ".join(f"{name} {value:.3f} s" for name, value in worst.items())
    return Judged.of(max(worst.values()) < 1, number, "the largest over the studies")


def synthesis_slower(tables: Tables) -> Judged:
    """Judge whether synthesis takes longer than PrivATE, AIM the longest."""
    table = tables["table-4"]
    own, syn, aim = (_line(table, name) for name in (SAMPLE, "PrivSyn", "AIM"))
    ratio = (syn / own).dropna()
    number = f"PrivSyn over PrivATE {ratio.min():.1f} to {ratio.max():.1f}"
    number += f"; AIM {aim.iloc[0]:.0f} s on {aim.index[0]}" if len(aim) else "; AIM not run"
    why = "our PrivSyn is small: it measures pairs of columns and takes seconds where the authors' takes minutes"
    return Judged.of(bool(ratio.min() > 1 and (aim.empty or aim.iloc[0] > syn.max())), number, why)


def least_memory(tables: Tables) -> Judged:
    """Judge whether PrivATE takes the least memory."""
    table = tables["table-5"]
    own = _line(table, LABEL)
    others = pd.concat(
        [_line(table, name) for name in ("IPW-PP", "SmoothDPM", "DPCI", "PrivSyn")], axis=1
    ).min(axis=1)
    least = int((own <= others).sum())
    gap = float((own - others).max())
    why = f"all share one process of Python; label level takes up to {gap:.0f} MB more than the least of the others"
    return Judged.of(least == len(own), f"least on {least} of {len(own)} studies", why)


def aim_memory(tables: Tables) -> Judged:
    """Judge whether AIM takes far more memory than the direct methods."""
    table = tables["table-5"]
    aim = _line(table, "AIM")
    if aim.empty:
        return Judged(Verdict.CANNOT_BE_CHECKED, "", "AIM was not run: its packages are apart")
    own = _line(table, LABEL)[aim.index[0]]
    number = f"AIM {aim.iloc[0]:.0f} MB, PrivATE {own:.0f} MB on {aim.index[0]}"
    return Judged.of(
        bool(aim.iloc[0] > 1.5 * own), number, "AIM with models of at most 40 MB, two processes together"
    )


def ours_ahead(name: str, unit: str, digits: int) -> Judge:
    """Return what decides whether the best of ours is ahead of every method of a table."""

    def judge(tables: Tables) -> Judged:
        table = tables[name]
        mine = pd.concat([_line(table, each) for each in OURS], axis=1).min(axis=1)
        rivals = [m for m in table["method"] if m not in OURS and not str(m).endswith("as printed")]
        theirs = {m: _line(table, m) for m in rivals}
        ahead = {m: int((mine[line.index] <= line).sum()) == len(line) for m, line in theirs.items()}
        behind = [m for m, each in ahead.items() if not each]
        number = ", ".join(f"{study} {value:.{digits}f} {unit}" for study, value in mine.items())
        why = (
            f"the best of our methods; behind {', '.join(behind)} on some study"
            if behind
            else "ahead of each on every study"
        )
        return Judged.of(not behind, number, why)

    return judge


CLAIMS = (
    Claim(
        "IPW-PP, SmoothDPM and PrivATE take less than a second on every data set.",
        "Appendix E, Table IV",
        ("table-4",),
        below_a_second,
    ),
    Claim(
        "PrivSyn takes far longer than PrivATE, AIM the longest.",
        "Appendix E, Table IV",
        ("table-4",),
        synthesis_slower,
    ),
    Claim("PrivATE takes the least memory.", "Appendix E, Table V", ("table-5",), least_memory),
    Claim("AIM takes far more memory than all others.", "Appendix E, Table V", ("table-5",), aim_memory),
    Claim(
        "(Of ours.) A method of this library is faster than every method of Table IV.",
        "beside Table IV",
        ("table-4",),
        ours_ahead("table-4", "s", 3),
    ),
    Claim(
        "(Of ours.) A method of this library takes less memory than every method of Table V.",
        "beside Table V",
        ("table-5",),
        ours_ahead("table-5", "MB", 0),
    ),
)
