"""Treatment effects as a function of covariates (CATE), released once and evaluated for free: `cate(...)`.

    tau(x) = E[Y(1) - Y(0) | X = x],  approximated by sum_j b_j f_j(x) over a public basis f

In: private rows, declared ranges, the budget. Out: a function of covariates with values in units of the
outcome, with pointwise intervals and a band that holds at all points together; with `queries`, the values at
these public points.

One epsilon pays for the whole function because the numbers that it is made of (moments, or the weights b) are
released once with noise; an evaluation reads these and public points and is post-processing. Proofs:
`rows/linear/linear_map.proof.md` ("series", outcomes private), `rows/moments/arm_statistics.proof.md` and
`rows/moments/orthogonal_score.proof.md` ("t_learner" and "r_learner", records private); the guarantee of each
answer names its own. "r_learner" follows Nie and Wager (2021). This module checks the arguments and hands the
question to the registered estimator.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

from counterveil.accounting import Ledger
from counterveil.data import Study, silence
from counterveil.data.features import require_covariates
from counterveil.errors import refusal
from counterveil.estimators.linear.series import function_pays, series
from counterveil.estimators.moments.learner_design import choose_design, strength
from counterveil.estimators.moments.r_learner import r_learner
from counterveil.estimators.moments.t_learner import t_learner
from counterveil.estimators.pairs.series import function_pays as pair_function_pays
from counterveil.estimators.pairs.series import pair_series
from counterveil.estimators.registry import answer_by, by_unit, methods_of
from counterveil.privacy import Number, Unit
from counterveil.questions.asking import Arguments, Asked, ask_once, asks
from counterveil.questions.ate import answer as average_effect
from counterveil.questions.choices import CateMethod, Protects
from counterveil.results.arms import refuse_several_arms
from counterveil.results.functions import (
    CateAnswers,
    CateModel,
    CateQuestion,
    one_effect_model,
    read_queries,
)
from counterveil.results.question import (
    refuse_extremes,
    refuse_few_clusters,
    refuse_other_settings,
    refuse_shape,
    refuse_unknown_method,
)
from counterveil.rows.public import PublicData
from counterveil.session import BaseSession, BitSource
from counterveil.settings import Cate, Series
from counterveil.settings.methods import Settings

# Rows times mu a function from which the R-learner is as accurate as the T-learner.
_STRONG = 150.0


def automatic(session: BaseSession, question: CateQuestion) -> CateModel:
    """Return the T-learner where rows or budget are few, the R-learner where there are many, else one number.

    Settings ask for a function. Without them it is one number where a function is not expected to be closer to the
    effects, and where noise and sampling explain how a released function differs.
    """
    public = PublicData(session, question.unit)
    budget = question.budget
    design = choose_design(public.study, public.rows, budget, question.settings or Cate())
    if question.settings is None and not design.is_worthwhile:
        return one_number(session, question)
    strong = not budget.pure and strength(public.rows, budget, design.basis.size) >= _STRONG
    return (r_learner if strong else t_learner)(public, question).run(session)


def automatic_series(session: BaseSession, question: CateQuestion) -> CateModel:
    """Return the series where covariates are public, or one number, as for records."""
    public = PublicData(session, question.unit)
    pair = question.unit is Unit.TREATMENT_AND_OUTCOME
    if question.settings is None and not (pair_function_pays if pair else function_pays)(public, question):
        return one_number(session, question)
    return (pair_series if pair else series)(public, question).run(session)


def one_number(session: BaseSession, question: CateQuestion) -> CateModel:
    """Return the average effect that `ate` answers with for the whole budget, the same for everybody."""
    return one_effect_model(session.study, question.level, average_effect(session, question))


AUTO = "auto"
METHODS = by_unit("cate")
# What "auto" takes at each level: its settings are those of the methods that it chooses among.
_AUTO_SETTINGS: dict[Unit, type] = {
    Unit.RECORD: Cate,
    Unit.OUTCOME: Series,
    Unit.TREATMENT_AND_OUTCOME: Series,
}


def cate_methods(unit: Unit | None = None) -> tuple[str, ...]:
    """Return the names that `method=` takes, of all methods or of those that protect a unit."""
    names = methods_of("cate") if unit is None else METHODS[unit]
    return (AUTO, *names)


def check_form(question: CateQuestion) -> None:
    """Raise where there is no such method at that level, or where settings are another's."""
    refuse_unknown_method(question.method, cate_methods())
    if question.method == AUTO:
        refuse_other_settings(question, _AUTO_SETTINGS[question.unit])
        return
    forms = methods_of("cate")[question.method].forms
    if question.unit not in forms:
        known = " or ".join(f"protects={unit.value!r}" for unit in forms)
        raise refusal("CV-P018b", known=known, method=question.method, unit=question.unit.value)
    refuse_other_settings(question, forms[question.unit].settings)


@silence()
def answer_cate(session: BaseSession, question: CateQuestion) -> CateModel | CateAnswers:
    """Return the answer of an admitted question's method; a function is read off at queries for nothing."""
    if question.unit is Unit.RECORD:
        session.attach_batches()
    else:
        session.attach(f"cate with method={question.method!r}")
    if session.study.cluster is not None:
        refuse_few_clusters(session.study, "cate", question.method, PublicData(session, question.unit).rows)
    if question.method != AUTO:
        model = answer_by(CateModel, session, "cate", question)
    elif question.unit is Unit.RECORD:
        model = automatic(session, question)
    else:
        model = automatic_series(session, question)
    return model if question.queries is None else model.answers(question.queries)


@dataclass(frozen=True, slots=True, kw_only=True)
class CateArguments(Arguments[CateModel | CateAnswers]):
    """The arguments of `cate` beside data and study, checked."""

    name: ClassVar[str] = "cate"
    units: ClassVar[tuple[Unit, ...]] = tuple(Unit)
    method: CateMethod = "auto"
    queries: Any = None
    settings: Settings | None = None

    def checked(self, study: Study) -> Asked[CateModel | CateAnswers]:
        """Return the checked question; nothing here looks at data or budget."""
        checked = self.about(study)
        check_form(checked)

        def answer(session: BaseSession) -> CateModel | CateAnswers:
            session.admit(checked.uses(study, "cate"))
            return answer_cate(session, checked)

        return Asked(checked.budget, answer)

    def about(self, study: Study) -> CateQuestion:
        """Return the checked question, for any method; nothing here looks at data."""
        refuse_shape(study, self.unit)
        refuse_several_arms(study)
        require_covariates(study, "cate")
        question = CateQuestion.ask(
            protects=self.unit,
            epsilon=self.epsilon,
            delta=self.delta,
            estimand="ATE",
            method=self.method,
            level=self.level,
            mechanism=None,
            request_id=self.request_id,
            settings=self.settings,
        )
        refuse_extremes(study, question.budget)
        return (
            question if self.queries is None else replace(question, queries=read_queries(self.queries, study))
        )


@asks
def cate(
    data: object,
    study: object,
    declared: object = None,  # noqa: ARG001 (read by `asks`)
    *,
    protects: Protects,
    epsilon: Number,
    delta: Number = 0,
    method: CateMethod = "auto",
    level: float = 0.95,
    queries: Any = None,
    settings: Settings | None = None,
    ledger: str | Path | Ledger | None = None,
    dataset: str | None = None,
    request_id: str | None = None,
    noise: BitSource | None = None,
) -> CateModel | CateAnswers:
    """Estimate the treatment effect as a function of the covariates (CATE).

    One epsilon pays for the whole function: it is released once, and may be evaluated as often as you like
    (post-processing).

    Parameters
    ----------
    data : frame, mapping, path or relation
        The rows: a pandas, polars or pyarrow data frame, a mapping of names to arrays, the path of a
        CSV or Parquet file (or a pattern that names several), a DuckDB relation or a Spark data frame.
        An Ibis table is aggregated inside its database, for methods that need counts and sums alone. A
        formula such as ``"died ~ rhc | age + sex"`` may stand here; rows and declarations follow it.
    study : Study
        Roles, public ranges and categories of the columns. After a formula: the rows.
    declared : mapping, Study or path, optional
        After a formula only: what declares its columns, as a mapping of names to ranges and labels
        (``{"age": (18, 90)}``), a codebook or study file, or a `Study`.
    protects : {"outcome", "treatment and outcome", "record"}
        What is private. "outcome": outcomes alone; covariates and treatments are public. "treatment and
        outcome": treatments and outcomes; covariates are public. "record": everything about a person.
    epsilon : number or str
        Privacy loss to spend on the whole function, read exactly: 0.1 is one tenth, ``"1/3"`` one
        third. Positive.
    delta : number, default 0
        0 for pure differential privacy. A small positive number, below one over the number of people
        (1e-6), allows Gaussian noise.
    method : {"auto", "t_learner", "r_learner", "series"}, default "auto"
        Estimator. "t_learner" and "r_learner" with records private, "series" with public covariates.
        "auto" takes one of them, or the average effect where a function is not expected to be closer to
        people's effects and no settings ask for one.
    level : float, default 0.95
        Confidence level of intervals and bands, between 0 and 1; the privacy noise is included.
    queries : frame or mapping, optional
        People to ask about, as a table of covariates. By default the answer is the function.
    settings : settings of the method, optional
        `cv.settings.Cate` with records private, `cv.settings.Series` with public covariates.
    ledger : path, URL or Ledger, optional
        Existing ledger to charge. Without one, the costs of several calls are not added up.
    dataset : str, optional
        Account in the ledger; needed if it has more than one.
    request_id : str, optional
        Name of this request. Repeating a named request returns the stored answer and costs nothing.
    noise : SeededNoise, optional
        ``cv.SeededNoise(seed)`` for tests and experiments: the result is marked as simulated and
        protects nobody. By default the operating system's random bits.

    Returns
    -------
    CateModel | CateAnswers
        The released function, a `CateModel`; with `queries` its values there, `CateAnswers`. Both have
        pointwise intervals and simultaneous bands, in units of the outcome.

    Raises
    ------
    CounterveilError
        Before anything is spent: arguments (CV-P), study (CV-S), data (CV-D), ledger (CV-L) or budget
        (CV-B).

    See Also
    --------
    groups : Effects of groups.
    targeting_curve : What treating the people of largest effects gains.

    Notes
    -----
    The estimand is the best approximation of E[Y(1) - Y(0) | X = x] by the functions of a public
    basis. "r_learner" is that of Nie and Wager [1]_.

    References
    ----------
    .. [1] Nie, X. and Wager, S. (2021). Quasi-oracle estimation of heterogeneous treatment effects.
       Biometrika 108, 299-319.

    Examples
    --------
    >>> import counterveil as cv
    >>> data = cv.datasets.synth(n=500, covariates=2)
    >>> model = cv.cate(data.frame, data.study, protects="outcome", epsilon=4, noise=cv.SeededNoise(1))
    >>> len(model.effect({"x1": [0.2, 0.8], "x2": [0.5, 0.5]}))
    2
    """
    arguments = CateArguments(
        protects=protects,
        epsilon=epsilon,
        delta=delta,
        method=method,
        level=level,
        queries=queries,
        settings=settings,
        ledger=ledger,
        dataset=dataset,
        request_id=request_id,
        noise=noise,
    )
    return ask_once(arguments, data, study)
