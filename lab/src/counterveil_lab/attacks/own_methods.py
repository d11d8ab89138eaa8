"""Audits of a method that somebody wrote: its bounds, and what passes the gate when it is asked.

`counterveil audit module:MyMethod` takes a class without required fields, or an object.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass, replace
from importlib import import_module
from pathlib import Path
from typing import Any

from counterveil.data import Study, Trial
from counterveil.errors import refusal
from counterveil.estimators.method import Method
from counterveil.privacy import Budget, Unit
from counterveil.questions.session import Session
from counterveil.rows.public import PublicData
from counterveil_lab.attacks.asking import WEAKER
from counterveil_lab.attacks.bound_search import BoundTester, DeclaredBounds
from counterveil_lab.attacks.catalogue import Audited
from counterveil_lab.audit import AuditReport, audit

# Rows of a study in an audit: both arms have twenty.
ROWS = 40


@dataclass(frozen=True)
class AuditedBounds:
    """The declared bounds of a method at one level of protection."""

    name: str
    unit: str
    method: Method

    def study(self) -> Study:
        """Return the study of the audit's people."""
        return _asked(self.method, self.unit).study()

    def examine(self, seed: int) -> AuditReport:
        """Return the largest changes that a search finds, and those beside a third of the bounds."""
        form = _asked(self.method, self.unit)
        columns = form.columns_of(form.study(), kind=1)
        with Session(columns, form.study(), budget=Budget(1)) as session:
            public = PublicData(session, Unit(self.unit))
            ours = DeclaredBounds(dict(self.method.statistics(public)), public)
            weakened = replace(ours, divisor=WEAKER)
            return audit(Budget(1), ours, weakened, [(0, 1)], [BoundTester()], seed=seed, name=self.name)


def is_own(word: str) -> bool:
    """Whether a word names an object of somebody's module, as in "package.module:MyMethod"."""
    module, colon, name = word.partition(":")
    return bool(colon) and module.replace(".", "_").isidentifier() and name.isidentifier()


def audits_of(word: str) -> dict[str, Audited | AuditedBounds]:
    """Return the audits of a method by name: at each level its bounds and its releases; raises CV-A010."""
    method = _loaded(word)
    audits: dict[str, Audited | AuditedBounds] = {}
    for protects in method.protects:
        audits[f"bounds/{protects}/{word}"] = AuditedBounds(f"bounds/{protects}/{word}", protects, method)
        form = replace(_asked(method, protects), variant=word)
        audits[form.name] = form
    return audits


def _asked(method: Method, protects: str) -> Audited:
    return Audited(
        "ate",
        "",
        protects,
        declared={"assignment": Trial()},
        arguments={"method": method, "estimand": method.estimands[0]},
        rows=ROWS,
        places=(0,),
        kinds=(0, 1, 2),
    )


def _loaded(word: str) -> Method:
    module, _, name = word.partition(":")
    # A module beside the terminal, as `python -m` finds it.
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.insert(0, here)
    try:
        value: Any = getattr(import_module(module), name)
        method = value() if isinstance(value, type) else value
    except Exception as error:
        raise refusal("CV-A010", word=word, got=f"{type(error).__name__}: {error}") from error
    if not isinstance(method, Method):
        raise refusal("CV-A010", word=word, got=f"an object of type {type(method).__name__}")
    return method
