"""Arguments by the names that other packages give them, and what is written here in their place."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import wraps
from inspect import Parameter, signature
from typing import Any, ParamSpec, TypeVar

from counterveil.data.wrong_data import nearest
from counterveil.errors import refusal

P = ParamSpec("P")
R = TypeVar("R")

# Another spelling of the same argument: taken as it is.
_SPELLINGS = {"randomized": "randomised"}
_ROLES = 'cv.Study("treated", "score", (0, 10), {"age": (18, 90)})'
_EVENT = 'cv.Study("treated", outcome="years", event="died", horizon=5)'
_LEARNERS = 'method="sample_and_aggregate", settings=cv.settings.Folds(learner=cv.settings.ModelPair(...))'
_NEIGHBOURS = 'method="matching", settings=cv.settings.Matching(neighbours=5)'
_SCORES = 'method="weighting", trim=0.1'
_REGRESS = 'cv.moments(data, study, epsilon=1).regress("score ~ treated + age")'
_FORMULA = 'cv.ate("score ~ treated | age", data, study, protects="outcome", epsilon=1)'
ELSEWHERE = {
    # MatchIt, WeightIt
    **dict.fromkeys(("ratio", "replace", "k2k", "neighbors", "n_neighbors"), _NEIGHBOURS),
    **dict.fromkeys(("caliper", "distance", "discard", "link", "stabilize", "ps"), _SCORES),
    **dict.fromkeys(("exact", "cutpoints", "subclass"), 'method="stratified"'),
    "focal": 'estimand="ATT"',
    # DoubleML, EconML
    **dict.fromkeys(("ml_g", "ml_l", "ml_m", "ml_r", "model_y", "model_t", "model_final"), _LEARNERS),
    **dict.fromkeys(
        ("n_folds", "n_rep"), 'method="sample_and_aggregate", settings=cv.settings.Folds(folds=20)'
    ),
    **dict.fromkeys(("y_col", "d_cols", "x_cols", "Y", "T", "X", "W", "treat", "covs"), _ROLES),
    **dict.fromkeys(("score", "dml_procedure"), 'method="doubly_robust"'),
    # statsmodels, pyfixest
    **dict.fromkeys(("formula", "fml"), _FORMULA),
    **dict.fromkeys(("cov_type", "cov_kwds", "vcov", "fixef", "endog", "exog", "instrument"), _REGRESS),
    # lifelines
    **dict.fromkeys(("duration_col", "event_col", "durations", "event_observed", "timeline"), _EVENT),
    # all of them
    **dict.fromkeys(("alpha", "conf_level", "confidence", "ci"), "level=0.95"),
    **dict.fromkeys(("seed", "random_state", "rng"), "noise=cv.SeededNoise(1)  # simulated: protects nobody"),
    **dict.fromkeys(("eps", "privacy_budget", "budget"), "epsilon=1"),
    **dict.fromkeys(("ranges", "codebook", "bounds"), _FORMULA),
}


def known_arguments(call: Callable[P, R]) -> Callable[P, R]:
    """Return a function that refuses arguments it does not have, or lacks, with CV-P028."""
    own = signature(call).parameters

    @wraps(call)
    def checked(*args: P.args, **named: P.kwargs) -> R:
        given: Any = dict(named)
        for other, name in _SPELLINGS.items():
            if other in given and name in own and name not in given:
                given[name] = given.pop(other)
        refuse_arguments(call.__qualname__.removesuffix(".__init__"), own, given, len(args))
        return call(*args, **given)

    return checked


def refuse_arguments(
    name: str, own: Mapping[str, Parameter], given: Mapping[str, Any], positional: int = 0
) -> None:
    """Raise CV-P028 for the first argument that is not among a function's own, or that it lacks."""
    for key in given:
        if key not in own and key in ELSEWHERE:
            raise refusal("CV-P028", name=name, key=key, ours=ELSEWHERE[key])
        if key not in own:
            raise refusal(
                "CV-P028b",
                name=name,
                key=key,
                fix=nearest(key, [each for each in own if each != "self"], name),
            )
    needed = [key for place, key in enumerate(own) if place >= positional and key not in given]
    lacking = [f"{key}=" for key in needed if own[key].default is Parameter.empty]
    if lacking:
        raise refusal("CV-P028c", name=name, lacking=", ".join(lacking))
