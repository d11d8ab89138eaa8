"""What a guarantee takes as public of a study, one sentence per fact, from its declarations alone."""

from __future__ import annotations

from typing import TYPE_CHECKING

from counterveil.data.domains import Label, interval, listed
from counterveil.privacy import Unit, show

if TYPE_CHECKING:
    from counterveil.data.study import Study

# The fewest rows, or people with several, of an arm that data are attached with.
SMALLEST_ARM = 2


def public_facts(study: Study, unit: Unit, reference: Label | None = None) -> tuple[str, ...]:
    """Return one sentence per public fact, from the declarations alone; `reference` is the period of an event study."""
    facts, several = ["the number of rows and their order"], "rows"
    if study.person is not None:
        facts = study.person.public_facts(unit)
        several = "clusters" if study.person.whole_cluster else "people"
    if study.cluster is not None and study.clustered:
        facts.append(study.cluster.public_fact(unit))
    facts += [_subset(text, unit, study.person is not None) for text in study.subsets]
    if unit.treatment_public:
        covariates = " and all covariates" if study.covariates else ""
        facts.append(f"every person's treatment {study.treatment!r}{covariates}: only {_protected(study)}")
    elif unit.covariates_public:
        taken = "who took part" + (", with all covariates" if study.covariates else "")
        facts.append(f"{taken}: the treatment {study.treatment!r} is protected, and {_protected(study)}")
    facts.append(_measured(study) if study.event is None else study.event.public_fact(study.outcome))
    if study.before is not None:
        rule = None if study.person is None else study.person.rules[study.outcome]
        facts.append(study.before.public_fact(study.outcome, rule, reference))
    if study.covariates:
        domains = [f"{name!r} {domain.words()}" for name, domain in study.covariates.items()]
        facts.append(
            f"the domains of the covariates, {listed(domains)}: stated beforehand; numbers outside are clamped"
        )
    if study.estimated:
        costs = [f"{name!r} ({cost})" for name, cost in study.estimated.items()]
        facts.append(
            f"of these ranges and labels, not stated beforehand but released from the data and charged apart: "
            f"{listed(costs)}"
        )
    facts.append(_labels(study))
    # Attaching refuses other rows: that data were attached tells as much.
    facts.append(
        f"that the rows fit the study and each arm of {study.treatment!r} has at least {SMALLEST_ARM} {several}: "
        "cells that cannot be read, labels that are not declared, missing values without a rule and smaller arms are "
        "refused when data are attached, and the guarantee compares data sets that are not refused"
    )
    facts += [rule.public_fact(name) for name, rule in study.missing.items()]
    if study.treated_share is not None:
        facts.append(f"the trial's design: each person treated with probability {show(study.treated_share)}")
    elif study.score is not None:
        facts.append(f"the design: each person treated with the probability {study.score!r}")
    elif study.randomised:
        facts.append("the trial's design: treatment was assigned at random")
    return tuple(facts)


def _protected(study: Study) -> str:
    """Return which columns are protected where all others are public."""
    names = listed([repr(name) for name in study.outcomes])
    if study.before is not None and study.before.time is not None:
        return f"the outcome {names} of all periods, before and after treatment, is protected"
    if len(study.outcomes) == 1:
        return f"the outcome {names} is protected"
    return f"{names} are protected" + (", before and after treatment" if study.before is not None else "")


def _measured(study: Study) -> str:
    """Return the columns that outcomes are made of, with their bounds."""
    found = {name: study._measured_bounds(name) for name in study.outcomes}
    said = listed([f"{name!r} {interval((each.lo, each.hi))}" for name, each in found.items() if each])
    if len(study.outcomes) == 1 and study.before is None:
        said = f"outcome {study.outcome!r}, {interval(study.outcome_range)}"
    return (
        f"the bounds of {said}: stated beforehand; "
        "values outside are clamped to the nearer bound, and values are rounded down to a public grid"
    )


def _subset(text: str, unit: Unit, people: bool) -> str:
    """Return what choosing rows makes public: who is chosen, and so the number of rows."""
    chosen = "which people have rows" if people else "which rows are those"
    said = f"{chosen} where {text}, and how many: the study is of these alone"
    if unit.covariates_public:
        return said
    return f"{said}; belonging to them is public by declaration and not protected, all else about a record is"


def _labels(study: Study) -> str:
    if study.arms is not None:
        if study.doses is not None:
            where = f"{study.doses.words()}; the reference is the cell around {study.reference!r}"
            return f"the cells of the dose {study.treatment!r}: {where}"
        others = listed([repr(label) for label in study.arms[1:]])
        return f"the labels of {study.treatment!r}: {others}, compared with the reference {study.reference!r}"
    other = "the only other label" if study.control is None else repr(study.control)
    return f"the labels of {study.treatment!r}: {study.treated!r} is treated, {other} is control"
