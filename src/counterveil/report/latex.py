"""A booktabs table for a paper."""

from __future__ import annotations

from typing import Any

from counterveil.privacy import Budget
from counterveil.report.view import Cells, percent, probability, rounded, span

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
    "<": "$<$",
    ">": "$>$",
}


def escape(text: str) -> str:
    """Return `text` with LaTeX's special characters made harmless."""
    return "".join(_SPECIAL.get(letter, letter) for letter in text)


def latex_table(facts: dict[str, Any]) -> str:
    """Return the effects of a result as a table, with errors, guarantee and price in its note."""
    effects = facts["effects"]
    first = [facts[key] for key in ("warning", "caution") if facts.get(key)]
    sentence = facts["guarantee"]["sentence"]
    note = [f"{text}." for text in first] + [
        f"{_parts(effects)}; the interval covers both.",
        f"{sentence[:1].upper()}{sentence[1:]}.",
        f"Spent: {Budget.from_dict(facts['spent'])}.",
    ]
    tested = any("p_value" in effect for effect in effects)
    level = percent(facts["level"])
    headings = [
        f"Effect on {facts['outcome']}",
        "Estimate",
        "Std. error",
        f"{level} interval",
        *["p"] * tested,
    ]
    rows = [_row(facts["treatment"], effect, len(effects) > 1) for effect in effects]
    return latex(Cells(headings, rows), " ".join(note), first)


def latex(cells: Cells, note: str = "", comments: list[str] | None = None) -> str:
    """Return cells as a table that needs only the booktabs package; comments stand above it."""
    columns = len(cells.headings)
    return "\n".join(
        [
            *(f"% {' '.join(text.split())}" for text in comments or []),
            rf"\begin{{tabular}}{{l{'r' * (columns - 1)}}}",
            r"\toprule",
            " & ".join(map(escape, cells.headings)) + r" \\",
            r"\midrule",
            *(" & ".join(map(escape, row)) + r" \\" for row in cells.rows),
            r"\bottomrule",
            *(
                [rf"\multicolumn{{{columns}}}{{p{{0.9\linewidth}}}}{{\footnotesize {escape(note)}}} \\"]
                if note
                else []
            ),
            r"\end{tabular}",
        ]
    )


def _row(treatment: str, effect: dict[str, Any], several: bool) -> list[str]:
    total, name = effect["std_error"]["total"], str(effect["name"])
    return [
        name if several else f"{treatment} ({name})",
        rounded(effect["estimate"], total),
        rounded(total, total),
        span(effect["interval"], total),
        *([probability(effect["p_value"])] if "p_value" in effect else []),
    ]


def _parts(effects: list[dict[str, Any]]) -> str:
    """Return the two parts of the standard errors in words; of one effect, or of each in turn."""
    sampling, noise = (
        ", ".join(rounded(effect["std_error"][part], effect["std_error"][part]) for effect in effects)
        for part in ("sampling", "noise")
    )
    return f"Standard error from sampling {sampling} and privacy noise {noise}"
