"""A booktabs table for a paper."""

from __future__ import annotations

from typing import Any

from counterveil.privacy import Budget
from counterveil.report.text import (
    brief,
    effects_of,
    lead_sentence,
    name_of,
    percent,
    probability,
    rounded,
    span,
)

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


# A paragraph for a paper: what was estimated, what is promised, what came out, what is not covered.


def write_up(facts: dict[str, Any]) -> str:
    """Return a result as sentences for the methods and results of a paper; nothing in them is private."""
    said_first = [f"{facts[key]}." for key in ("warning", "caution") if facts.get(key)]
    return " ".join([*said_first, _asked(facts), _promised(facts), _found(facts), _left_out(facts)])


def _asked(facts: dict[str, Any]) -> str:
    lead = lead_sentence(facts)
    return f'We estimated the effect of "{facts["treatment"]}" on "{facts["outcome"]}" ({lead}; {facts["method"]}).'


def _promised(facts: dict[str, Any]) -> str:
    """Return the promise, with what was released under it and what it takes as public."""
    promise = facts["guarantee"]
    names = ", ".join(dict.fromkeys(name for name, _ in facts["releases"]))
    public = "; ".join(map(brief, promise["public"]))
    remarks = "".join(f" {remark[:1].upper()}{remark[1:]}." for remark in promise["remarks"])
    claim = "The analysis satisfies" if promise["proof"] == "finite-sample" else "What is claimed:"
    return (
        f"{claim} {promise['sentence']}. Noise was added to everything that was released ({names}); "
        f"this spent {Budget.from_dict(facts['spent'])}. Taken as public: {public}.{remarks}"
    )


def _found(facts: dict[str, Any]) -> str:
    effects = effects_of(facts)
    several = len(effects) > 1
    found = "; ".join((f"{name_of(effect)}: " if several else "") + _figures(effect) for effect in effects)
    if several:
        return f"Estimated effects: {found}. Intervals cover sampling error and privacy noise together."
    covers = "The interval covers sampling error and privacy noise together."
    if facts.get("interval_of"):
        covers = f"The interval is for {facts['interval_of']}; it is not one for the effect."
    return f"The estimated effect is {found}. {covers}"


def _figures(effect: dict[str, Any]) -> str:
    error, interval = effect["std_error"], effect["interval"]
    total, sampling, noise = (rounded(error[part], error[part]) for part in ("total", "sampling", "noise"))
    parts = f"{sampling} from sampling, {noise} from privacy noise"
    if error["sampling"] == 0:
        parts = (
            "all of it from privacy noise; the variance of sampling is lost in the noise it was released with"
        )
    p = probability(effect["p_value"])

    def shown(value: float) -> str:
        return rounded(value, error["total"])

    return (
        f"{shown(effect['estimate'])} ({percent(interval['level'])} interval "
        f"{shown(interval['low'])} to {shown(interval['high'])}, "
        f"p {p if p.startswith('<') else f'= {p}'}; standard error {total}: {parts})"
    )


def _left_out(facts: dict[str, Any]) -> str:
    return f"Not covered: {'; '.join(facts['not_covered'])}." if facts["not_covered"] else ""
