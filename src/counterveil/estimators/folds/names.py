"""What answers call a learner, and what the guarantee says where it is not one of the package's own.

In comes a learner as the user gave it: a name, a model, a function or a pair of models. Out come the name
that is printed beside the estimate, and the premises of the privacy statement: none for the package's own
learners; for another, that it reads only the rows of the fold it is called with. That premise is what
`rows/folds/fold_average.proof.md` requires of a caller, since one row then moves the answer of one fold. No
private row enters this module.
"""

from __future__ import annotations

from counterveil.privacy.provenance import Premise
from counterveil.settings import ModelPair


def learner_remarks(learner: object) -> tuple[Premise, ...]:
    """Return what the guarantee rests on beside the proofs, where the learner is not one of ours."""
    return () if isinstance(learner, str) else (Premise.LEARNER_SEES_ROWS_ALONE,)


def learner_name(learner: object, name: str | None = None) -> str:
    """Return what answers call a learner: the `name` it was given, or that of its class or function."""
    if name is not None:
        return name
    if isinstance(learner, str):
        return learner
    if isinstance(learner, ModelPair):
        return f"{type(learner.outcome).__name__} and {type(learner.propensity).__name__}"
    return str(getattr(learner, "__qualname__", type(learner).__name__))
