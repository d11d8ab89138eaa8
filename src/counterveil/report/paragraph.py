"""A result as a paragraph for a paper: what was estimated, what came out, the guarantee, the limits."""

from __future__ import annotations

import re
from typing import Any

from counterveil.privacy import Budget
from counterveil.report.caveats import trends_of
from counterveil.report.measures import effect_noun, estimated, plural, value_words
from counterveil.report.view import (
    caveat_names,
    from_to,
    lead_sentence,
    percent,
    probability,
    rounded,
    unit_word,
)

MOST_WORDS = 150
_EFFECTS = 3  # that are told; the others are in the table
_METHOD, _REMARK, _PUBLIC = (
    15,
    18,
    12,
)  # words of the method, of a remark on the guarantee, of one public fact
_REMARKS = 2
_CAVEATS = (600, 300, 150, 1)  # letters for what is not covered: as many as the words allow
_LIMITS = "further limits are listed in the full report"


def write_up(facts: dict[str, Any]) -> str:
    """Return a result as sentences for a paper, of at most 150 words; nothing in them is private.

    What does not fit is left out whole, in this order: what is public, the parts of standard errors, caveats but
    their names, effects after the first, remarks on the guarantee, the method.
    """
    first = [f"{facts[key]}." for key in ("warning", "caution") if facts.get(key)]
    for public, parts, told, letters, rest in [
        (True, True, _EFFECTS, _CAVEATS[0], True),
        (False, True, _EFFECTS, _CAVEATS[0], True),
        (False, False, _EFFECTS, _CAVEATS[1], True),
        *((False, False, 1, letters, True) for letters in _CAVEATS[1:]),
        (False, False, 1, 1, False),
    ]:
        said = [*first, _asked(facts, rest), *_assumed(facts), _found(facts, told, parts)]
        said += [_guaranteed(facts, rest)]
        limits = [_not_covered(facts, letters)] if facts["not_covered"] else []
        public_said = _public(facts) if public else "What is public is listed in the full report."
        text = " ".join([*said, public_said, *limits])
        if len(text.split()) <= MOST_WORDS:
            return text
    # Warnings so long that nothing else fits; the guarantee is never left out.
    return " ".join([*said, "What is public, and what is not covered, is listed in the full report."])


def _asked(facts: dict[str, Any], method: bool) -> str:
    rows, clusters = (facts["details"].get(name) for name in ("rows", "clusters"))
    about = f" from {rows:,.0f} {unit_word(facts)}" if isinstance(rows, int | float) else ""
    about += f" in {clusters:,.0f} clusters" if isinstance(clusters, int | float) else ""
    effect = f'We estimated the effect of "{facts["treatment"]}" on "{facts["outcome"]}"'
    how = _first_clause(str(facts["method"]), _METHOD) if method else ""
    return f"{effect}{about} ({lead_sentence(facts)}{f'; {how}' if how else ''})."


def _first_clause(text: str, most: int) -> str:
    """Return a text of at most so many words, else what stands before a semicolon, colon or its first comma, or ""."""
    parts = [text, *(text[: match.start()] for match in reversed(list(re.finditer("[;:] ", text))))]
    parts.append(text.partition(", ")[0])
    return next((part for part in parts if len(part.split()) <= most and _closed(part)), "")


def _closed(text: str) -> bool:
    """Return whether every bracket is closed."""
    return all(text.count(one) == text.count(other) for one, other in ("()", "[]", "{}"))


def _not_covered(facts: dict[str, Any], letters: int) -> str:
    names, left = caveat_names(facts, letters)
    return f"Not covered: {'; '.join([*names, *([_LIMITS] if left else [])])}."


def _assumed(facts: dict[str, Any]) -> list[str]:
    trends = trends_of(facts)
    return [] if trends is None else [f"Parallel trends are assumed: {trends}."]


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
            f"{effect['name']} {effect_noun(facts)} is "
            if effect.get("summary")
            else f"{effect['name']}: "
            if several
            else ""
        )
        + _figures(facts, effect, parts)
        for effect in shown
    )
    if not several:
        return f"{estimated(facts)} {found}. {covers}"
    if shown[0].get("summary"):
        return f"The {found}. {covers} The effects of the sites are in the table."
    left = len(effects) - len(shown)
    more = f"; {left} more are in the table" if left else ""
    return f"Estimated {plural(effect_noun(facts))}: {found}{more}. {covers}"


def _figures(facts: dict[str, Any], effect: dict[str, Any], parts: bool) -> str:
    error, interval = effect["std_error"], effect["interval"]
    total, sampling, noise = (rounded(error[part], error[part]) for part in ("total", "sampling", "noise"))
    split = f": {sampling} from sampling, {noise} from privacy noise" if parts else ""
    if error["sampling"] == 0:
        split = ", all from privacy noise: the sampling variance is lost in the noise it was released with"
    adjusted = "Holm-adjusted " if "holm_p_value" in effect else ""
    p = probability(effect.get("holm_p_value", effect["p_value"])) if "p_value" in effect else ""
    tested = f", {adjusted}p {p.replace('<', '< ') if p.startswith('<') else f'= {p}'}" if p else ""
    value, ends = value_words(facts, effect)
    if "curvature_interval" in facts:
        ends += f", {from_to(facts['curvature_interval'], error['total'])} allowing for undetected curvature"
    return f"{value} ({percent(interval['level'])} interval {ends}{tested}; standard error {total}{split})"


def _guaranteed(facts: dict[str, Any], remarks: bool) -> str:
    guarantee, spent = facts["guarantee"], Budget.from_dict(facts["spent"])
    claim = "The analysis satisfies" if guarantee["proof"] == "finite-sample" else "What is claimed:"
    said = [_first_clause(text, _REMARK) for text in guarantee["remarks"]] if remarks else []
    kept = [f"{text[:1].upper()}{text[1:]}." for text in said[:_REMARKS] if text]
    if len(kept) < len(guarantee["remarks"]):
        kept.append("Further remarks on the guarantee are in the full report.")
    return " ".join([f"{claim} {guarantee['sentence']}.", *kept, f"It spent {spent}."])


def _public(facts: dict[str, Any]) -> str:
    # A fact is a name, a colon and what is to be said of it; long ones are left to the full report.
    names = [fact.partition(":")[0] for fact in facts["guarantee"]["public"]]
    short = list(dict.fromkeys(filter(None, (_first_clause(name, _PUBLIC) for name in names))))
    left = len(short) < len(names)
    return f"Taken as public: {'; '.join(short)}{'; the full report lists the rest' if left else ''}."
