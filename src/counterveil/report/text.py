"""Results as text: for a terminal of 80 columns, as a LaTeX table, and as a paragraph for a paper."""

from __future__ import annotations

from collections.abc import Iterator
from textwrap import wrap
from typing import Any

from counterveil.privacy import Adjacency, Budget
from counterveil.report.view import (
    Cells,
    View,
    assumption,
    few_words,
    from_to,
    lead_sentence,
    percent,
    probability,
    rounded,
    short_caveats,
    short_remarks,
    span,
)

_WIDTH = 79  # fits a terminal of 80 columns
_PARTS = ("sampling", "noise")


def text_of(view: View) -> str:
    """Return a view as plain text: warnings, title, tables between rules, then the named lines."""
    rule = "-" * _WIDTH
    lines = [line for text in view.first for line in wrapped(f"*** {text} ***")]
    lines += [*wrapped(view.title), *wrapped(view.lead), rule]
    for cells in view.tables:
        lines += [*text_table(cells), rule]
    lines += view.more
    for name, text in view.items:
        lines += wrapped(text, f"{name}:".ljust(12) + " ") if text else []
    return "\n".join(lines)


def wrapped(text: str, lead: str = "") -> list[str]:
    """Return the lines of a paragraph; those after the first are indented by the length of `lead`."""
    # Names of files and columns stay whole, so that they can be copied.
    indent = " " * len(lead)
    return wrap(
        text,
        _WIDTH,
        initial_indent=lead,
        subsequent_indent=indent,
        break_long_words=False,
        break_on_hyphens=False,
    )


def text_table(cells: Cells) -> Iterator[str]:
    """Yield the lines of a table whose columns are aligned.

    Where it is too wide, columns stand closer, then the two parts of the standard error are left out
    (all other forms of a result have them), then every name has a line of its own.
    """
    whole = [cells.headings, *cells.rows]
    shown = [place for place, heading in enumerate(cells.headings) if heading not in _PARTS]
    narrow = [[row[place] for place in shown] for row in whole]
    for rows, gap in ((whole, 3), (whole, 2), (narrow, 2)):
        lines = _aligned(rows, gap)
        if max(map(len, lines)) <= _WIDTH:
            yield from lines
            return
    headings, *figures = _aligned([["  ", *row[1:]] for row in narrow], 2)
    yield headings
    for row, line in zip(narrow[1:], figures, strict=True):
        yield f" {row[0]}"
        yield line


def _aligned(rows: list[list[str]], gap: int) -> list[str]:
    widths = [max(map(len, column)) + gap for column in zip(*rows, strict=True)]
    return [
        "".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True))[gap - 1 :] for row in rows
    ]


# A booktabs table for a paper.


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


# A paragraph for a paper, of at most 150 words: what was estimated, what came out, the guarantee, the limits.


MOST_WORDS = 150
_EFFECTS = 3  # that are told; the others are in the table
_FIRST = 40  # words of a warning
_CAVEATS = (600, 300, 150, 1)  # letters for what is not covered: as many as the words allow
_PUBLIC = 12  # words of one public fact
_CLUSTERS = (Adjacency.CHANGE_OUTCOMES_OF_CLUSTER, Adjacency.REPLACE_CLUSTER)


def write_up(facts: dict[str, Any]) -> str:
    """Return a result as sentences for a paper; nothing in them is private.

    What does not fit is cut in this order: what is public, the parts of standard errors, caveats but their names,
    effects after the first.
    """
    first = [few_words(f"{facts[key]}.", _FIRST) for key in ("warning", "caution") if facts.get(key)]
    for public, parts, told, letters in [
        (True, True, _EFFECTS, _CAVEATS[0]),
        (False, True, _EFFECTS, _CAVEATS[0]),
        (False, False, _EFFECTS, _CAVEATS[1]),
        *((False, False, 1, letters) for letters in _CAVEATS[1:]),
    ]:
        said = [*first, _asked(facts), *_assumed(facts), _found(facts, told, parts), _guaranteed(facts)]
        said += [_public(facts)] if public else ["What is public is listed in the full report."]
        said += (
            [f"Not covered: {short_caveats(facts['not_covered'], letters)}."] if facts["not_covered"] else []
        )
        text = " ".join(said)
        if len(text.split()) <= MOST_WORDS:
            return text
    return few_words(text, MOST_WORDS)


def _asked(facts: dict[str, Any]) -> str:
    rows, clusters = (facts["details"].get(name) for name in ("rows", "clusters"))
    unit = "clusters" if facts["guarantee"]["adjacency"] in _CLUSTERS else "rows"
    about = f" from {rows:,.0f} {unit}" if isinstance(rows, int | float) else ""
    about += f" in {clusters:,.0f} clusters" if isinstance(clusters, int | float) else ""
    effect = f'We estimated the effect of "{facts["treatment"]}" on "{facts["outcome"]}"'
    return f"{effect}{about} ({lead_sentence(facts)}; {few_words(facts['method'], 15)})."


def _assumed(facts: dict[str, Any]) -> list[str]:
    said = assumption(facts)
    if said is None:
        return []
    return [f"Parallel trends are assumed:{said.partition(':')[2].partition(';')[0]}."]


def _found(facts: dict[str, Any], told: int, parts: bool) -> str:
    effects = facts["effects"]
    if "reference_row" in facts:
        # Periods after treatment are told first.
        effects = sorted(effects, key=lambda effect: effect["before_treatment"])
    several = len(effects) > 1
    covers = "Intervals cover sampling error and privacy noise together."
    if facts.get("interval_of"):
        covers = "The interval is not one for the effect."
    # The last row of a pooled result is the one that was asked for.
    shown = [effect for effect in effects if effect.get("summary")] or effects[:told]
    found = "; ".join(
        (
            f"{effect['name']} effect is "
            if effect.get("summary")
            else f"{effect['name']}: "
            if several
            else ""
        )
        + _figures(effect, parts)
        for effect in shown
    )
    if not several:
        return f"The estimated effect is {found}. {covers}"
    if shown[0].get("summary"):
        return f"The {found}. {covers} The effects of the sites are in the table."
    left = len(effects) - len(shown)
    return f"Estimated effects: {found}{f'; {left} more are in the table' if left else ''}. {covers}"


def _figures(effect: dict[str, Any], parts: bool) -> str:
    error, interval = effect["std_error"], effect["interval"]
    total, sampling, noise = (rounded(error[part], error[part]) for part in ("total", "sampling", "noise"))
    split = f": {sampling} from sampling, {noise} from privacy noise" if parts else ""
    if error["sampling"] == 0:
        split = ", all from privacy noise: the sampling variance is lost in the noise it was released with"
    p = probability(effect["p_value"]) if "p_value" in effect else ""
    tested = f", p {p.replace('<', '< ') if p.startswith('<') else f'= {p}'}" if p else ""
    ends = from_to(interval, error["total"])
    return (
        f"{rounded(effect['estimate'], error['total'])} ({percent(interval['level'])} interval {ends}"
        f"{tested}; standard error {total}{split})"
    )


def _guaranteed(facts: dict[str, Any]) -> str:
    guarantee, spent = facts["guarantee"], Budget.from_dict(facts["spent"])
    claim = "The analysis satisfies" if guarantee["proof"] == "finite-sample" else "What is claimed:"
    remarks = "".join(f" {text[:1].upper()}{text[1:]}." for text in short_remarks(facts, 2, 18))
    return f"{claim} {guarantee['sentence']}.{remarks} It spent {spent}."


def _public(facts: dict[str, Any]) -> str:
    # A fact is a name, a colon and what is to be said of it; lists of covariates are left to the full report.
    names = [fact.partition(":")[0] for fact in facts["guarantee"]["public"]]
    short = [name if len(name.split()) <= _PUBLIC else name.partition(",")[0] for name in names]
    return f"Taken as public: {'; '.join(few_words(name, _PUBLIC) for name in short)}."
