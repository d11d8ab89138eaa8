"""Differentially private causal inference: effects whose intervals include the privacy noise.

Declare a study, ask a question of its data, read the answer:

- `cv.Study` declares what is public about the columns; `cv.drafting.draft` writes one from a file.
- `cv.ate`, `cv.arms`, `cv.groups`, `cv.cate`, `cv.survival`, `cv.quantiles` and others are the questions.
- `cv.results.Result` and its neighbours are the answers; `cv.plots` draws them.
- `cv.plan` says how long intervals will be, before anything is spent.
- `cv.Session` and `cv.open_ledger` share one budget among several questions.
- `cv.settings` tunes methods, `cv.datasets` has examples, `cv.published` the forms of papers, and `cv.methods`
  what a method of your own is written with.

Start with ``help(cv.ate)``; `dir(cv)` lists every name. The command ``counterveil`` asks the same questions.

Examples
--------
>>> import counterveil as cv
>>> trial = cv.datasets.simulated_trial(n=500, effect=0.3)
>>> result = cv.ate(trial.frame, trial.study, protects="outcome", epsilon=1, noise=cv.SeededNoise(1))
>>> low, high = result.interval()
>>> low < 0.3 < high
True
"""

from __future__ import annotations

import gc
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from counterveil import datasets, drafting, methods, omop, published, results, settings
    from counterveil.accounting import open_ledger
    from counterveil.data import (
        Binary,
        Categories,
        Change,
        Clusters,
        Drop,
        Fill,
        Observational,
        Outcome,
        Outcomes,
        People,
        Propensity,
        Range,
        Ratio,
        Study,
        TimeToEvent,
        Treatment,
        Trial,
    )
    from counterveil.errors import CounterveilError
    from counterveil.privacy import Budget
    from counterveil.questions import interim
    from counterveil.questions.arms import arms
    from counterveil.questions.ate import ate
    from counterveil.questions.cate import cate
    from counterveil.questions.event_study import event_study
    from counterveil.questions.groups import groups
    from counterveil.questions.moments import moments
    from counterveil.questions.outcomes import outcomes
    from counterveil.questions.overlap import overlap
    from counterveil.questions.plan.assumptions import Assumptions, Decision
    from counterveil.questions.plan.plan import plan
    from counterveil.questions.policy import Policy, policy_value, targeting_curve
    from counterveil.questions.pooling.pool import pool
    from counterveil.questions.quantiles import quantiles
    from counterveil.questions.session import Session
    from counterveil.questions.survival import survival
    from counterveil.report import plots
    from counterveil.results.result import etable
    from counterveil.session import SeededNoise


__version__ = "0.1.0"

# Where each public name lives, itself for a module; loaded on first use so that `import counterveil` stays light.
_HOMES = {
    "Assumptions": "questions.plan",
    "Binary": "data",
    "Budget": "privacy",
    "Categories": "data",
    "Change": "data",
    "Clusters": "data",
    "CounterveilError": "errors",
    "Decision": "questions.plan",
    "Drop": "data",
    "Fill": "data",
    "Observational": "data",
    "Outcome": "data",
    "Outcomes": "data",
    "People": "data",
    "Policy": "questions.policy",
    "Propensity": "data",
    "Range": "data",
    "Ratio": "data",
    "SeededNoise": "session",
    "Session": "questions.session",
    "Study": "data",
    "TimeToEvent": "data",
    "Treatment": "data",
    "Trial": "data",
    "arms": "questions.arms",
    "ate": "questions.ate",
    "cate": "questions.cate",
    "datasets": "datasets",
    "drafting": "drafting",
    "etable": "results.result",
    "event_study": "questions.event_study",
    "groups": "questions.groups",
    "interim": "questions.interim",
    "methods": "methods",
    "moments": "questions.moments",
    "omop": "omop",
    "open_ledger": "accounting",
    "outcomes": "questions.outcomes",
    "overlap": "questions.overlap",
    "plan": "questions.plan",
    "plots": "report",
    "policy_value": "questions.policy",
    "pool": "questions.pooling.pool",
    "published": "published",
    "quantiles": "questions.quantiles",
    "results": "results",
    "settings": "settings",
    "survival": "questions.survival",
    "targeting_curve": "questions.policy",
}

__all__ = [
    "Assumptions",
    "Binary",
    "Budget",
    "Categories",
    "Change",
    "Clusters",
    "CounterveilError",
    "Decision",
    "Drop",
    "Fill",
    "Observational",
    "Outcome",
    "Outcomes",
    "People",
    "Policy",
    "Propensity",
    "Range",
    "Ratio",
    "SeededNoise",
    "Session",
    "Study",
    "TimeToEvent",
    "Treatment",
    "Trial",
    "arms",
    "ate",
    "cate",
    "datasets",
    "drafting",
    "etable",
    "event_study",
    "groups",
    "interim",
    "methods",
    "moments",
    "omop",
    "open_ledger",
    "outcomes",
    "overlap",
    "plan",
    "plots",
    "policy_value",
    "pool",
    "published",
    "quantiles",
    "results",
    "settings",
    "survival",
    "targeting_curve",
]


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        # What modules make stays: looking for garbage in it takes a tenth of the import.
        collects = gc.isenabled()
        gc.disable()
        try:
            home = import_module(f"counterveil.{_HOMES[name]}")
        finally:
            if collects:
                gc.enable()
        return getattr(home, name, home)
    if name.startswith("_"):
        raise AttributeError(f"module 'counterveil' has no attribute {name!r}")
    from counterveil.results.elsewhere import missing_name

    raise AttributeError(missing_name(name))


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
