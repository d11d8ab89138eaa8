"""What a guarantee takes as public, in words."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

from counterveil.data.domains import Categories, Domain, Range
from counterveil.data.labels import Drop, Label
from counterveil.data.time_to_event import PARTS
from counterveil.privacy import Unit, show

if TYPE_CHECKING:
    from counterveil.data.cluster import Cluster
    from counterveil.data.outcomes import Before
    from counterveil.data.study import Study


_MOST_WORDS = 12
# The fewest rows, or people with several, of an arm that data are attached with.
SMALLEST_ARM = 2


def public_facts(study: Study, unit: Unit, reference: Label | None = None) -> tuple[str, ...]:
    """Return one sentence per public fact, from the declarations alone; `reference` is the period of an event study."""
    facts, several = ["the number of rows and their order"], "rows"
    if study.person is not None:
        several, one = ("clusters", "cluster") if study.person.whole_cluster else ("people", "person")
        facts = [
            f"the number of {several}, by {study.person.column!r}, and the order of what identifies them",
            f"how the rows of a {one} become one: {_rules_of(study)}",
        ]
        if unit is Unit.OUTCOME:
            facts.append(f"how many rows each {one} has, and their order")
    if study.cluster is not None and not study.cluster.whole:
        facts.append(_clusters(study.cluster, unit))
    facts += [_subset(text, unit, study.person is not None) for text in study.subsets]
    if unit is Unit.OUTCOME:
        covariates = " and all covariates" if study.covariates else ""
        facts.append(f"every person's treatment {study.treatment!r}{covariates}: only {_protected(study)}")
    facts.append(_ranges(study))
    if study.before is not None:
        by_period = reference is not None
        facts.append(
            _by_period(study, study.before, reference) if by_period else _compared(study, study.before)
        )
    if study.covariates:
        domains = [f"{name!r} {_domain(domain)}" for name, domain in study.covariates.items()]
        facts.append(
            f"the domains of the covariates, {_listed(domains)}: stated beforehand; numbers outside are clamped"
        )
    if study.bought:
        costs = [f"{name!r} ({cost})" for name, cost in study.bought.items()]
        facts.append(
            f"of these ranges and labels, not stated beforehand but released from the data and charged apart: "
            f"{_listed(costs)}"
        )
    facts.append(_labels(study))
    # Attaching refuses other rows: that data were attached tells as much.
    facts.append(
        f"that the rows fit the study and each arm of {study.treatment!r} has at least {SMALLEST_ARM} {several}: "
        "cells that cannot be read, labels that are not declared, missing values without a rule and smaller arms are "
        "refused when data are attached, and the guarantee compares data sets that are not refused"
    )
    facts += [_rule(name, isinstance(rule, Drop)) for name, rule in study.missing.items()]
    if study.treated_share is not None:
        facts.append(f"the trial's design: each person treated with probability {show(study.treated_share)}")
    elif study.randomised:
        facts.append("the trial's design: treatment was assigned at random")
    return tuple(facts)


def _clusters(cluster: Cluster, unit: Unit) -> str:
    """Return what is public about clusters of protected people."""
    if unit is Unit.OUTCOME:
        return f"which cluster everyone is in, by {cluster.column!r}"
    arms = ", and which arm each of them was assigned to" if cluster.assigned else ""
    return (
        f"the clusters that there are, by {cluster.column!r}{arms}: who is in which is protected, and the guarantee "
        "compares data sets with the same clusters"
    )


def _protected(study: Study) -> str:
    """Return which columns are protected where all others are public."""
    names = _listed([repr(name) for name in study.outcomes])
    if study.before is not None and study.before.time is not None:
        return f"the outcome {names} of all periods, before and after treatment, is protected"
    if len(study.outcomes) == 1:
        return f"the outcome {names} is protected"
    return f"{names} are protected" + (", before and after treatment" if study.before is not None else "")


def _measured(study: Study) -> str:
    """Return the columns that outcomes are made of, with their bounds."""
    if len(study.outcomes) == 1 and study.before is None:
        return f"outcome {study.outcome!r}, {_bounds(study.outcome_range)}"
    found = {name: study.measured_bounds(name) for name in study.outcomes}
    return _listed([f"{name!r} {_bounds((each.lo, each.hi))}" for name, each in found.items() if each])


def _compared(study: Study, before: Before) -> str:
    """Return how changes are made of what was measured before and after."""
    mean = "the mean of " if len(before.columns) > 1 else ""
    if before.time is not None:
        rule = "" if study.person is None else f"{study.person.rules[study.outcome]} "
        since = (
            f"{rule}{study.outcome!r} over {before.time!r} {_listed([str(each) for each in before.periods])}"
        )
        after = f"{rule}{study.outcome!r} over {_listed([str(each) for each in before.after])}"
    else:
        since, after = f"{mean}{_listed([repr(name) for name in before.columns])}", repr(study.outcome)
    return f"that the outcome analysed is {after} minus {since}, clamped to {_bounds(study.outcome_range)}"


def _by_period(study: Study, before: Before, reference: Label | None) -> str:
    """Return how the changes of an event study are made."""
    names = [str(each) if before.time is not None else repr(each) for each in before.labels(study.outcome)]
    since = str(reference) if before.time is not None else repr(reference)
    others = _listed([each for each in names if each != since])
    if before.time is not None:
        rule = "" if study.person is None else f"{study.person.rules[study.outcome]} "
        others = f"{rule}{study.outcome!r} at {before.time!r} {others}"
    clamped = "" if before.change is None else f", clamped to {_bounds(study.outcome_range)}"
    return f"that the outcomes analysed are {others}, each minus that of {since}{clamped}"


def _ranges(study: Study) -> str:
    """Return what is public of outcomes: their bounds, or the grid on which times to an event are looked at."""
    event = study.event
    if event is None:
        return (
            f"the bounds of {_measured(study)}: stated beforehand; "
            "values outside are clamped to the nearer bound, and values are rounded down to a public grid"
        )
    ends = _listed([show(end) for end in event.grid])
    return (
        f"the time cells of {study.outcome!r}, which end at {ends}: stated beforehand; of a row only its cell counts, "
        f"or which of up to {PARTS} equal parts of the cell it lies in, "
        f"whether {event.column!r} is 1 there, or that it was followed to {show(event.horizon)}"
    )


def _subset(text: str, unit: Unit, people: bool) -> str:
    """Return what choosing rows makes public: who is chosen, and so the number of rows."""
    chosen = "which people have rows" if people else "which rows are those"
    said = f"{chosen} where {text}, and how many: the study is of these alone"
    if unit is Unit.OUTCOME:
        return said
    return f"{said}; belonging to them is public by declaration and not protected, all else about a record is"


def _rules_of(study: Study) -> str:
    """Return the rules by which columns of a person become one value."""
    assert study.person is not None
    by_rule: dict[str, list[str]] = {}
    for name, rule in study.person.rules.items():
        by_rule.setdefault(rule, []).append(repr(name))
    said = [f"{rule} of {_listed(names)}" for rule, names in by_rule.items()]
    first = (
        ""
        if study.person.most_rows is None
        else f", over the first {study.person.most_rows} rows of a "
        + ("cluster" if study.person.whole_cluster else "person")
    )
    order = "" if study.person.order is None else f", in the order of {study.person.order!r}"
    return "; ".join(said) + order + first


def _labels(study: Study) -> str:
    if study.arms is not None:
        others = _listed([repr(label) for label in study.arms[1:]])
        return f"the labels of {study.treatment!r}: {others}, compared with the reference {study.reference!r}"
    other = "the only other label" if study.control is None else repr(study.control)
    return f"the labels of {study.treatment!r}: {study.treated!r} is treated, {other} is control"


def _rule(name: str, dropped: bool) -> str:
    if dropped:
        return (
            f"which rows have no value of {name!r}: those rows are left out, and the pattern of "
            "missing values is public by declaration and not protected"
        )
    return (
        f"the constant put in where {name!r} is missing; whether it was missing stays as private as the value"
    )


def _domain(domain: Domain) -> str:
    if isinstance(domain, Range):
        cuts = f" cut at {_listed([show(cut) for cut in domain.cuts])}" if domain.cuts else ""
        return _bounds((domain.lo, domain.hi)) + cuts
    words = [repr(label) for label in domain.labels]
    if len(words) > _MOST_WORDS:
        # The study holds them all; a sentence need not.
        words = [*words[:3], "...", words[-1]]
    rest = f" ({len(domain.labels)} labels)" if "..." in words else ""
    if isinstance(domain, Categories) and domain.other is not None:
        rest += f", every other label counting as {domain.other!r}"
    return "{" + ", ".join(words) + "}" + rest


def _bounds(bounds: tuple[Fraction, Fraction]) -> str:
    return f"[{show(bounds[0])}, {show(bounds[1])}]"


def _listed(words: list[str]) -> str:
    return words[0] if len(words) == 1 else ", ".join(words[:-1]) + " and " + words[-1]
