"""Public rules that say whom to treat: by a released effect, by conditions on covariates, or a function."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import isnan, nan
from pathlib import Path
from typing import Any

import numpy as np

from counterveil.data import Range, Study
from counterveil.data.labels import Label, LabelIndex
from counterveil.errors import CounterveilError, refusal, shown
from counterveil.numerics.arrays import Flags
from counterveil.privacy import Number
from counterveil.questions.groups.question import checked_cost
from counterveil.questions.policy.rows import (
    Columns,
    EffectModel,
    effects_at,
    fits,
    model_remarks,
    one_by_one,
    reads_rows_alone,
)
from counterveil.results.cate_model import CateModel
from counterveil.results.stored import described, load, reads_facts, save
from counterveil.settings.ranges import is_number
from counterveil.statistics.folds.learners import learner_name


@dataclass(frozen=True, slots=True, eq=False)
class Policy:
    """A rule whom to treat; made by `from_model`, `where` or `of`. It must come from public or released things.

    A rule made of a released `CateModel` or of conditions can be stored; a function cannot.
    """

    name: str
    model: EffectModel | None = None
    threshold: float = 0.0
    conditions: Mapping[str, tuple[Any, ...]] | None = None
    function: Callable[[Any], Any] | None = None
    cost: float | None = None

    @classmethod
    def from_model(
        cls, model: EffectModel, *, threshold: float | None = None, cost: float | None = None
    ) -> Policy:
        """Return the rule that treats where the model's effect is above `threshold`, or worth `cost`; else above 0.

        A rule that was given a cost is judged after that cost, unless another one is named where it is judged.
        """
        if not hasattr(model, "effect") or (threshold is not None and cost is not None):
            raise _refusal(
                "a model with effect(X), and threshold= or cost= but not both", type(model).__name__
            )
        at = threshold if threshold is not None else cost if cost is not None else 0.0
        if not is_number(at):
            raise _refusal("a finite threshold", shown(at))
        own = None if cost is None else float(at)
        return cls(f"treat where the modelled effect is above {float(at):g}", model, float(at), cost=own)

    @classmethod
    def where(cls, **conditions: tuple[float, float] | list[Label]) -> Policy:
        """Return the rule that treats where all conditions hold.

        A tuple (low, high) holds for low <= value < high, a list for any of its labels.
        """
        kept: dict[str, tuple[Any, ...]] = {}
        for name, wanted in conditions.items():
            if isinstance(wanted, tuple) and len(wanted) == 2:
                kept[name] = ("between", *(_bound(end, name, wanted) for end in wanted))
            elif isinstance(wanted, list) and wanted:
                kept[name] = ("among", *wanted)
            else:
                raise _refusal("name=(low, high) or name=[label, ...]", f"{name}={wanted!r}")
        if not kept:
            raise _refusal("at least one condition", "none")
        said = " and ".join(
            f"{wanted[1]:g} <= {name} < {wanted[2]:g}"
            if wanted[0] == "between"
            else f"{name} is {' or '.join(map(str, wanted[1:]))}"
            for name, wanted in kept.items()
        )
        return cls(f"treat where {said}", conditions=kept)

    @classmethod
    def of(cls, policy: Any) -> Policy:
        """Return a policy as it is, or a function of one row's covariates as a policy."""
        if isinstance(policy, cls):
            return policy
        if callable(policy):
            return cls(f"the function {learner_name(policy)}", function=policy)
        raise _refusal("a Policy, or a function of a row's covariates", type(policy).__name__)

    def decide(self, columns: Columns) -> Flags:
        """Return for every row whether the rule treats it; each row is decided by itself."""
        if self.model is not None:
            return np.asarray(effects_at(self.model, columns) > self.threshold)
        if self.conditions is not None:
            return self._where(columns)
        assert self.function is not None
        return np.asarray(one_by_one(self.function, columns) != 0)

    def _where(self, columns: Columns) -> Flags:
        assert self.conditions is not None
        found = np.ones(len(next(iter(columns.values()))), dtype=np.bool_)
        for name, (kind, *wanted) in self.conditions.items():
            values = columns[name]
            if kind == "between":
                found &= (values >= wanted[0]) & (values < wanted[1])
            else:
                _, first, places = np.unique(values.astype(str), return_index=True, return_inverse=True)
                labels = [values[place : place + 1].tolist()[0] for place in first]
                found &= np.array([_named(label, wanted) for label in labels])[places]
        return found

    def price(self, cost: Number | None) -> float:
        """Return what treating one person costs: `cost`, or what the rule was made with, or nothing."""
        return checked_cost(self.cost or 0 if cost is None else cost)

    def check(self, study: Study) -> None:
        """Raise CV-P545 where the rule cannot decide about every row that the study allows; reads no row."""
        if self.model is not None and not fits(self.model, study):
            raise _refusal("a model of the study's covariates with all of their labels", self.name)
        for name, (kind, *wanted) in (self.conditions or {}).items():
            domain = study.covariates.get(name)
            if domain is None:
                raise _refusal(
                    f"covariates of the study: {', '.join(study.covariates)}", f"a condition on {name!r}"
                )
            if isinstance(domain, Range):
                if kind != "between":
                    raise _refusal(f"{name}=(low, high), as it holds numbers", f"labels for {name!r}")
            elif kind == "between" or any(LabelIndex(domain.labels).code(one) is None for one in wanted):
                raise _refusal(
                    f"{name}=[...] with labels among {list(domain.labels)!r}", f"{name}={wanted!r}"
                )

    @property
    def remarks(self) -> tuple[str, ...]:
        """What the guarantee rests on beside the proofs."""
        if self.conditions is not None:
            return ()
        return model_remarks(self.model)

    def to_dict(self) -> dict[str, Any]:
        """Return the rule as JSON-ready facts; `Policy.from_dict` reads them back."""
        if reads_rows_alone(self.model):
            return {
                "kind": "effect",
                "threshold": self.threshold,
                "cost": self.cost,
                "model": self.model.to_dict(),
            }
        if self.conditions is not None:
            return {"kind": "where", "conditions": {name: list(c) for name, c in self.conditions.items()}}
        raise _refusal("a rule made of a released CateModel or of conditions, to be stored", self.name)

    def described(self, request_id: str | None) -> dict[str, Any]:
        """Return what tells this rule from another: its facts, or the identity of its model or function."""
        if reads_rows_alone(self.model) or self.conditions is not None:
            return self.to_dict()
        made_of = self.function if self.model is None else self.model
        return {"threshold": self.threshold, "cost": self.cost, "of": described(made_of, request_id)}

    @classmethod
    @reads_facts
    def from_dict(cls, facts: dict[str, Any]) -> Policy:
        """Return the rule written by `to_dict`."""
        if facts["kind"] == "effect":
            name = "threshold" if facts["cost"] is None else "cost"
            return cls.from_model(CateModel.from_dict(facts["model"]), **{name: facts["threshold"]})
        return cls.where(
            **{
                name: tuple(wanted) if kind == "between" else wanted
                for name, (kind, *wanted) in facts["conditions"].items()
            }
        )

    def save(self, path: str | Path) -> Path:
        """Write the rule as JSON, without any data in it; return the path."""
        return save(self.to_dict(), path)

    @classmethod
    def load(cls, path: str | Path) -> Policy:
        """Return the rule that `save` wrote; another file is refused with CV-P545."""
        return load(path, cls.from_dict, lambda got: _refusal("a file that Policy.save wrote", got))


def stored_policy(path: Path, cost: Number | None) -> Policy:
    """Return the rule in a file: one that `Policy.save` wrote, or a model that treats where it is worth its cost."""

    def read(facts: dict[str, Any]) -> Policy:
        if facts.get("kind") == "cate":
            return Policy.from_model(CateModel.from_dict(facts), cost=checked_cost(cost or 0))
        return Policy.from_dict(facts)

    return load(path, read, lambda got: _refusal("a file that Policy.save or CateModel.save wrote", got))


def _named(label: Any, wanted: list[Any]) -> bool:
    """Return whether a label is one of those wanted, as a study compares labels: True means 1."""
    own = LabelIndex((label,))
    return any(own.code(one) is not None for one in wanted)


def _bound(end: object, name: str, wanted: object) -> float:
    """Return one end of a range as a double, or raise CV-P545; an infinite end leaves that side open."""
    try:
        found = float(end)  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError):
        found = nan
    if isinstance(end, str) or isnan(found):
        raise _refusal("name=(low, high) with two numbers, or name=[label, ...]", f"{name}={shown(wanted)}")
    return found


def _refusal(expected: str, got: str) -> CounterveilError:
    return refusal("CV-P545", expected=expected, got=got)
