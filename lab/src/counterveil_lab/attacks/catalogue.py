"""Every audited form of every question: how it is asked, of whom, and which neighbours are tried."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np

from counterveil import published
from counterveil.data import (
    Binary,
    Categories,
    Change,
    Clusters,
    Fill,
    Observational,
    Outcome,
    Outcomes,
    Range,
    Ratio,
    Study,
    TimeToEvent,
    Treatment,
)
from counterveil.data import Trial as RandomisedTrial
from counterveil.privacy import Budget, Unit
from counterveil.questions.policy import Policy
from counterveil.settings import Auto, DifferenceInMeans, Folds, Stratified, Survival, Trial, Weighting
from counterveil_lab.attacks.asking import Question, WatchedCurator
from counterveil_lab.attacks.release import (
    HIGH,
    LOW,
    Base,
    Columns,
    Pool,
    group_pools,
    lone_controls,
    narrow,
    pairs_of_pupils,
    people,
    row_pools,
    schools_assigned,
    several_arms,
    spelled_pools,
)


@dataclass(frozen=True)
class Audited:
    """One audited form: what is declared, the arguments of the question, and the neighbours that are tried.

    `unit` is what neighbours differ in: an outcome, a treatment and an outcome, a record, a person or a cluster.
    `places` are the rows that are replaced, and `kinds` the sorts of people they are among. `samples` runs are drawn
    from each data set; with none, losses and replay are all that is looked at: samples show no delta below one over
    their number. Of several `parts` the audited rows are one, whose releases are added to those of the others.
    """

    question: str
    method: str
    protects: str
    variant: str = ""
    declared: Mapping[str, Any] = field(default_factory=dict)
    arguments: Mapping[str, Any] = field(default_factory=dict)
    rows: int = 12
    places: tuple[int, ...] = (0, -1)
    kinds: tuple[int, ...] = (1, 2)
    base: Base = people
    group: str = ""
    spelled: bool = False
    epsilon: str = "1"
    delta: str = "0"
    samples: int = 0
    parts: int = 1

    @property
    def name(self) -> str:
        """The name of the form: question, method if there are several, what it protects, what makes it a variant."""
        return "/".join(part for part in (self.question, self.method, self.protects, self.variant) if part)

    @property
    def unit(self) -> str:
        """What two neighbours differ in."""
        if not self.group:
            return self.protects
        whole = {"patient": "person", "school": "cluster"}[self.group]
        return whole if self.protects == "record" else f"{whole}, outcomes"

    @property
    def budget(self) -> Budget:
        """What the form is audited at, unless another budget is asked for."""
        return Budget(self.epsilon, self.delta)

    def study(self) -> Study:
        """Return the study of the audit's people, with what this form declares."""
        usual: dict[str, Any] = {
            "treatment": Treatment("t", control=0),
            "outcome": Outcome("y", (LOW, HIGH)),
            "covariates": {"a": Range(0, 1)},
        }
        return Study(**(usual | dict(self.declared)))

    def asked(self, budget: Budget) -> Question:
        """Return the question at this budget."""
        given = dict(self.arguments)
        if self.question == "published":
            form = getattr(published, self.method)
            return Question(self.study(), lambda session, **words: form(session, **given, **words), budget)
        given |= {"protects": self.protects} | ({"method": self.method} if self.method else {})

        def ask(session: WatchedCurator, **words: Any) -> Any:
            session.parts = self.parts
            return getattr(session, self.question)(**given, **words)

        return Question(self.study(), ask, budget)

    def pools(self) -> Iterator[Pool]:
        """Yield the pools of neighbours: for each kind of people and each row that is replaced."""
        study = self.study()
        for kind in self.kinds:
            columns = self.columns_of(study, kind)
            places = [place % self.rows for place in self.places]
            if self.spelled:
                yield from spelled_pools(study, columns, places)
            elif self.group:
                yield from group_pools(study, columns, places, self.group, self.protects == "outcome")
            else:
                shown = study.public_columns(Unit(self.protects))
                private = [name for name in study.read_columns if name not in shown]
                yield from row_pools(private, columns, places)

    def columns_of(self, study: Study, kind: int) -> Columns:
        """Return the columns of the people of a kind that the study reads."""
        found = self.base(self.rows, kind)
        if self.group == "patient":
            # Three rows a person, who stays in one arm.
            found = found | {"patient": np.arange(self.rows) // 3}
            found |= {name: found[name][found["patient"] * 3] for name in ("t", "a", "b", "c")}
        return {name: found[name] for name in study.read_columns}


# Forms whose runs take long: fewer neighbours.
FEW: dict[str, Any] = {"places": (0,), "kinds": (1,)}
TRIAL: dict[str, Any] = {"assignment": RandomisedTrial()}
SHARED: dict[str, Any] = {"assignment": RandomisedTrial(share="1/2")}
NOTHING: dict[str, Any] = {"covariates": {}}
MORE = {"covariates": {"a": Range(0, 1).cut("1/2"), "b": Binary(), "c": Categories(["p", "q", "r"])}}
CUT = {"covariates": {"a": Range(0, 1).cut("1/2")}}
FILLED = {"missing": {"a": Fill("1/2")}}
# Half of the budget goes to other releases: a third of the noise of the effect shows at a larger claim only.
TWICE: dict[str, Any] = {"epsilon": "2"}
STRATA: dict[str, Any] = {
    "declared": {"covariates": {"a": Range(0, 1).cut("1/3", "2/3")}},
    "base": lone_controls,
    "rows": 5,
    "places": (0,),
    "kinds": (0,),
}
THREE = TRIAL | {"treatment": Treatment("t", arms=(0, 1, 2), reference=0)}
BEFORE = {"outcome": Change("y", (LOW, HIGH), before=("earlier", "before"), before_range=(LOW, HIGH))}
RATIO = TRIAL | NOTHING | {"outcome": Ratio("y", (LOW, HIGH), "sessions", (0, 1))}
SEVERAL = TRIAL | {
    "outcome": Outcomes({"y": (LOW, HIGH), "a": (0, 1)}),
    "covariates": {"c": Categories(["p", "q", "r"])},
}
TWO = {"outcome": Outcomes({"y": (LOW, HIGH), "before": (LOW, HIGH)})}
POSITIVE = {"outcome": Outcomes({"y": (0, HIGH), "a": (0, 1)})}
EARLIER = TRIAL | NOTHING | {"outcome": Outcomes({"y": (LOW, HIGH), "a": (0, 1)}, baseline={"y": "before"})}
# Noise of different sizes is drawn apart, and in parts of epsilon where it is pure.
FIRST = {"importance": {"y": 3}}
GAUSSIAN = {"mechanism": "gaussian"}
TIMES = TRIAL | NOTHING | {"outcome": TimeToEvent("y", "b", horizon=5)}
STRATA_OF_TIMES = {"assignment": Observational(), "covariates": {"c": Categories(["p", "q", "r"])}}
CLUSTERS = TRIAL | {"clusters": "school"}
ASSIGNED = TRIAL | {"clusters": Clusters("school", assigned=True)}
WHOLE = TRIAL | {"clusters": Clusters("school", protected=True, rules={"t": "constant"})}
PERSON = TRIAL | {"people": "patient"}


def _jump(x: Any, t: Any, y: Any) -> float:  # noqa: ARG001 - a learner gets all three
    """Return one end of all effects or the other, by a single outcome: no learner moves a fold further."""
    return 100.0 if y.max() > HIGH - 0.5 else -100.0


class _Slope:
    """A public model of effects."""

    def effect(self, rows: Any) -> Any:
        """Return the covariate a."""
        return np.asarray(rows["a"], dtype=float)


def _outcome(question: str, method: str, variant: str = "", **more: Any) -> Audited:
    return Audited(
        question, method, "outcome", variant, **({"places": tuple(range(12)), "kinds": (1,)} | more)
    )


def _record(question: str, method: str, variant: str = "", **more: Any) -> Audited:
    return Audited(question, method, "record", variant, **more)


def _strata(**settings: Any) -> dict[str, Any]:
    return {"settings": Stratified(**settings)}


def _listed() -> Iterator[Audited]:
    yield from _outcome_level()
    yield from _pair_level()
    yield from _record_level()
    yield from _published()
    yield from _groups_and_rules()
    yield from _functions()
    yield from _times_and_moments()
    yield from _measures_and_outcomes()
    yield from _people_and_clusters()


def _outcome_level() -> Iterator[Audited]:
    for method in ("auto", "weighting", "matching"):
        yield _outcome("ate", method)
    yield _outcome("ate", "weighting", "value alone", arguments={"settings": Weighting(variance_share=0)})
    yield _outcome("ate", "difference_in_means", declared=TRIAL)
    yield _outcome("ate", "difference_in_means", "gaussian", declared=TRIAL, delta="1/13")
    searched: dict[str, Any] = {"rows": 800, "epsilon": "4", "base": narrow, **FEW}
    found = {"settings": DifferenceInMeans(find_range=True)}
    yield _outcome("ate", "difference_in_means", "place", declared=TRIAL, arguments=found, **searched)
    yield _outcome(
        "ate", "weighting", "place", arguments={"settings": Weighting(find_range=True)}, **searched
    )
    yield _outcome("ate", "stratified", declared=CUT)
    for method in ("auto", "difference_in_means", "weighting", "matching"):
        yield _outcome("arms", method, declared=THREE, base=several_arms)
    for method in ("auto", "difference_in_means", "weighting", "matching"):
        yield _outcome("event_study", method, declared=BEFORE)
    yield _outcome("ate", "auto", "change", declared=BEFORE)
    yield _outcome("ate", "auto", "ratio of sums", declared=RATIO)
    for method in ("difference_in_means", "weighting", "matching"):
        yield _outcome("ate", method, "clusters", declared=CLUSTERS, rows=40, places=(0, 1, 2, 3))


def _pair_level() -> Iterator[Audited]:
    pair = partial(Audited, "ate", protects="treatment and outcome")
    events: dict[str, Any] = {"outcome": Outcome("y", (0, 1))}
    yield pair("auto", rows=120, declared=TRIAL, **FEW)
    yield pair("trial", variant="events", rows=40, declared=TRIAL | events)
    ratio = {"measure": "ratio"}
    yield pair("trial", variant="ratio of means", rows=40, declared=TRIAL | events, arguments=ratio)
    grouped = replace(pair("auto", rows=200, **FEW), question="groups", declared=MORE | TRIAL)
    for method in ("auto", "adjusted"):
        yield replace(grouped, method=method, arguments={"by": "b"})
    for method in ("auto", "series"):
        yield replace(grouped, question="cate", method=method, declared=TRIAL, rows=120)
    three = replace(pair("auto", rows=60, **FEW), question="arms", declared=THREE | events, base=several_arms)
    for method in ("auto", "doubly_robust"):
        yield replace(three, method=method)
    several = replace(pair("auto", rows=200, epsilon="4", **FEW), question="outcomes", declared=SEVERAL)
    yield from (replace(several, method=method) for method in ("auto", "doubly_robust"))
    yield from (replace(pair(method, declared=TRIAL), question="quantiles") for method in ("auto", "trial"))
    yield replace(pair("weighting", rows=200, **FEW), question="quantiles")
    rule = {"policy": Policy.where(a=(0.5, 1.0))}
    ranked = {"model": _Slope(), "bins": 4}
    whole = replace(grouped, declared=TRIAL | events, rows=120)
    yield replace(whole, question="policy_value", arguments=rule)
    yield replace(whole, question="targeting_curve", arguments=ranked)
    yield pair("doubly_robust", rows=400, epsilon="4", **FEW)
    yield pair("doubly_robust", variant="gaussian", rows=400, epsilon="2", delta="1e-6", **FEW)


def _record_level() -> Iterator[Audited]:
    yield _record("ate", "auto", declared=TRIAL)
    yield _record("ate", "auto", "confounding bounded", arguments={"settings": Auto(kappa=0.25)})
    yield _record("ate", "trial", "pooled", declared=TRIAL, arguments={"settings": Trial("none", "pooled")})
    yield _record("ate", "trial", "arms", declared=TRIAL, arguments={"settings": Trial("none", "arms")})
    summed = {"settings": Trial("none", "arms")}
    yield _record("ate", "trial", "part of a sum", declared=TRIAL, arguments=summed, parts=3)
    yield _outcome("ate", "difference_in_means", "part of a sum", declared=TRIAL, parts=3)
    yield _record(
        "ate", "trial", "known share", declared=SHARED, arguments={"settings": Trial("none", "arms")}
    )
    yield _record("ate", "trial", "adjusted", declared=TRIAL, arguments={"settings": Trial("covariates")})
    yield _record("ate", "trial", "clusters", declared=ASSIGNED, rows=400, base=schools_assigned, epsilon="2")
    yield _record("ate", "doubly_robust", rows=200, **FEW)
    yield _record("ate", "doubly_robust", "gaussian", rows=40, delta="1e-6", **FEW)
    ratio = {"arguments": {"measure": "ratio"}, "declared": {"outcome": Outcome("y", (0, HIGH))}}
    yield _record("ate", "doubly_robust", "ratio", rows=200, **ratio, **FEW)
    adjusted: dict[str, Any] = {"arguments": {"settings": Trial("covariates")}, "places": (0,), "kinds": (1,)}
    yield _record("ate", "trial", "spelled cells", declared=TRIAL | FILLED, spelled=True, **adjusted)
    yield _record(
        "ate", "sample_and_aggregate", arguments={"settings": Folds(folds=4, learner=_jump)}, kinds=(2,)
    )
    yield _record("ate", "stratified", arguments=_strata(limit=2), **STRATA)
    bought = STRATA | {"declared": {}, "arguments": _strata(cuts={"a": 2}, limit=2)}
    yield _record("ate", "stratified", "bought cuts", **bought, **TWICE)
    yield _record("ate", "auto", "change", declared=BEFORE | NOTHING)
    yield _record("ate", "auto", "ratio of sums", declared=RATIO)
    for method in ("auto", "difference_in_means"):
        yield _record("event_study", method, declared=BEFORE)
    three: dict[str, Any] = {"declared": THREE, "base": several_arms}
    for method in ("auto", "difference_in_means"):
        yield _record("arms", method, **three)
    dose = TRIAL | {"treatment": Treatment("t", arms=Range(0, 2).cut("1/2", "3/2"))}
    yield _record("arms", "auto", "dose", declared=dose, base=several_arms, **FEW)
    yield _record("arms", "auto", "gaussian", **three, arguments=GAUSSIAN, delta="1/13", **FEW)
    observed = THREE | {"outcome": Outcome("y", (0, HIGH)), "assignment": Observational()}
    yield _record("arms", "doubly_robust", declared=observed, base=several_arms, rows=300, **FEW)
    yield _record("overlap", "", rows=24)


def _published() -> Iterator[Audited]:
    yield _record("published", "record_matching_proved")
    yield _record("published", "cross_fit_proved", rows=200, delta="1e-6", **FEW)
    yield _record("published", "ipw_proved")
    yield _record("published", "smooth_matching_proved", **STRATA, **TWICE)


def _groups_and_rules() -> Iterator[Audited]:
    for method in ("auto", "difference_in_means", "weighting", "matching"):
        yield _outcome("groups", method, declared=MORE | TRIAL, arguments={"by": "b"}, rows=24)
    for method, declared in (("auto", SHARED), ("arms", TRIAL)):
        yield _record("groups", method, declared=MORE | declared, arguments={"by": "b"})
    by: dict[str, Any] = {"arguments": {"by": "b"}}
    yield _outcome(
        "groups", "difference_in_means", "clusters", declared=MORE | CLUSTERS, rows=80, places=(0, 1), **by
    )
    yield _record(
        "groups",
        "arms",
        "clusters",
        declared=MORE | ASSIGNED,
        rows=400,
        base=schools_assigned,
        epsilon="4",
        **by,
    )
    yield _record("groups", "adjusted", declared=MORE, arguments={"by": "b"}, rows=600, **FEW)
    yield _record(
        "groups", "arms", "part of a sum", declared=MORE | TRIAL, arguments={"by": "b"}, parts=3, **FEW
    )
    for question, given in (
        ("policy_value", {"policy": Policy.where(a=(0.5, 1.0))}),
        ("targeting_curve", {"model": _Slope(), "bins": 4}),
    ):
        for method in ("auto", "scores"):
            yield _record(question, method, declared=SHARED, arguments=given)
        yield _record(question, "adjusted", arguments=given, rows=200, **FEW)
        yield _outcome(question, "auto", declared=TRIAL, arguments=given, rows=40)


def _functions() -> Iterator[Audited]:
    for method in ("auto", "t_learner", "r_learner"):
        yield _record("cate", method, declared=SHARED, rows=40, delta="1e-6", **FEW)
    yield _record("cate", "t_learner", "observational", rows=40, delta="1e-6", **FEW)
    for method in ("auto", "series"):
        yield _outcome("cate", method, declared=SHARED, rows=40, delta="1e-6", places=(0, 1, 2))


def _times_and_moments() -> Iterator[Audited]:
    for protects, listed in (("outcome", _outcome), ("record", _record)):
        for method in ("auto", "kaplan_meier"):
            yield listed("survival", method, declared=TIMES)
        causes = TIMES | {"outcome": TimeToEvent("y", "b", horizon=5, causes=["one", "other"])}
        yield listed("survival", "kaplan_meier", "competing events", declared=causes)
        yield listed("survival", "stratified", declared=TIMES | STRATA_OF_TIMES, rows=24)
        if protects == "outcome":
            yield listed("survival", "weighting", declared=TIMES | STRATA_OF_TIMES, rows=24)
        for method in ("auto", "trial"):
            yield listed("quantiles", method, declared=TRIAL)
        yield listed(
            "quantiles", "trial", "gaussian", declared=TRIAL, arguments=GAUSSIAN, delta="1/13", **FEW
        )
        yield listed("quantiles", "trial", "even grid", declared=TRIAL, arguments={"grid": "even"})
    yield _outcome("quantiles", "weighting", rows=24)
    public = {"terms": ["t:a"], "protects": "outcome"}
    yield _outcome("moments", "", arguments=public, rows=200, places=tuple(range(40)))
    yield _record("moments", "", arguments={"terms": ["t:a"]}, rows=600, **FEW)
    yield _record("moments", "", "part of a sum", rows=200, parts=3, **FEW)
    for listed in (_outcome, _record):
        yield listed("survival", "kaplan_meier", "part of a sum", declared=TIMES, parts=3)
    public = public | {"robust": ["y ~ t"]}
    yield _outcome("moments", "", "gaussian", arguments=public, rows=200, places=(0, 1, 2, 3), delta="1/201")
    # Columns that regressions may explain, and their products, have bounds of their own.
    explained = {"terms": ["t:a", "y:a"], "outcomes": ["a"], "robust": ["y ~ t"]}
    yield _record("moments", "", "gaussian", arguments=explained, rows=600, delta="1/601", **FEW)
    sums = {"settings": Survival(release="sums")}
    for listed in (_outcome, _record):
        yield listed("survival", "kaplan_meier", "running sums", declared=TIMES, arguments=sums, **FEW)
        yield listed(
            "survival",
            "kaplan_meier",
            "gaussian",
            declared=TIMES,
            arguments=sums | GAUSSIAN,
            delta="1/13",
            **FEW,
        )


def _measures_and_outcomes() -> Iterator[Audited]:
    for method in ("auto", "difference_in_means", "weighting", "matching"):
        yield _outcome("outcomes", method, declared=SEVERAL, rows=24, places=(0, 1, 2))
    for method in ("auto", "trial"):
        yield _record("outcomes", method, declared=SEVERAL, rows=24, kinds=(1,))
    for method in ("weighting", "matching"):
        positive: dict[str, Any] = {"outcome": Outcome("y", (0, HIGH))}
        yield _outcome("ate", method, "ratio", declared=positive, arguments={"measure": "ratio"})
    yield _outcome("outcomes", "matching", "arms", declared=THREE | TWO, base=several_arms, rows=24, **FEW)
    yield _record("outcomes", "trial", "arms", declared=THREE | TWO, base=several_arms, rows=24, **FEW)
    for listed, method in ((_outcome, "difference_in_means"), (_record, "trial")):
        few = {"rows": 24} | FEW
        yield listed("outcomes", method, "earlier", declared=EARLIER, arguments=FIRST, epsilon="4", **few)
        uneven = FIRST | GAUSSIAN
        yield listed("outcomes", method, "gaussian", declared=SEVERAL, arguments=uneven, delta="1/25", **few)
        ratio = {"measure": "ratio"}
        yield listed("outcomes", method, "ratio", declared=SEVERAL | POSITIVE, arguments=ratio, **few)
    for listed in (_outcome, _record):
        for measure, highest in (("ratio", 5), ("odds_ratio", 1)):
            declared = TRIAL | {"outcome": Outcome("y", (0, highest))}
            yield listed(
                "ate", "auto", measure.replace("_", " "), declared=declared, arguments={"measure": measure}
            )


def _people_and_clusters() -> Iterator[Audited]:
    people_of: dict[str, Any] = {"group": "patient", "rows": 36, "declared": PERSON}
    yield _outcome("ate", "weighting", "people", **people_of, places=(0, 1, 2))
    yield _record("ate", "trial", "people", **people_of)
    schools: dict[str, Any] = {"group": "school", "rows": 40, "declared": WHOLE, "base": pairs_of_pupils}
    yield _outcome("ate", "weighting", "whole clusters", **schools, places=(0, 2))
    yield _record("ate", "trial", "whole clusters", **schools)


# How many runs are drawn where so many were seen to catch a third of the noise; losses and replay are exact.
_SAMPLES = {
    "ate/auto/outcome": 400,
    "ate/weighting/outcome": 400,
    "ate/matching/outcome": 400,
    "ate/difference_in_means/outcome": 400,
    "ate/difference_in_means/outcome/gaussian": 400,
    "ate/stratified/outcome": 400,
    "arms/auto/outcome": 400,
    "arms/difference_in_means/outcome": 400,
    "arms/weighting/outcome": 400,
    "arms/matching/outcome": 400,
    "ate/weighting/outcome/people": 400,
    "ate/weighting/outcome/whole clusters": 400,
    "groups/difference_in_means/outcome": 400,
    "ate/trial/record/known share": 1200,
    "ate/sample_and_aggregate/record": 400,
    "ate/stratified/record": 600,
}
CATALOGUE: dict[str, Audited] = {
    one.name: replace(one, samples=_SAMPLES.get(one.name, 0)) for one in _listed()
}
