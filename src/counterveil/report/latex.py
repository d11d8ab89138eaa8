"""A booktabs table for a paper."""

from __future__ import annotations

from typing import Any

from counterveil.privacy import Budget
from counterveil.report.numbers import percent, probability, rounded
from counterveil.report.table import effects_of, name_of, span

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
    effects = effects_of(facts)
    interval = effects[0]["interval"]
    spent = Budget.from_dict(facts["spent"])
    said_first = [facts[key] for key in ("warning", "caution") if facts.get(key)]
    warning = [f"% {text}" for text in said_first]
    note = [f"{text}. " for text in said_first] + [
        f"{_parts(effects)}; the interval covers both. {facts['guarantee']['sentence'].capitalize()}."
    ]
    return "\n".join(
        [
            *warning,
            r"\begin{tabular}{lrrcr}",
            r"\toprule",
            rf"Effect on {escape(facts['outcome'])} & Estimate & Std. error & "
            rf"{escape(percent(interval['level']))} interval & $p$ \\",
            r"\midrule",
            *(" & ".join(_row(facts["treatment"], effect)) + r" \\" for effect in effects),
            r"\bottomrule",
            rf"\multicolumn{{5}}{{p{{0.9\linewidth}}}}{{\footnotesize {escape(''.join(note))} "
            rf"Spent: {escape(str(spent))}.}} \\",
            r"\end{tabular}",
        ]
    )


def _row(treatment: str, effect: dict[str, Any]) -> list[str]:
    total = effect["std_error"]["total"]
    name = name_of(effect)
    return [
        escape(name if "arm" in effect or "name" in effect else f"{treatment} ({name})"),
        rounded(effect["estimate"], total),
        rounded(total, total),
        span(effect["interval"], total),
        probability(effect["p_value"]).replace("<", "$<$"),
    ]


def _parts(effects: list[dict[str, Any]]) -> str:
    """Return the two parts of the standard errors in words; of one effect, or of each in turn."""
    sampling, noise = (
        ", ".join(rounded(effect["std_error"][part], effect["std_error"][part]) for effect in effects)
        for part in ("sampling", "noise")
    )
    return f"Standard error from sampling {sampling} and privacy noise {noise}"
