"""How each method is asked, through the library's front door, and what is kept of its answer."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, cast

import counterveil as cv
from counterveil.data import Table
from counterveil.errors import CounterveilError
from counterveil.questions.ate import AUTO, AteArguments
from counterveil.questions.ate import METHODS as REGISTERED
from counterveil.questions.auto import choose
from counterveil.session import BaseSession
from counterveil_lab.reproduce.rivals.ours import KAPPA
from experiments.every_method.designs import Instance

NORMAL = 1.959963984540054
LARGE = 10_000


@dataclass(frozen=True)
class Asked:
    """A method's arguments, what part of the draws it gets, and the most rows it is tried on.

    Slow methods get fewer draws, `large` of them from 10,000 rows on. `pure` methods know no Gaussian noise: with a
    delta they keep to epsilon.
    """

    method: str
    settings: Callable[[Instance], Any] = lambda _: None
    pure: bool = False
    part: float = 1.0
    large: float = 1.0


def strata(instance: Instance) -> cv.settings.Stratified:
    return cv.settings.Stratified(strata=instance.strata)


METHODS = {
    "doubly_robust": Asked("doubly_robust", lambda _: cv.settings.DoublyRobust(kappa=KAPPA)),
    "stratified": Asked("stratified", strata),
    "contrast": Asked("trial", lambda _: cv.settings.Trial("none", "arms"), pure=True),
    "difference_in_means": Asked("trial", lambda _: cv.settings.Trial("none", "pooled")),
    "sample_and_aggregate": Asked("sample_and_aggregate"),
    # The last, because it takes one of the others.
    "auto": Asked("auto", lambda _: cv.settings.Auto(kappa=KAPPA)),
}
# They are told which covariates carry most of the confounding, which the automatic choice is not.
TOLD = ("stratified",)
# Known without a budget: one line for all of them.
FREE = ("zero", "difference in means (not private)", "doubly robust (not private)")


def available() -> dict[str, Asked]:
    """Return the methods that this version of the library has."""
    return {name: asked for name, asked in METHODS.items() if asked.method in REGISTERED}


@dataclass(frozen=True)
class Draw:
    """One answer: its error and the half width of its interval, in the design's unit."""

    error: float
    half: float
    adjusted: bool
    valid: bool  # whether the interval claims to be one for the effect
    chosen: str = ""


Known = dict[tuple[str, str, str, str], Draw | str]


def draw(instance: Instance, name: str, epsilon: str, delta: str, seed: int, known: Known) -> Draw | str:
    """Return the answer, or the code of the refusal.

    `known` holds the answers with this seed on this instance. The automatic choice is made by the library's own rule,
    and where the method it takes was asked with the same noise and settings, that answer is not computed again; nor
    is one with pure noise for a second delta.
    """
    asked, table = METHODS[name], instance.table
    arguments: dict[str, Any] = {
        "method": asked.method,
        "protects": "record",
        "epsilon": epsilon,
        "delta": delta,
        "estimand": "ATE",
        "level": 0.95,
        "mechanism": "staircase" if asked.pure and delta != "0" else None,
        "settings": asked.settings(instance),
        "request_id": None,
    }
    question, chosen = AteArguments(**arguments).about(table.study), ""
    if asked.method == AUTO:
        choice = choose(cast("BaseSession", Counted(table.study, table)), question)
        question, chosen = choice.question, choice.question.method
    key = (question.method, epsilon, question.mechanism, repr(question.settings))
    if key not in known:
        known[key] = _computed(instance, arguments, seed)
    found = known[key]
    return found if isinstance(found, str) else replace(found, chosen=chosen)


@dataclass(frozen=True)
class Counted:
    """What the automatic choice may know of a table: its study and its number of rows."""

    study: cv.Study
    batches: Table


def _computed(instance: Instance, arguments: dict[str, Any], seed: int) -> Draw | str:
    try:
        result = cv.ate(instance.table, instance.table.study, noise=cv.SeededNoise(seed), **arguments)
    except CounterveilError as refusal:
        return refusal.code
    low, high = result.untruncated_interval()
    plain = result.method.startswith(("unadjusted", "difference in means"))
    adjusted = not plain and result.condition is None
    adjusted = adjusted and result.details.get("adjusted", True) not in (False, "no")
    return Draw(
        (result.estimate - instance.truth) / instance.unit,
        (high - low) / 2 / instance.unit,
        adjusted,
        result.interval_target is None,
    )


def free(instance: Instance, name: str) -> Draw:
    """Return an answer that needs no budget."""
    if name == "zero":
        return Draw(-instance.truth / instance.unit, 0.0, False, False)
    known = instance.robust if name.startswith("doubly") else instance.means
    error = (known.estimate - instance.truth) / instance.unit
    return Draw(error, NORMAL * known.error / instance.unit, name.startswith("doubly"), True)
