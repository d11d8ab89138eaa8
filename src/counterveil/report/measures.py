"""Ratios, odds ratios, lifts and numbers needed to treat in words, from the facts of a result."""

from __future__ import annotations

from typing import Any

from counterveil.report.numbers import Facts, from_to, percent, probability, rounded

_DIFFERENCE, _NEEDED = "difference", "nnt"


def measured(facts: Facts) -> bool:
    """Return whether effects are on another scale than that of differences."""
    return str(facts.get("measure", _DIFFERENCE)) != _DIFFERENCE


def effect_noun(facts: Facts) -> str:
    """Return what the numbers of a result are called: "effect", or the name of the measure."""
    return str(facts["called"]) if measured(facts) else "effect"


def plural(noun: str) -> str:
    """Return the noun of several numbers: "risk ratios", "ratios of means", "numbers needed to treat"."""
    first, _, rest = noun.partition(" ")
    return f"{first}s {rest}" if rest.startswith(("of", "needed")) else f"{noun}s"


def estimated(facts: Facts) -> str:
    """Return the first words of a sentence that says what one estimate is."""
    if not measured(facts):
        return "The estimated effect is"
    between = "" if facts["measure"] in (_NEEDED, "lift") else " (treated over control)"
    return f"The {effect_noun(facts)}{between} is"


def value_words(facts: Facts, effect: Facts) -> tuple[str, str]:
    """Return an estimate and the ends of its interval as words of a sentence."""
    total = effect["std_error"]["total"]
    if facts.get("measure") == _NEEDED:
        return f"{_amount(effect)} for one outcome {_way(effect['estimate'])}", _ends(effect)
    return rounded(effect["estimate"], total), from_to(effect["interval"], total)


def direction_words(facts: Facts, effect: Facts) -> str:
    """Return what treatment does to the outcome, on the scale of the measure."""
    treatment, outcome = f"“{facts['treatment']}”", f"“{facts['outcome']}”"
    estimate, error = effect["estimate"], effect["std_error"]["total"]
    amount, measure = rounded(estimate, error), facts["measure"]
    mean = f"With {treatment}, the mean of {outcome} is estimated to be"
    if measure == _NEEDED:
        return f"For one outcome {_way(estimate)}, an estimated {_amount(effect)} people have to be treated"
    if measure == "odds_ratio":
        return f"With {treatment}, the odds of {outcome} are estimated to be {amount} times those without"
    if measure == "lift" and estimate is not None:
        size = rounded(100 * abs(estimate), None if error is None else 100 * error)
        way = "higher" if estimate >= 0 else "lower"
        return f"{mean} {size} % {way} than without, a lift of {amount}"
    return f"{mean} {amount} times that without"


# Numbers needed to treat have a sign in tables, and none in sentences.


def needed_sentence(effect: Facts) -> str:
    """Return a number needed to treat and its interval without signs: for one outcome more or fewer."""
    level = f"{percent(effect['interval']['level'])} interval {_ends(effect)}"
    amount, way = _amount(effect), f"treated for one outcome {_way(effect['estimate'])}"
    return f"{amount} {way} ({level})" if effect["interval"].get("gap") else f"{amount} ({level}) {way}"


def _amount(effect: Facts) -> str:
    estimate = effect["estimate"]
    return "infinitely many" if estimate is None else rounded(abs(estimate), effect["std_error"]["total"])


def _ends(effect: Facts) -> str:
    """Return the ends of an interval, or its two parts with what each is for (Altman 1998)."""
    ends, error, estimate = effect["interval"], effect["std_error"]["total"], effect["estimate"]
    if not ends.get("gap"):
        low, high = sorted(abs(ends[end]) for end in ("low", "high"))
        return f"{rounded(low, error)} to {rounded(high, error)}"
    parts = [f"at least {_end(end)} for one {_way(end)}" for end in ends["gap"] if end is not None]
    # The direction of the estimate comes first.
    return " or ".join(parts if estimate is not None and estimate < 0 else parts[::-1]) or "every number"


def _end(value: float) -> str:
    """Return the end of a part, whose standard error says nothing, with three digits."""
    return rounded(abs(value), abs(value) / 10)


def _way(value: float | None) -> str:
    return "fewer" if value is not None and value < 0 else "more"


_SHOWN_BY = {"superiority": "superior", "noninferiority": "not inferior", "equivalence": "equivalent"}


def margin_sentence(facts: dict[str, Any]) -> str:
    """Return a test against a margin in words: what is shown or not, the interval and the bounds, and p."""
    low, high = facts["bounds"]
    inside = f"between {low:.4g} and {high:.4g}" if None not in (low, high) else ""
    inside = inside or (f"above {low:.4g}" if high is None else f"below {high:.4g}")
    ends = ", ".join(f"{end:.4g}" for end in facts["interval"])
    shown = "" if facts["met"] else "not shown to be "
    return (
        f"{shown}{_SHOWN_BY[facts['kind']]}: effect {inside}; estimate {facts['estimate']:.4g}, "
        f"{percent(facts['level'])} CI [{ends}], one-sided p {probability(facts['p_value'])}"
    )
