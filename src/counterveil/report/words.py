"""The words of an answer, and how to ask its question again.

In: the facts of an answer (`report_facts`), with estimates in units of the effect. Out: sentences for reports and
papers. A direction is claimed only where the interval excludes no effect; odds of a guess are said to change by at most
exp(epsilon), the definition of differential privacy, printed rounded up. Only released and public facts are read.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from fractions import Fraction
from math import ceil, exp, floor, log10
from typing import Any

from counterveil.privacy import Adjacency, Budget, Proof, show
from counterveil.report.caveats import opening_of, supposed_words, target_words, trends_of
from counterveil.report.measures import direction_words, effect_noun, estimated, measured, plural, value_words
from counterveil.report.pictures import widest
from counterveil.report.text import from_to, percent, probability, rounded
from counterveil.report.view import caveat_names, lead_sentence, unit_word

ANEW = (
    "The same question of the same data. Noise is drawn anew and the budget is spent again, unless a ledger holds the "
    "answer under the same request id: then it is returned, at no cost. There is no seed to give away."
)
SIMULATED = (
    "The noise of this result came from a seed, which is left out: what is asked here draws true noise."
)
FREE = "Pooling reads no data and spends nothing: the same files give the same answer."


@dataclass(frozen=True, slots=True)
class Repeat:
    """How to ask the same again, and what repeating means.

    Attributes
    ----------
    study : Study or None
        The study, where there is one.
    python : str
        Call in Python.
    command : str
        Command; empty where there is none.
    remark : str
        What repeating means: a new release, or the stored answer.
    """

    study: Any  # a `Study`, or None
    python: str
    command: str = ""
    remark: str = ANEW

    def to_dict(self) -> dict[str, str]:
        """Return the texts by name, that of the study as a file.

        Returns
        -------
        dict of str to str
            ``study``, ``python``, ``command`` and ``remark``.
        """
        # Written only here: most answers are never made a report of.
        study = "" if self.study is None else self.study.to_toml()
        return {"study": study, "python": self.python, "command": self.command, "remark": self.remark}


# The first page of a report in plain words: the question, the answer, and what is protected and how strongly.
#
# A result as a paragraph for a paper: what was estimated, what came out, the guarantee, the limits.


Facts = dict[str, Any]

_TOGETHER = "which hold together and include the privacy noise"
_ALONE = "each of which holds by itself and includes the privacy noise"
_TOLD = 3  # effects that are told by name
_SCALE = "For comparison: epsilon 0.1 allows a factor of 1.11, epsilon 1 one of 2.72, epsilon 5 one of 148."


# What each kind of answer is about; others are about one effect.
_KINDS = {
    "SurvivalResult": "survival",
    "QuantilesResult": "quantiles",
    "OutcomesResult": "outcomes",
    "GroupsResult": "groups",
    "ArmsResult": "arms",
    "PolicyValue": "policy",
    "TargetingCurve": "curve",
    "EventStudyResult": "periods",
    "CateAnswers": "queries",
    "CateModel": "function",
    "RatioResult": "ratio",
}


def kind_of(facts: Facts) -> str:
    """Return what the answer that facts are of is about."""
    return "pooled" if "sites" in facts else _KINDS.get(facts["kind"], "one")


# What was asked of a treatment (0) and an outcome (1), by what the answer is about.
_QUESTIONS = {
    "groups": "By how much does {0} change {1} in each group, by {by}?",
    "arms": "By how much does each arm of {0} change {1}, compared with “{reference}”?",
    "policy": "What would {1} gain if {0} were given by a rule, instead of to nobody or to everybody?",
    "curve": "What would {1} gain if {0} were given first to those whom a model ranks highest?",
    "periods": "By how much does {0} change {1} in each period, compared with period {period}?",
    "queries": "By how much does {0} change {1}, and for whom more or less?",
    "function": "By how much does {0} change {1}, and for whom more or less?",
    "pooled": "By how much does {0} change {1}, over {sites} sites together?",
    "survival": "Does {0} change the {1}?",
    "quantiles": "By how much does {0} change the quantiles of {1}?",
    "outcomes": "By how much does {0} change each of several outcomes?",
    "ratio": "By how much does {0} change the ratio {1}?",
    "one": "By how much does {0} change {1}, on average?",
}


def question_words(facts: Facts) -> str:
    """Return what was asked, as a person would ask it."""
    return _QUESTIONS[kind_of(facts)].format(
        f"“{facts['treatment']}”",
        f"“{facts['outcome']}”",
        by=", ".join(facts.get("by", ())),
        reference=facts.get("reference"),
        period=facts.get("reference_row", {}).get("name"),
        sites=len(facts.get("sites", ())),
    )


def answer_words(facts: Facts) -> list[str]:
    """Return what came out, in sentences that claim no more than the intervals do."""
    target = opening_of(facts, "interval_target")
    if target is not None:
        released = next((one for one in facts["effects"] if one.get("summary")), facts["effects"][0])
        return [
            f"No interval for the effect can be given. The released number is "
            f"{_amount(released)}; the interval around it is for {target_words(target)}.",
        ]
    if not facts["effects"]:
        return ["Nothing was asked for at any point."]
    told = {
        "pooled": _pooled,
        "policy": _policy,
        "curve": _curve,
        "periods": _periods,
        "function": _function,
    }.get(kind_of(facts), _several if len(facts["effects"]) > 1 else _one)
    return [*told(facts), *supposed_words(facts)]


def _one(facts: Facts) -> list[str]:
    (effect,) = facts["effects"]
    about = "" if "sentence" in facts and kind_of(facts) != "one" else f" ({lead_sentence(facts)})"
    return [f"{_direction(facts, effect)}{about}.", _interval(facts, effect)]


def _direction(facts: Facts, effect: Facts) -> str:
    if measured(facts):
        return direction_words(facts, effect)
    error, estimate = effect["std_error"]["total"], float(effect["estimate"])
    size = rounded(abs(estimate), error)
    way = "higher" if estimate >= 0 else "lower"
    return f"With “{facts['treatment']}”, “{facts['outcome']}” is estimated to be {size} {way} than without"


def _interval(facts: Facts, effect: Facts, whose: str = "The") -> str:
    """Return what an interval says, and what it does not."""
    ends, null = effect["interval"], effect.get("null", 0.0)
    said = f"{whose} {percent(ends['level'])} interval, which includes the privacy noise, is "
    said += f"{value_words(facts, effect)[1]}."
    if null is None:
        holds = "It excludes" if _leaves_out(effect, ends) else "It includes"
        return f"{said} {holds} no effect, for which the number is infinite."
    value = "Zero" if null == 0 else f"{null:g}, no effect,"
    if _leaves_out(effect, ends):
        return f"{said} {value} lies outside: neither chance nor the noise explains an effect of this direction well."
    return f"{said} {value} lies inside: no effect, and every effect in the interval, fits what was released."


def _leaves_out(effect: Facts, ends: Facts) -> bool:
    """Return whether an interval leaves out no effect; an end may be missing, and a number needed to treat has gaps."""
    null, low, high = effect.get("null", 0.0), ends["low"], ends["high"]
    if null is None:
        return low is not None and high is not None and not ends.get("gap")
    return (low is not None and low > null) or (high is not None and high < null)


def _amount(effect: Facts) -> str:
    return rounded(effect["estimate"], effect["std_error"]["total"])


def _clear(effects: list[Facts]) -> list[Facts]:
    """Return the effects whose interval leaves out zero, with the intervals that hold for all where there are any."""
    return [effect for effect in effects if _leaves_out(effect, widest(effect))]


def _named(effects: list[Facts]) -> str:
    told = [f"{effect['name']} ({_amount(effect)})" for effect in effects[:_TOLD]]
    left = len(effects) - len(told)
    return ", ".join([*told, *([f"and {left} more"] if left else [])])


def _several(facts: Facts) -> list[str]:
    effects, kind = facts["effects"], kind_of(facts)
    clear = _clear(effects)
    thing = {"groups": "group", "arms": "arm", "queries": "point", "outcomes": "outcome"}.get(
        kind, "comparison"
    )
    level = percent(facts["level"])
    first = f"{len(effects)} {plural(effect_noun(facts))} were estimated, one for each {thing}: {_named(effects)}."
    together = _TOGETHER if "simultaneous_interval" in effects[0] else _ALONE
    nothing = "zero" if effects[0].get("null", 0.0) == 0 else "the value of no effect"
    if not clear:
        second = f"All their {level} intervals, {together}, contain {nothing}."
    elif len(clear) == len(effects):
        second = f"All their {level} intervals, {together}, exclude {nothing}."
    else:
        others = "and include it for the others"
        second = f"The {level} intervals, {together}, exclude {nothing} for {_named(clear)}, {others}."
    apart = {"groups": "Whether two groups differ from each other is another question."}
    return [first, second, *([apart[kind]] if kind in apart else [])]


def _pooled(facts: Facts) -> list[str]:
    effect = next(one for one in facts["effects"] if one.get("summary"))
    first = f"{_direction(facts, effect)}, over {len(facts['sites'])} sites ({lead_sentence(facts)})."
    return [first, _interval(facts, effect)]


def _policy(facts: Facts) -> list[str]:
    nobody, everybody, *_ = facts["effects"]
    return [
        f"The rule changes “{facts['outcome']}” by {_amount(nobody)} per person compared with treating nobody, and by "
        f"{_amount(everybody)} compared with treating everybody.",
        _interval(facts, nobody, "Compared with nobody, the"),
        _interval(facts, everybody, "Compared with everybody, the"),
    ]


def _curve(facts: Facts) -> list[str]:
    effects, shares = facts["effects"], facts["shares"]
    first, last = effects[0], effects[-1]
    return [
        f"Treating the {shares[0]:.0%} ranked highest changes “{facts['outcome']}” by {_amount(first)} per person of "
        f"everybody; treating everybody changes it by {_amount(last)}.",
        _interval(facts, last, "For everybody, the"),
        *(
            f"Is the ranking better than chance? {text}; both are 0 for one that is not."
            for _, text in facts["notes"]
        ),
    ]


def _periods(facts: Facts) -> list[str]:
    after = [effect for effect in facts["effects"] if not effect["before_treatment"]]
    clear = _clear(after)
    hold = f"by {percent(facts['level'])} intervals that hold for all periods at once and include the privacy noise"
    if clear:
        many = f"{len(clear)} of {len(after)} periods"
        told = f"After treatment began, {many} are clear of zero, {hold}: {_named(clear)}."
    else:
        told = f"After treatment began, no period is clear of zero, {hold}: {_named(after)}."
    p = facts.get("pre_trend_p_value")
    before = (
        "There is one period before treatment, so that earlier trends cannot be compared."
        if p is None
        else f"Before treatment the arms {'differed already' if p < 1 - facts['level'] else 'did not clearly differ'} "
        f"(p {'below 0.001' if p < 0.001 else f'{p:.3f}'}); this does not show that trends are parallel afterwards."
    )
    return [told, before]


def _function(facts: Facts) -> list[str]:
    effects = facts["effects"]
    if len(effects) == 1:
        first = f"{_direction(facts, effects[0])}; the budget did not afford to tell people apart."
        return [first, _interval(facts, effects[0])]
    centre = effects[0]
    return [
        "The effect was released as a function of the covariates. With all of them at the middle of their range or "
        f"their first label it is {_amount(centre)}.",
        _interval(facts, centre, "There, the"),
        *_several(facts)[1:2],
    ]


_WHOM = {
    Adjacency.CHANGE_OUTCOME: "the outcome in any one row",
    Adjacency.CHANGE_OUTCOMES_OF_ROW: "all outcomes in any one row",
    Adjacency.REPLACE_RECORD: "everything in any one row",
    Adjacency.CHANGE_OUTCOMES_OF_PERSON: "all outcomes of any one person",
    Adjacency.REPLACE_PERSON: "everything about any one person",
    Adjacency.CHANGE_OUTCOMES_OF_CLUSTER: "all outcomes of any one cluster",
    Adjacency.REPLACE_CLUSTER: "everything about any one cluster",
    Adjacency.CHANGE_PAIR: "the treatment and the outcome in any one row",
}
_KNOWN = {
    "outcome": "Who took part, their treatment and their covariates are taken as public, and are not protected.",
    "treatment and outcome": "Who took part and their covariates are taken as public, and are not protected.",
    "record": "How many {unit} there are, and the declared ranges and labels, are public.",
}


def protection_words(facts: Facts) -> list[str]:
    """Return what is protected, and what epsilon and delta mean for a guess about it."""
    guarantee = facts["guarantee"]
    epsilon, delta = Fraction(guarantee["epsilon"]), Fraction(guarantee["delta"])
    said = f"epsilon {show(epsilon)}" + (f" and delta {show(delta)}" if delta else "")
    proof, whom = Proof(guarantee["proof"]), _WHOM[guarantee["adjacency"]]
    if proof is Proof.NONE:
        return [
            f"Nothing is protected: the noise came from a seed, and whoever knows it can take it away. With true noise "
            f"it would be {whom}, at {said}."
        ]
    if proof is Proof.DECLARED:
        return [
            f"This report protects {whom}, at {said}, if the bounds hold that the author of its method declares. "
            f"They were not proved with the package. `counterveil audit` searches for data that refute them."
        ]
    if proof is not Proof.FINITE_SAMPLE:
        claim = "is not proved in finite samples" if proof is Proof.ASYMPTOTIC else "has been refuted"
        return [f"Protection of {whom} at {said} is claimed by its authors, and {claim}. Do not rely on it."]
    odds = f"change the odds of a guess about it by a factor of more than {_factor(float(epsilon))}"
    slack = f", up to an additional probability of {show(delta)}" if delta else ""
    spent = Budget.from_dict(facts["spent"])
    first = f"This report protects {whom}, at {said}: whatever else somebody knows, it cannot {odds}{slack}."
    cost = [] if (spent.epsilon, spent.delta) == (epsilon, delta) else [f"All together {spent} was spent."]
    return [
        first,
        _SCALE,
        _KNOWN[str(guarantee["protects"])].format(unit=unit_word(facts)),
        *cost,
        "Other results about the same people add to this; the ledger of the data keeps their sum, if there is one.",
    ]


def _factor(epsilon: float) -> str:
    factor = exp(min(epsilon, 60.0))
    if epsilon > 16:
        return f"e to the power of {epsilon:.3g}"
    return f"{ceil(factor):,}" if factor >= 100 else f"{rounded_up(factor):.3g}"


def rounded_up(factor: float) -> float:
    """Return the next number of three digits from a positive one: what is said to be a largest factor is one."""
    step = 10.0 ** (floor(log10(factor)) - 2)
    return ceil(factor / step) * step


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
    their names, effects after the first, remarks on the guarantee, the method, how far sites differ.
    """
    first = [f"{facts[key]}." for key in ("guarantee_warning", "warning") if facts.get(key)]
    for public, parts, told, letters, rest, sites in [
        (True, True, _EFFECTS, _CAVEATS[0], True, True),
        (False, True, _EFFECTS, _CAVEATS[0], True, True),
        (False, False, _EFFECTS, _CAVEATS[1], True, True),
        *((False, False, 1, letters, True, True) for letters in _CAVEATS[1:]),
        (False, False, 1, 1, False, True),
        (False, False, 1, 1, False, False),
    ]:
        said = [*first, _asked(facts, rest), *_assumed(facts), _found(facts, told, parts)]
        said += _sites_differ(facts, sites)
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
    lead = lead_sentence(facts) if method else lead_sentence(facts).partition(";")[0]
    return f"{effect}{about} ({lead}{f'; {how}' if how else ''})."


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
    if facts.get("interval_target"):
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
        return f"The {found}. {covers}"
    left = len(effects) - len(shown)
    more = f"; {left} more {'is' if left == 1 else 'are'} in the table" if left else ""
    return f"Estimated {plural(effect_noun(facts))}: {found}{more}. {covers}"


def _sites_differ(facts: Facts, told: bool) -> list[str]:
    """Return how far pooled sites differ, or only where their effects are, as a sentence of its own."""
    found = facts.get("heterogeneity")
    if "sites" not in facts:
        return []
    if not told or found is None:
        return ["The effects of the sites are in the table."]
    scale = "" if found["scale"] == "difference" else f" ({found['scale']}s)"
    p = probability(found["p_value"])
    p = f"p {p}" if p.startswith("<") else f"p = {p}"
    said = f"Sites, listed in the table, differ{scale}: Q = {found['q']:.3g} ({found['df']} df, {p}), "
    said += f"I² = {found['i_squared']:.0%}, tau² = {found['tau_squared']:.2g}"
    if "prediction" not in facts:
        return [f"{said}."]
    error = next(one for one in facts["effects"] if one.get("summary"))["std_error"]["total"]
    ends = facts["prediction"]
    return [f"{said}; {percent(ends['level'])} prediction interval {from_to(ends, error)}."]


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
