"""`cv.plan` with what is assumed of people and what one question takes given by name, as the cases list them."""

from dataclasses import fields
from typing import Any

import counterveil as cv

_ASSUMED = {each.name for each in fields(cv.Assumptions)}
_OPTIONS = {"by", "policy", "formula", "received", "spending", "grid", "importance"}


def plan(study: cv.Study, **given: Any) -> Any:
    """Return the plan."""
    assumed = {name: given.pop(name) for name in _ASSUMED & set(given)}
    options = {name: given.pop(name) for name in _OPTIONS & set(given)}
    return cv.plan(study, assumed=cv.Assumptions(**assumed), options=options, **given)
