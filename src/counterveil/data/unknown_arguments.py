"""Help for arguments that a function does not have: what is written here in place of other packages' names."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import wraps
from inspect import Parameter, signature
from typing import Any, ParamSpec, TypeVar

from counterveil.data.cells import nearest
from counterveil.errors import refusal

P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T")

_BY_POSITION = (Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD)
_ROLES = 'cv.Study("treated", cv.Outcome("score", (0, 10)), {"age": (18, 90)})'
_EVENT = 'cv.Study("treated", cv.TimeToEvent("years", "died", horizon=5))'
_LEARNERS = 'method="sample_and_aggregate", settings=cv.settings.Folds(learner=cv.settings.ModelPair(...))'
_NEIGHBOURS = 'method="matching", settings=cv.settings.Matching(neighbours=5)'
_SCORES = 'method="weighting", trim=0.1'
_REGRESS = 'cv.moments(data, study, protects="record", epsilon=1).regress("score ~ treated + age")'
_FORMULA = 'cv.ate("score ~ treated | age", data, study, protects="outcome", epsilon=1)'
# Arguments by the names that other packages give them, and what is written here in their place.
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
    **dict.fromkeys(("treatment", "outcome", "covariates"), _ROLES),
    **dict.fromkeys(("randomised", "randomized"), "cv.Study(..., assignment=cv.Trial())"),
    **dict.fromkeys(("score", "dml_procedure"), 'method="doubly_robust"'),
    # statsmodels, pyfixest
    **dict.fromkeys(("formula", "fml"), _FORMULA),
    **dict.fromkeys(("cov_type", "cov_kwds", "vcov", "fixef", "endog", "exog", "instrument"), _REGRESS),
    # lifelines
    **dict.fromkeys(("duration_col", "event_col", "durations", "event_observed", "timeline"), _EVENT),
    # all of them
    **dict.fromkeys(("alpha", "conf_level", "conf_int", "confidence", "ci"), "level=0.95"),
    **dict.fromkeys(("seed", "random_state", "rng"), "noise=cv.SeededNoise(1)  # simulated: protects nobody"),
    **dict.fromkeys(("eps", "privacy_budget", "budget"), "epsilon=1"),
    **dict.fromkeys(("ranges", "codebook", "bounds"), _FORMULA),
}
_TWO_ARMS = 'treatment=cv.Treatment("arm", treated="new", control="usual care")'
_ARMS = 'treatment=cv.Treatment("arm", arms=("placebo", "low", "high"), reference="placebo")'
_CHANGE = 'outcome=cv.Change("earnings", (0, 60), before="earnings_1975")'
_PERIODS = 'outcome=cv.Change("earnings", (0, 60), time="year", before=[1975], after=[1978]), people="id"'
_RATIO = 'outcome=cv.Ratio("clicks", (0, 100), "sessions", (1, 50))'
_PEOPLE = 'people=cv.People("patient_id", rules={"cost": "sum"}, order="visit", max_rows=5)'
_CLUSTERS = 'clusters=cv.Clusters("school", protected=True, assigned=True)'
# The same for what a study declares: one part of it holds what belongs together.
STUDY_PARTS = {
    **dict.fromkeys(("randomised", "randomized"), "assignment=cv.Trial()  # or cv.Observational()"),
    "treated_share": "assignment=cv.Trial(share=0.5)",
    **dict.fromkeys(("score", "propensity"), 'assignment=cv.Propensity("score")'),
    **dict.fromkeys(("treated", "control", "others"), _TWO_ARMS),
    **dict.fromkeys(("arms", "reference", "doses"), _ARMS),
    "outcome_range": 'outcome=cv.Outcome("score", (0, 10))',
    **dict.fromkeys(("before", "before_range", "change_range"), _CHANGE),
    **dict.fromkeys(("time", "after"), _PERIODS),
    **dict.fromkeys(("denominator", "denominator_range"), _RATIO),
    **dict.fromkeys(("event", "horizon", "grid", "causes"), 'outcome=cv.TimeToEvent("days", "died", horizon=365)'),
    **dict.fromkeys(
        ("outcomes", "baseline", "several"),
        'outcome=cv.Outcomes({"visits": (0, 30), "spend": (0, 500)}, baseline={"visits": "visits_before"})',
    ),
    **dict.fromkeys(("person", "per_person", "order", "max_rows_per_person", "max_rows"), _PEOPLE),
    "cluster": 'clusters=cv.Clusters("school")',
    **dict.fromkeys(("protects_cluster", "assigned_by_cluster", "per_cluster"), _CLUSTERS),
    **dict.fromkeys(("y_col", "d_cols", "x_cols", "Y", "T", "X", "W", "treat", "covs"), _ROLES),
    **dict.fromkeys(("duration_col", "event_col", "durations", "event_observed"), _EVENT),
}  # fmt: skip

# Arguments that are needed, with the values that they take.
_VALUES = {"protects": 'protects="outcome" (or "treatment and outcome", "record")'}


def known_arguments(call: Callable[P, R]) -> Callable[P, R]:
    """Return a function that refuses arguments it does not have, or lacks, with CV-P028."""
    own = signature(call).parameters

    @wraps(call)
    def checked(*args: P.args, **named: P.kwargs) -> R:
        refuse_arguments(call.__qualname__.removesuffix(".__init__"), own, named, len(args))
        return call(*args, **named)

    return checked


def known_fields(part: type[T]) -> type[T]:
    """Return a dataclass that refuses arguments it does not have, or lacks, with CV-P028."""
    part.__init__ = known_arguments(part.__init__)  # type: ignore[method-assign]
    return part


def refuse_arguments(
    name: str, own: Mapping[str, Parameter], given: Mapping[str, Any], positional: int = 0
) -> None:
    """Raise CV-P028 for the first argument that is not among a function's own, or that it lacks."""
    elsewhere = ELSEWHERE | STUDY_PARTS if name == "Study" else ELSEWHERE
    for key in given:
        if key not in own and key in elsewhere:
            raise refusal("CV-P028", name=name, key=key, ours=elsewhere[key])
        if key not in own:
            raise refusal(
                "CV-P028b",
                name=name,
                key=key,
                fix=nearest(key, [each for each in own if each != "self"], name),
            )
    in_order = [key for key, each in own.items() if each.kind in _BY_POSITION]
    unbounded = any(each.kind is Parameter.VAR_POSITIONAL for each in own.values())
    if positional > len(in_order) and not unbounded and name == "Study":
        raise refusal("CV-P028d", name=name, names=", ".join(key for key in in_order if key != "self"))
    needed = [key for place, key in enumerate(own) if place >= positional and key not in given]
    lacking = [_VALUES.get(key, f"{key}=") for key in needed if own[key].default is Parameter.empty]
    if lacking:
        raise refusal("CV-P028c", name=name, lacking=", ".join(lacking))
