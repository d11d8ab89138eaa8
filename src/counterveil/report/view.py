"""What a result shows: its figures by name, in order.

In: the facts of an answer. Out: a `View`: a title, cells of tables with estimates and intervals in the
answer's units, the guarantee in a line (what is protected, epsilon, delta), and what intervals do not cover,
the worst first. `page.py` turns views into Markdown and HTML. Nothing is computed from rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from fractions import Fraction
from statistics import NormalDist
from typing import Any

from counterveil.privacy import Adjacency, Budget, Estimand, Guarantee, Proof, Protected, show
from counterveil.report.caveats import caveat_words, opening_of, target_words, trends_of
from counterveil.report.confounding import effect_cells as sensitivity_cells
from counterveil.report.confounding import sensitivity_items
from counterveil.report.text import (
    Cells,
    Facts,
    Item,
    View,
    few_words,
    percent,
    probability,
    rounded,
    span,
    text_table,
    with_interval,
)

LABELS = {
    "bias_allowance": "bias that the interval allows for",
    "confounding_bound": "bound on confounding",
    "cut_points": "cut points (released)",
    "effect_noise_sd": "SD of the effect's noise (not protected)",
    "explained_variance": "share of outcome variance explained (released)",
    "fold_bound": "bound on a fold's effect",
    "fold_bound_centre": "centre of that bound",
    "mechanism": "noise",
    "matched_strata": "strata with both arms",
    "least_score_kept": "least propensity score kept",
    "matches_at_limit": "share of matches at the limit",
    "max_delta_loss": "delta lost, at most",
    "max_propensity": "highest propensity score",
    "max_uses": "most uses of a unit, by arm",
    "max_uses_control": "most uses of a control unit",
    "max_uses_treated": "most uses of a treated unit",
    "max_weight": "largest weight of a person",
    "site_weight_limit": "largest weight that a site may have",
    "max_weight_ratio": "largest weight relative to equal weights",
    "max_weight_times_rows": "largest weight times rows",
    "min_epsilon_loss": "epsilon lost, at least",
    "min_propensity": "lowest propensity score",
    "model_budget_share": "share of the budget for the model",
    "moved_by_squares_and_products": "how far squares and products surely move the effect",
    "residual_passes": "passes over the residuals",
    "residual_sd": "residual SD",
    "rows_per_fold": "rows per fold, about",
    "score_clip": "clip of the scores, in half ranges",
    "se_models": "standard error from both models",
    "se_sampling": "standard error from sampling",
    "se_score_noise": "standard error from the score's noise",
    "se_shrunk": "its standard error",
    "share_treated": "share treated (released)",
    "selected_terms": "nonlinear and interaction terms that predict treatment",
    "shared_noise_bound": "bound on noise shared by both models",
    "short_of_neighbours": "units with fewer neighbours",
    "look": "planned look",
    "look_boundary": "p-value from which on down this look rules out zero",
    "looks_left": "planned looks to come",
    "panel": "panel",
    "people_in_every_period": "people measured in every period",
    "people_in_any_period": "people in the panel",
    "level_of_all_looks": "level of all looks together",
    "rows_where": "rows of the study: those where",
    "shrinkage": "shrinkage by randomized response",
    "strata_weight": "weight of the strata",
    "unmatched": "units without a match",
    "unmatched_share": "share in strata without one of the arms (released)",
    "variance_budget_share": "share of the budget for variances",
    "variance_noise_sd": "SD of the variance's noise (not protected)",
    "weight_kept": "weight kept (released)",
    "weight_limit": "limit on a person's weight",
}

# Figures that count the rows of an analysis.
_COUNTED = ("rows", "rows_per_fold", "max_weight_times_rows")


def label(key: str, unit: str = "rows") -> str:
    """Return the words for a key of `details`: those of the table, or the identifier with spaces.

    `unit` is what the rows of the analysis are, where those of a person or cluster became one.
    """
    found = LABELS.get(key, key.replace("_", " "))
    return found.replace("rows", unit) if key in _COUNTED else found


def details_sentence(details: Mapping[str, Any], unit: str = "rows") -> str:
    """Return the single figures that go with a result, in words."""
    return "; ".join(
        f"{label(key, unit)}: {f'{value:.4g}' if isinstance(value, float) else value}"
        for key, value in details.items()
    )


# What a result shows, before it becomes text or HTML: warnings, tables and named lines, short or in full.
#
# Everything here is made from the facts of `report_facts()`. Every effect in them is a table with `name`, `estimate`,
# `std_error`, `interval` and, where there are any, `simultaneous_interval`, `p_value`, `size` and `weight`.


_LONGEST = 1200  # letters of one public fact in a full report
_ROWS = 12  # effects of a short table
_CAVEAT, _CAVEATS = 72, 190  # letters of one caveat in a summary, and of all of them
_METHOD = 16  # words
_REMARKS, _REMARK = 4, 30  # remarks on the guarantee in a summary, and words of each
_PROOFS = {
    Proof.FINITE_SAMPLE: "finite-sample proof",
    Proof.DECLARED: "IF THE DECLARED BOUNDS HOLD",
    Proof.ASYMPTOTIC: "NOT PROVED IN FINITE SAMPLES",
    Proof.REFUTED: "CLAIMED AND REFUTED",
}


def effect_cells(facts: Facts, most: int | None = None) -> Cells:
    """Return the table of effects; several effects have an interval for all of them together as well."""
    effects = facts["effects"]
    # A list of queries may be empty.
    first, level = effects[0] if effects else {}, percent(facts["level"])
    headings = ["", *["people"] * ("by" in facts), "estimate", "std. error", "sampling", "noise"]
    headings += [f"{level} interval", *[f"simultaneous {level}"] * ("simultaneous_interval" in first)]
    tested = "p, Holm" if "holm_p_value" in first else "p"
    headings += ["weight"] * ("weight" in first) + [tested] * ("p_value" in first)
    rows = [_effect(effect, "by" in facts) for effect in effects]
    reference = facts.get("reference_row")
    if reference is not None:
        # The period that the others are compared with has no error.
        empty = [""] * (len(headings) - 3)
        rows.insert(reference["place"], [reference["name"], "0", *empty, "reference"])
    return Cells(headings, rows[:most], "Effects")


def _effect(effect: Facts, sized: bool) -> list[str]:
    error = effect["std_error"]
    total = error["total"]
    both = effect.get("simultaneous_interval")
    adjusted: Any = effect.get("holm_p_value", effect.get("p_value"))
    return [
        str(effect["name"]),
        *([f"{max(round(effect['size']), 0):,}"] if sized else []),
        rounded(effect["estimate"], total),
        *(rounded(error[part], error[part]) for part in ("total", "sampling", "noise")),
        span(effect["interval"], total),
        *([span(both, total)] if both else []),
        *([f"{effect['weight']:.3f}"] if "weight" in effect else []),
        *([probability(adjusted)] if "p_value" in effect else []),
    ]


def mean_cells(facts: Facts) -> Cells | None:
    """Return the table of the arms' means, None for a result that has none."""
    means = facts.get("arm_means")
    if not means:
        return None
    # Where treatments are private and no counts of arms are released, sizes are not known.
    sized = "size" in means[0]
    headings = ["mean of arm", *[unit_word(facts)] * sized, "estimate", "std. error"]
    headings.append(f"{percent(facts['level'])} interval")
    rows = []
    for mean in means:
        total = mean["std_error"]["total"]
        shown = [rounded(mean["estimate"], total), rounded(total, total), span(mean["interval"], total)]
        rows.append([str(mean["name"]), *([f"{round(mean['size']):,}"] if sized else []), *shown])
    return Cells(headings, rows, "Means of the arms")


def lead_sentence(facts: Facts) -> str:
    """Return what was estimated, in words: a result's own sentence, or that of its estimand."""
    return str(facts["sentence"]) if "sentence" in facts else Estimand(facts["estimand"]).sentence


def lead_line(facts: Facts, most: int | None = None) -> str:
    """Return what was estimated and how, the method in at most so many words."""
    method = str(facts["method"])
    return f"{lead_sentence(facts)}; {method if most is None else few_words(method, most)}"


def interval_sentence(facts: Facts) -> str:
    """Return what the intervals cover, in words."""
    covers = "covers sampling error and privacy noise together"
    target = opening_of(facts, "interval_target")
    if target is not None:
        covers += f", of {target_words(target)}: NOT AN INTERVAL FOR THE EFFECT"
    return "; ".join([covers, *_remarks_on_intervals(facts, len(facts["effects"]))])


def _remarks_on_intervals(facts: Facts, many: int) -> Iterable[str]:
    effects = facts["effects"]
    bias = facts["details"].get("bias_allowance")
    if bias:
        scale = (
            "" if facts.get("measure", "difference") == "difference" else " on the scale of the difference"
        )
        yield f"the sampling error includes {rounded(bias, bias)} for bias{scale}"
    if effects and "simultaneous_interval" in effects[0]:
        adjusted = "; p-values are Holm-adjusted" if "holm_p_value" in effects[0] else ""
        yield f"simultaneous intervals hold for {'both' if many == 2 else f'all {many}'} effects at once{adjusted}"
    # Of pooled results the summary is meant, not the rows of sites.
    meant = [effect for effect in effects if effect.get("summary")] or effects
    if any(effect["interval"].get("gap") for effect in meant):
        yield (
            "it has two parts, because no effect is among what is possible: everything but what lies between"
        )
    elif any(effect["interval"]["high"] is None for effect in meant):
        yield "there is no upper end: the mean of the controls cannot be told from zero"
    if any(effect["std_error"]["sampling"] == 0 for effect in effects):
        yield (
            "a sampling error of 0 means that the variance, as released, is at or below zero: "
            "intervals allow for that, on average over the noise, and standard errors do not"
        )


_UNITS = {
    Adjacency.CHANGE_OUTCOME: "the outcome of one row",
    Adjacency.CHANGE_OUTCOMES_OF_ROW: "all outcomes of one row",
    Adjacency.REPLACE_RECORD: "one row",
    Adjacency.CHANGE_OUTCOMES_OF_PERSON: "all outcomes of one person",
    Adjacency.REPLACE_PERSON: "one person with all their rows",
    Adjacency.CHANGE_OUTCOMES_OF_CLUSTER: "all outcomes of one cluster",
    Adjacency.REPLACE_CLUSTER: "one cluster with all its rows",
    Adjacency.CHANGE_PAIR: "the treatment and outcome of one row",
}


_MANY = {
    Protected.ROW: "rows",
    Protected.PERSON: "people",
    Protected.CLUSTER: "clusters",
}


def unit_word(facts: Facts) -> str:
    """Return what the rows of an analysis are: rows, or people or clusters whose rows became one."""
    return _MANY[Adjacency(facts["guarantee"]["adjacency"]).whose]


def guarantee_line(facts: Facts) -> str:
    """Return the guarantee in one line: epsilon, delta, what is protected, how far it is proved, and what was spent."""
    guarantee, spent = facts["guarantee"], Budget.from_dict(facts["spent"])
    epsilon, delta = Fraction(guarantee["epsilon"]), Fraction(guarantee["delta"])
    budget = f"epsilon {show(epsilon)}" + (f", delta {show(delta)}" if delta else "")
    proof = Proof(guarantee["proof"])
    if proof is Proof.NONE:
        return f"NONE: the noise came from a seed and can be subtracted ({budget} was simulated)"
    cost = "" if (spent.epsilon, spent.delta) == (epsilon, delta) else f"; spent {spent}"
    large = Guarantee.from_dict(guarantee).large
    said = f"{budget} differential privacy for {_UNITS[guarantee['adjacency']]}; {_PROOFS[proof]}{cost}"
    return f"{said}; {large}" if large else said


def short_caveats(facts: Facts) -> str:
    """Return what intervals do not cover in few words: the name of each caveat, and how many are left out."""
    said, left = caveat_names(facts, _CAVEATS)
    return "; ".join([*said, *([f"and {left} more"] if left else [])])


def caveat_names(facts: Facts, most: int) -> tuple[list[str], int]:
    """Return the names of the first caveats, of at most so many letters together, and how many are left out."""
    names = [text if len(text) <= _CAVEAT else text.partition(":")[0] for text in caveat_words(facts)]
    said: list[str] = []
    for name in dict.fromkeys(names):
        if said and len("; ".join([*said, name])) > most:
            break
        said.append(name)
    return said, len(set(names)) - len(said)


def brief(fact: str) -> str:
    """Return a fact for reading: a list of very many covariates is cut, and it says where the whole is."""
    if len(fact) <= _LONGEST:
        return fact
    return f"{fact[: fact.rfind(', ', 0, _LONGEST)]}, ... (in full: guarantee.public)"


def short_remarks(facts: Facts, most: int, words: int) -> list[str]:
    """Return what the guarantee rests on and what its account adds, shortened: without these it would say too much."""
    remarks = [few_words(remark, words) for remark in facts["guarantee"]["remarks"]]
    left = len(remarks) - most
    return remarks[:most] + [f"{left} more in the full report"] * (left > 0)


def short_view(facts: Facts) -> View:
    """Return what a summary shows: the effects, the guarantee, what is not covered, and where to read more."""
    many, facts = len(facts["effects"]), {**facts, "effects": facts["effects"][:_ROWS]}
    cells, left = effect_cells(facts, _ROWS), many - _ROWS
    remarks = "; ".join(_remarks_on_intervals(facts, many))
    items = [("Look", look_sentence(facts)), ("Panel", panel_sentence(facts))]
    items += [("Interval", remarks)] if remarks else []
    items += facts.get("notes", [])
    items.append(("Guarantee", guarantee_line(facts)))
    items += [("Remark", remark) for remark in short_remarks(facts, _REMARKS, _REMARK)]
    items += _assumed(facts)
    items.append(("Not covered", short_caveats(facts)))
    items.append(("In full", "result.full(), or --report FILE"))
    more = [f"... and {left} more in result.effects"] if left > 0 else []
    return View(first_lines(facts), title(facts), lead_line(facts, _METHOD), [cells], items, more)


def full_view(facts: Facts) -> View:
    """Return everything that is known of a result, in words."""
    guarantee, means = facts["guarantee"], mean_cells(facts)
    items = [
        ("Look", look_sentence(facts)),
        ("Panel", panel_sentence(facts)),
        ("Interval", interval_sentence(facts)),
        *facts.get("notes", []),
        *_assumed(facts),
        ("Details", details_sentence(facts["details"], unit_word(facts))),
        ("Not covered", "; ".join(caveat_words(facts))),
        *_confounding(facts),
        ("Guarantee", guarantee["sentence"]),
        *provenance_items(facts),
        *(("Remark", remark) for remark in guarantee["remarks"]),
    ]
    tables = [effect_cells(facts), *([means] if means else []), *_withstood(facts)]
    return View(first_lines(facts), title(facts), lead_line(facts), tables, items, note=table_note(facts))


def provenance_items(facts: Facts) -> list[Item]:
    """Return what is public, what was spent on which releases, and where it is proved."""
    guarantee, releases = facts["guarantee"], "; ".join(name for name, _ in facts["releases"])
    return [
        ("Public", "; ".join(map(brief, guarantee["public"]))),
        ("Spent", f"{Budget.from_dict(facts['spent'])} ({releases})"),
        ("Proofs", ", ".join(guarantee["pages"])),
    ]


def look_sentence(facts: Facts) -> str:
    """Return at a planned look its boundary and whether to go on; nothing elsewhere."""
    details, effect = facts["details"], facts["effects"][0] if facts["effects"] else {}
    if "look_boundary" not in details:
        return ""
    boundary, p = details["look_boundary"], effect["p_value"]
    crossed = p <= boundary
    if crossed:
        verdict = "stop, as zero is ruled out"
    elif details["looks_left"]:
        verdict = "continue, as zero is not ruled out"
    else:
        verdict = "zero is not ruled out, and no look is left"
    z = -NormalDist().inv_cdf(boundary / 2)
    return f"{details['look']}: {verdict}; p {p:.2g}, boundary p {boundary:.2g} (|z| {z:.2f})"


_PANELS = {
    "balanced": "balanced: everyone was measured in every period",
    "filled": "balanced after filling: measurements that are missing are a declared constant",
    "unbalanced": "UNBALANCED: {complete:,} of {everyone:,} people were measured in every period, and they alone are "
    "compared",
    "may_be_unbalanced": "may be UNBALANCED: a person's mean is over the periods in which they were measured",
}


def panel_sentence(facts: Facts) -> str:
    """Return whether a panel is balanced; nothing where rows do not lie in periods."""
    details = facts["details"]
    if "panel" not in details:
        return ""
    complete, everyone = (details.get(f"people_in_{which}_period", 0) for which in ("every", "any"))
    return _PANELS[details["panel"]].format(complete=complete, everyone=everyone)


def effects_text(effects: list[Facts], level: float) -> str:
    """Return effects as a table of text."""
    return "\n".join(text_table(effect_cells({"effects": effects, "level": level})))


def _assumed(facts: Facts) -> list[Item]:
    trends = trends_of(facts)
    return [] if trends is None else [("Assumes", f"parallel trends: {trends}")]


def _confounding(facts: Facts) -> list[Item]:
    found = facts.get("confounding")
    return [] if found is None else [("Unmeasured", _sentence(sensitivity_items(found)))]


def _withstood(facts: Facts) -> list[Cells]:
    """Return the table of what several effects withstand; that of one is told in a sentence."""
    found = facts.get("confounding")
    return [] if found is None or len(found["effects"]) == 1 else [sensitivity_cells(found)]


def _sentence(items: list[Item]) -> str:
    return "; ".join(f"{name}: {text}" if name == "E-value" else text for name, text in items)


def title(facts: Facts) -> str:
    """Return what the result is about."""
    return str(facts.get("title") or f"Effect of {facts['treatment']} on {facts['outcome']}")


def _with_interval(effect: Facts) -> str:
    error = effect["std_error"]["total"]
    return with_interval(rounded(effect["estimate"], error), effect["interval"], error)


def one_line(facts: Facts) -> str:
    """Return a result in one line: warnings by their first words, the first effects and the budget."""
    effects = sorted(facts["effects"], key=lambda effect: not effect.get("summary"))
    spent = Budget.from_dict(facts["spent"])
    shown = [f"{effect['name']} {_with_interval(effect)}" for effect in effects[:2]]
    left = [f"{len(effects) - 2} more"] * (len(effects) > 2)
    warnings = [text.partition(":")[0] for text in first_lines(facts)]
    look = look_sentence(facts).partition(";")[0]
    return "; ".join(
        [*warnings, title(facts), *shown, *left, *([f"look {look}"] if look else []), str(spent)]
    )


def first_lines(facts: Facts) -> list[str]:
    """Return the warnings that stand above everything else."""
    return [facts[key] for key in ("guarantee_warning", "warning") if facts.get(key)]


def table_note(facts: Facts) -> str:
    """Return what stands under a table in a paper: what intervals cover, the guarantee and its price."""
    sentence = facts["guarantee"]["sentence"]
    return (
        f"The interval covers sampling error and privacy noise together. {sentence[:1].upper()}{sentence[1:]}. "
        f"Spent: {Budget.from_dict(facts['spent'])}."
    )
