"""What the text says of Tables IV and V, judged."""

from __future__ import annotations

import pandas as pd

from counterveil_lab.reproduce.papers.private_matching.costs import OURS
from counterveil_lab.reproduce.papers.private_matching.methods import LABEL, SAMPLE
from counterveil_lab.reproduce.papers.private_matching.studies import STUDIES
from counterveil_lab.reproduce.protocol import Claim, Judged, Tables, Verdict
from counterveil_lab.reproduce.rivals.apart import MODEL_MB, STEPS


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
    """Return how long synthesis takes beside PrivATE: here it is cut short, which decides nothing."""
    table = tables["table-4"]
    own, syn, aim = (_line(table, name) for name in (SAMPLE, "PrivSyn", "AIM"))
    ratio = (syn / own).dropna()
    number = f"PrivSyn over PrivATE {ratio.min():.1f} to {ratio.max():.1f}"
    number += f"; AIM {aim.iloc[0]:.0f} s on {aim.index[0]}" if len(aim) else "; AIM not run"
    why = (
        "our PrivSyn is a reduced implementation, which measures pairs of columns alone, and fits of AIM end after "
        f"{STEPS} steps"
    )
    return Judged.of(None, number, why)


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
    """Return the memory of AIM beside PrivATE: the cap on its models decides."""
    table = tables["table-5"]
    aim = _line(table, "AIM")
    if aim.empty:
        return Judged(Verdict.CANNOT_BE_CHECKED, "", "AIM was not run: its packages are apart")
    own = _line(table, LABEL)[aim.index[0]]
    number = f"AIM {aim.iloc[0]:.0f} MB, PrivATE {own:.0f} MB on {aim.index[0]}"
    why = f"its models are capped at {MODEL_MB} MB here; both of its processes are counted"
    return Judged.of(None, number, why)


def ours_beside(table: pd.DataFrame, unit: str, digits: int) -> str:
    """Return how the best of our methods stands beside every method of a table, in words."""
    mine = pd.concat([_line(table, each) for each in OURS], axis=1).min(axis=1)
    rivals = [m for m in table["method"] if m not in OURS and not str(m).endswith("as printed")]
    lines = {method: _line(table, method) for method in rivals}
    behind = [method for method, line in lines.items() if (mine[line.index] > line).any()]
    number = ", ".join(f"{study} {value:.{digits}f} {unit}" for study, value in mine.items())
    stands = f"behind {', '.join(behind)} on some study" if behind else "ahead of each on every study"
    return f"the best of our methods takes {number}: {stands}"


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
)
