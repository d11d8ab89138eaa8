"""A released function in plain words."""

from __future__ import annotations

from typing import TYPE_CHECKING

from counterveil.report.text import summary_items, wrapped

if TYPE_CHECKING:
    from counterveil.estimators.cate.model import CateModel


def model_text(model: CateModel) -> str:
    """Return what the function is, what it promises and what it does not cover."""
    facts = model.to_dict()
    lines = [
        line for key in ("warning", "caution") if facts.get(key) for line in wrapped(f"*** {facts[key]} ***")
    ]
    what = "function of the covariates" if model.heterogeneous else "one number for everybody"
    lines += [
        f"Effect of {model.study.treatment} on {model.study.outcome} as a {what}"
        if model.heterogeneous
        else f"Effect of {model.study.treatment} on {model.study.outcome}: {what}",
        *wrapped(
            f"{model.method}; {model.basis.size} weights; "
            "ask with .effect(X), .interval(X), .band(X): no further cost"
        ),
    ]
    covers = "intervals and bands cover sampling error and privacy noise together"
    return "\n".join([*lines, *summary_items(facts, covers)])
