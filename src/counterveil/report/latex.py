"""A booktabs table for a paper."""

from __future__ import annotations

from typing import Any

from counterveil.privacy import Budget
from counterveil.report.numbers import percent, probability, rounded

_SPECIAL = {
    "\\": r"\textbackslash{}",
    "&": r"\&",
    "%": r"\%",
    "$": r"\$",
    "#": r"\#",
    "_": r"\_",
    "{": r"\{",
    "}": r"\}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
}


def escape(text: str) -> str:
    """Return `text` with LaTeX's special characters made harmless."""
    return "".join(_SPECIAL.get(letter, letter) for letter in text)


def latex_table(facts: dict[str, Any]) -> str:
    """Return the result as a table that needs only the booktabs package."""
    error, interval = facts["std_error"], facts["interval"]
    total = error["total"]
    spent = Budget.from_dict(facts["spent"])
    warning = [f"% {facts['warning']}"] if facts.get("warning") else []
    note = ([f"{facts['warning']}. "] if facts.get("warning") else []) + [
        f"Standard error from sampling {rounded(error['sampling'], error['sampling'])} and privacy noise "
        f"{rounded(error['noise'], error['noise'])}; the interval covers both. "
        f"{facts['guarantee']['sentence'].capitalize()}."
    ]
    low, high = rounded(interval["low"], total), rounded(interval["high"], total)
    row = [
        f"{escape(facts['treatment'])} ({facts['estimand']})",
        rounded(facts["estimate"], total),
        rounded(total, total),
        f"[{low}, {high}]",
        probability(facts["p_value"]).replace("<", "$<$"),
    ]
    return "\n".join(
        [
            *warning,
            r"\begin{tabular}{lrrcr}",
            r"\toprule",
            rf"Effect on {escape(facts['outcome'])} & Estimate & Std. error & "
            rf"{escape(percent(interval['level']))} interval & $p$ \\",
            r"\midrule",
            " & ".join(row) + r" \\",
            r"\bottomrule",
            rf"\multicolumn{{5}}{{p{{0.9\linewidth}}}}{{\footnotesize {escape(''.join(note))} "
            rf"Spent: {escape(str(spent))}.}} \\",
            r"\end{tabular}",
        ]
    )
