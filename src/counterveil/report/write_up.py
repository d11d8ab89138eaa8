"""A paragraph for a paper, of at most 150 words: what was estimated, what came out, the guarantee, the limits."""

from __future__ import annotations

from typing import Any

from counterveil.privacy import Budget
from counterveil.report.view import few_words, lead_sentence, percent, probability, rounded, short_caveats

MOST_WORDS = 150
_EFFECTS = 3  # that are told; the others are in the table
_FIRST = 40  # words of a warning
_CAVEATS = (600, 300, 150, 1)  # letters for what is not covered: as many as the words allow
_PUBLIC = 12  # words of one public fact


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
        said = [*first, _asked(facts), _found(facts, told, parts), _guaranteed(facts)]
        said += [_public(facts)] if public else ["What is public is listed in the full report."]
        said += (
            [f"Not covered: {short_caveats(facts['not_covered'], letters)}."] if facts["not_covered"] else []
        )
        text = " ".join(said)
        if len(text.split()) <= MOST_WORDS:
            return text
    return few_words(text, MOST_WORDS)


def _asked(facts: dict[str, Any]) -> str:
    rows = facts["details"].get("rows")
    about = f" from {rows:,.0f} rows" if isinstance(rows, int | float) else ""
    effect = f'We estimated the effect of "{facts["treatment"]}" on "{facts["outcome"]}"'
    return f"{effect}{about} ({lead_sentence(facts)}; {few_words(facts['method'], 15)})."


def _found(facts: dict[str, Any], told: int, parts: bool) -> str:
    effects = facts["effects"]
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
    low, high = (rounded(interval[end], error["total"]) for end in ("low", "high"))
    return (
        f"{rounded(effect['estimate'], error['total'])} ({percent(interval['level'])} interval {low} to {high}"
        f"{tested}; standard error {total}{split})"
    )


def _guaranteed(facts: dict[str, Any]) -> str:
    guarantee, spent = facts["guarantee"], Budget.from_dict(facts["spent"])
    claim = "The analysis satisfies" if guarantee["proof"] == "finite-sample" else "What is claimed:"
    return f"{claim} {guarantee['sentence']}. It spent {spent}."


def _public(facts: dict[str, Any]) -> str:
    # A fact is a name, a colon and what is to be said of it; lists of covariates are left to the full report.
    names = [fact.partition(":")[0] for fact in facts["guarantee"]["public"]]
    short = [name if len(name.split()) <= _PUBLIC else name.partition(",")[0] for name in names]
    return f"Taken as public: {'; '.join(few_words(name, _PUBLIC) for name in short)}."
