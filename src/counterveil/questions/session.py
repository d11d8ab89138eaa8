"""`Session`: several questions about the same rows, against one budget.

In: data, a study with public declarations, and what is charged. Each method asks one question, names its own
epsilon and delta, and returns a released answer. The ledger adds up what questions cost, also where later
ones are chosen by earlier answers, and refuses what no longer fits: `accounting/filters.proof.md`. Methods
have the parameters and docstrings of the functions in this package, without those that open a session.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from typing import Any

from counterveil.accounting import Remaining
from counterveil.data import Table
from counterveil.data.domains import Label
from counterveil.estimators.method import AdaptiveMethod
from counterveil.privacy import Number, Unit
from counterveil.questions.arms import ArmsArguments
from counterveil.questions.asking import Arguments, ask_of, refuses_unknown
from counterveil.questions.ate import AteArguments
from counterveil.questions.cate import CateArguments
from counterveil.questions.choices import (
    ArmsMethod,
    AteMethod,
    CateMethod,
    EstimandName,
    EventStudyMethod,
    GroupsMethod,
    Mechanism,
    OutcomesMethod,
    PolicyMethod,
    Protects,
    QuantilesMethod,
    SurvivalMethod,
)
from counterveil.questions.event_study import EventStudyArguments
from counterveil.questions.groups import By, GroupsArguments
from counterveil.questions.interim import answer_look
from counterveil.questions.moments import MomentsArguments
from counterveil.questions.outcomes import OutcomesArguments
from counterveil.questions.overlap import OverlapArguments
from counterveil.questions.policy import EffectModel, PolicyValueArguments, TargetingCurveArguments
from counterveil.questions.quantiles import Grid, QuantilesArguments
from counterveil.questions.release import ReleaseArguments
from counterveil.questions.survival import SurvivalArguments
from counterveil.results.arms import ArmsResult, EventStudyResult, OutcomesResult
from counterveil.results.functions import CateAnswers, CateModel
from counterveil.results.groups import GroupsResult, PolicyValue, TargetingCurve
from counterveil.results.measures import Measure
from counterveil.results.overlap import OverlapSummary
from counterveil.results.own_release import Release
from counterveil.results.regression import Moments
from counterveil.results.result import Result
from counterveil.results.survival import QuantilesResult, SurvivalResult
from counterveil.rows.statistic import Norm
from counterveil.session import BaseSession
from counterveil.settings import (
    Arms,
    DifferenceInMeans,
    Groups,
    Matching,
    Survival,
    Weighting,
)
from counterveil.settings.methods import Settings

# Every question by its name.
QUESTIONS: dict[str, type[Arguments[Any]]] = {
    kind.name: kind
    for kind in (
        AteArguments,
        ArmsArguments,
        OutcomesArguments,
        GroupsArguments,
        EventStudyArguments,
        CateArguments,
        PolicyValueArguments,
        TargetingCurveArguments,
        SurvivalArguments,
        QuantilesArguments,
        MomentsArguments,
        OverlapArguments,
    )
}


class Session(BaseSession):
    """An open data set with its budget: every question asked of it is charged to the same ledger.

    It is closed by `close`, or by leaving a ``with`` block.

    Parameters
    ----------
    source : frame, mapping, path or relation
        The rows: a pandas, polars or pyarrow data frame, a mapping of names to arrays, the path of a CSV or
        Parquet file (or a pattern that names several), a DuckDB relation, a Spark data frame or an Ibis
        table. They are attached once.
    study : Study
        Roles, public ranges and categories of the columns.
    budget : Budget, optional
        Total budget. Needed if the data set is not registered yet; otherwise omitted, or the same.
    ledger : path, URL or Ledger, optional
        Existing ledger to charge. By default one in memory, for this session alone.
    dataset : str, optional
        Account in the ledger. By default its only account, or "data" in a new ledger.
    noise : SeededNoise, optional
        ``cv.SeededNoise(seed)`` for tests and experiments: results are marked as simulated and protect
        nobody. By default the operating system's random bits.
    attach : bool, default True
        Whether rows are checked when the session opens. False leaves them unread until a question needs them.
    analyst : str, optional
        Who asks, as the ledger records it. By default the operating system's user.
    access_policy : AccessPolicy, optional
        What an account that is registered here permits. For an existing account omitted, or the same.

    Attributes
    ----------
    study : Study
        The study that questions are asked of.
    ledger : Ledger
        The ledger that is charged.
    dataset : str
        The account in it.

    Raises
    ------
    CounterveilError
        Study (CV-S), data (CV-D), ledger (CV-L) or budget (CV-B, CV-P012 to CV-P014).

    See Also
    --------
    open_ledger : Create or open a ledger that outlives a session.

    Notes
    -----
    Epsilons and deltas of the questions add up to at most the budget (sequential composition);
    Gaussian releases are added up by their mu where the ledger's rule says so.

    Examples
    --------
    >>> import counterveil as cv
    >>> data = cv.datasets.simulated_trial(n=2000, effect=0.3)
    >>> with cv.Session(data.frame, data.study, budget=cv.Budget(2), noise=cv.SeededNoise(1)) as session:
    ...     effect = session.ate(protects="outcome", epsilon=1)
    ...     groups = session.groups(by={"x": (0.5,)}, protects="outcome", epsilon=1)
    ...     remaining = session.remaining()
    >>> len(groups.table), float(remaining.epsilon)
    (2, 0.0)
    """

    # Written by `python -m tools.session_methods` from the functions of the questions.

    @refuses_unknown
    def ate(
        self,
        *,
        protects: Protects,
        epsilon: Number,
        delta: Number = 0,
        method: AteMethod | AdaptiveMethod = "auto",
        estimand: EstimandName | None = None,
        measure: Measure = "difference",
        level: float = 0.95,
        mechanism: Mechanism | None = None,
        trim: float | str | None = None,
        settings: Settings | None = None,
        request_id: str | None = None,
    ) -> Result:
        """Estimate an average treatment effect with differential privacy.

        Parameters
        ----------
        protects : {"outcome", "treatment and outcome", "record"}
            What is private. "outcome": outcomes alone; covariates and treatments are public. "treatment and
            outcome": treatments and outcomes; covariates are public. "record": everything about a person.
        epsilon : number or str
            Privacy loss to spend, read exactly: 0.1 is one tenth, ``"1/3"`` one third. Positive.
        delta : number, default 0
            0 for pure differential privacy. A small positive number, below one over the number of people
            (1e-6), allows Gaussian noise.
        method : str or Method, default "auto"
            Estimator. "auto" chooses from public numbers alone and names its choice in the result. With
            outcomes private: "difference_in_means" (trials), "weighting", "matching" and "stratified". With
            records private: "trial", "doubly_robust", "stratified" and "sample_and_aggregate". With
            treatments and outcomes private: "trial" and "doubly_robust". Or a method of your own, an object
            of a subclass of `cv.methods.Method`; its guarantee rests on the bounds that it declares.
        estimand : {"ATE", "ATT", "ATC", "ATO"}, optional
            Whose average effect: everyone's, that of the treated, of the untreated, or of the
            overlap-weighted population. By default "ATE"; "ATT" where a study compares changes and is not
            randomised. "ATO" needs ``protects="record"`` or ``"treatment and outcome"`` and method "auto"
            or "doubly_robust".
        measure : {"difference", "ratio", "lift", "odds_ratio", "nnt"}, default "difference"
            Scale of the effect, from the mean outcomes m1 with treatment and m0 without: m1 - m0, m1 / m0,
            m1 / m0 - 1, the ratio of the odds m / (1 - m), or the number needed to treat, 1 / (m1 - m0).
            Ratios, lifts and odds ratios need a method that releases both means. Intervals of ratios may
            have no upper end, those of numbers needed to treat two parts.
        level : float, default 0.95
            Confidence level of the interval, between 0 and 1; the privacy noise is included.
        mechanism : {"staircase", "laplace", "gaussian"}, optional
            Noise distribution; "gaussian" needs a positive `delta`. By default the one of least variance:
            staircase with ``delta=0`` and for few numbers, Gaussian otherwise.
        trim : float or "optimal", optional
            With ``protects="outcome"``: keep people whose propensity score is in [trim, 1 - trim], or
            inside the limits of least variance [1]_. The effect is then that of the people kept.
        settings : settings of the method, optional
            `cv.settings.Auto`, `DifferenceInMeans`, `Trial`, `Matching`, `Weighting`, `Stratified`,
            `DoublyRobust` or `Folds` (of "sample_and_aggregate"), as
            ``cv.settings.Matching(neighbours=5)``.
        request_id : str, optional
            Name of this request. Repeating a named request returns the stored answer and costs nothing.

        Returns
        -------
        Result
            Estimate, standard error, confidence interval, guarantee and what was spent; a `MeasureResult`
            with other measures than "difference".

        Raises
        ------
        CounterveilError
            Before anything is spent: arguments (CV-P), study (CV-S), data (CV-D), ledger (CV-L) or budget
            (CV-B).

        See Also
        --------
        groups, cate : Effects of groups, and as a function of covariates.
        plan : Lengths of intervals, before anything is spent.

        Notes
        -----
        The estimand of ``"ATE"`` is E[Y(1) - Y(0)] over the people in the data, of ``"ATT"`` that over the
        treated, of ``"ATC"`` over the untreated, and of ``"ATO"`` the mean with weights p(x) (1 - p(x)),
        where p is the propensity score.

        The interval is ``{e : |estimate - e| <= h}`` with ``P(|N(0, v) + X| > h) = 1 - level``, where v
        is the sampling variance and X the privacy noise, whose distribution is public. It is cut to what
        the range of outcomes allows.

        References
        ----------
        .. [1] Crump, R. K., Hotz, V. J., Imbens, G. W. and Mitnik, O. A. (2009). Dealing with limited overlap
           in estimation of average treatment effects. Biometrika 96, 187-199.

        Examples
        --------
        >>> import counterveil as cv
        >>> data = cv.datasets.simulated_trial(n=2000, effect=0.3)
        >>> session = cv.Session(data.frame, data.study, budget=cv.Budget(8), noise=cv.SeededNoise(1))
        >>> result = session.ate(protects="outcome", epsilon=1)
        >>> round(result.estimate, 1)
        0.3
        >>> low, high = result.interval()
        >>> low < 0.3 < high
        True
        """
        arguments = AteArguments(
            protects=protects,
            epsilon=epsilon,
            delta=delta,
            method=method,
            estimand=estimand,
            measure=measure,
            level=level,
            mechanism=mechanism,
            trim=trim,
            settings=settings,
            request_id=request_id,
        )
        return ask_of(self, arguments)

    @refuses_unknown
    def arms(
        self,
        *,
        protects: Protects,
        epsilon: Number,
        delta: Number = 0,
        method: ArmsMethod = "auto",
        level: float = 0.95,
        mechanism: Mechanism | None = None,
        settings: Arms | None = None,
        request_id: str | None = None,
    ) -> ArmsResult:
        """Estimate the average effects of all arms of a study against its reference arm.

        One epsilon pays for all arms together, as a person is in one arm only
        (``rows/linear/arm_mean.proof.md``, ``rows/moments/arms.proof.md``).

        Parameters
        ----------
        protects : {"outcome", "treatment and outcome", "record"}
            What is private. "outcome": outcomes alone; covariates and treatments are public. "treatment and
            outcome": treatments and outcomes; covariates are public. "record": everything about a person.
        epsilon : number or str
            Privacy loss to spend on all arms together, read exactly: 0.1 is one tenth, ``"1/3"`` one third.
            Positive.
        delta : number, default 0
            0 for pure differential privacy. A small positive number, below one over the number of people
            (1e-6), allows Gaussian noise.
        method : {"auto", "difference_in_means", "weighting", "matching", "doubly_robust"}, default "auto"
            Estimator. "auto" takes "difference_in_means" in a trial and where there are no covariates;
            elsewhere "weighting" with outcomes private and "doubly_robust" with records private. "matching"
            is for private outcomes. With treatments and outcomes private "doubly_robust" is the only one.
        level : float, default 0.95
            Confidence level of the intervals, single or simultaneous, between 0 and 1; the privacy noise is
            included.
        mechanism : {"staircase", "laplace", "gaussian"}, optional
            Noise distribution; "gaussian" needs a positive `delta`. By default the one of least variance:
            staircase with ``delta=0`` and for few numbers, Gaussian otherwise.
        settings : cv.settings.Arms, optional
            For "weighting" and "matching".
        request_id : str, optional
            Name of this request. Repeating a named request returns the stored answer and costs nothing.

        Returns
        -------
        ArmsResult
            Mean outcome of every arm, the reference first, and the differences from the reference, in units
            of the outcome, with single and simultaneous intervals.

        Raises
        ------
        CounterveilError
            Before anything is spent: arguments (CV-P), study (CV-S), data (CV-D), ledger (CV-L) or budget
            (CV-B).

        See Also
        --------
        ate : Two arms.
        outcomes : Several outcomes, of two arms or of several.

        Notes
        -----
        The estimand of arm a is E[Y(a) - Y(r)] over everyone in the data, where r is the reference.

        Examples
        --------
        >>> import counterveil as cv
        >>> trial = {
        ...     "dose": [("placebo", "low", "high")[row % 3] for row in range(600)],
        ...     "relief": [0.2 + 0.2 * (row % 3) + 0.1 * (row % 2) for row in range(600)],
        ... }
        >>> study = cv.Study(
        ...     cv.Treatment("dose", arms=("placebo", "low", "high"), reference="placebo"),
        ...     cv.Outcome("relief", (0, 1)),
        ...     assignment=cv.Trial(),
        ... )
        >>> session = cv.Session(trial, study, budget=cv.Budget(8), noise=cv.SeededNoise(1))
        >>> result = session.arms(protects="outcome", epsilon=5)
        >>> [(effect.name, round(effect.estimate, 1)) for effect in result.table]
        [('low - placebo', 0.2), ('high - placebo', 0.4)]
        >>> low, high = result.interval(simultaneous=True)["high"]
        >>> low < 0.4 < high
        True
        """
        arguments = ArmsArguments(
            protects=protects,
            epsilon=epsilon,
            delta=delta,
            method=method,
            level=level,
            mechanism=mechanism,
            settings=settings,
            request_id=request_id,
        )
        return ask_of(self, arguments)

    @refuses_unknown
    def cate(
        self,
        *,
        protects: Protects,
        epsilon: Number,
        delta: Number = 0,
        method: CateMethod = "auto",
        level: float = 0.95,
        queries: Any = None,
        settings: Settings | None = None,
        request_id: str | None = None,
    ) -> CateModel | CateAnswers:
        """Estimate the treatment effect as a function of the covariates (CATE).

        One epsilon pays for the whole function: it is released once, and may be evaluated as often as you like
        (post-processing).

        Parameters
        ----------
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
        request_id : str, optional
            Name of this request. Repeating a named request returns the stored answer and costs nothing.

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
        >>> session = cv.Session(data.frame, data.study, budget=cv.Budget(8), noise=cv.SeededNoise(1))
        >>> model = session.cate(protects="outcome", epsilon=4)
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
            request_id=request_id,
        )
        return ask_of(self, arguments)

    @refuses_unknown
    def event_study(
        self,
        *,
        protects: Protects,
        epsilon: Number,
        delta: Number = 0,
        reference: Label | None = None,
        method: EventStudyMethod = "auto",
        estimand: EstimandName | None = None,
        level: float = 0.95,
        mechanism: Mechanism | None = None,
        settings: DifferenceInMeans | Matching | Weighting | None = None,
        request_id: str | None = None,
    ) -> EventStudyResult:
        """Estimate the effects of all periods of a panel, relative to a reference period.

        Everyone treated is so from the end of the periods before on. Effects of periods before treatment
        show whether trends were parallel then. One epsilon pays for all periods:
        each has a part of it (``rows/linear/event_study.proof.md``, ``rows/moments/event_study.proof.md``).

        Parameters
        ----------
        protects : {"outcome", "record"}
            What is private. "outcome": all measurements of a person; covariates and treatments are public.
            "record": everything about a person.
        epsilon : number or str
            Privacy loss to spend on all periods together, read exactly: 0.1 is one tenth, ``"1/3"`` one
            third. Positive.
        delta : number, default 0
            0 for pure differential privacy. A small positive number, below one over the number of people
            (1e-6), allows Gaussian noise, which grows with the root of the number of periods; pure noise
            grows with their number.
        reference : label, optional
            A period before treatment, or its column, that the others are compared with. By default the last
            one before treatment.
        method : {"auto", "difference_in_means", "weighting", "matching"}, default "auto"
            Estimator. "auto" takes "weighting" with outcomes private, covariates and no trial, else
            "difference_in_means". "weighting" and "matching" need private outcomes.
        estimand : {"ATE", "ATT", "ATC"}, optional
            Whose average effect: everyone's, that of the treated or of the untreated. By default "ATT", in
            a trial "ATE".
        level : float, default 0.95
            Confidence level of the intervals, single or simultaneous, between 0 and 1; the privacy noise is
            included.
        mechanism : {"staircase", "laplace", "gaussian"}, optional
            Noise distribution; "gaussian" needs a positive `delta`. By default the one of least variance:
            staircase with ``delta=0`` and for few numbers, Gaussian otherwise.
        settings : settings of the method, optional
            With outcomes private `cv.settings.DifferenceInMeans`, `Weighting` or `Matching`.
        request_id : str, optional
            Name of this request. Repeating a named request returns the stored answer and costs nothing.

        Returns
        -------
        EventStudyResult
            The effect of every period but the reference, in units of the outcome, with single and
            simultaneous intervals and a test of the periods before treatment.

        Raises
        ------
        CounterveilError
            Before anything is spent: arguments (CV-P), study (CV-S), data (CV-D), ledger (CV-L) or budget
            (CV-B).

        See Also
        --------
        ate : The effect after treatment as one number.

        Notes
        -----
        With Y_t the outcome of period t and r the reference, the estimand is E[Y_t(1) - Y_t(0)] over the
        people that `estimand` names. It is identified by parallel trends: E[Y_t(0) - Y_r(0)] does not
        depend on the arm, given covariates if they are adjusted for.

        Examples
        --------
        >>> import counterveil as cv
        >>> workers = {
        ...     "programme": [row % 2 for row in range(400)],
        ...     "y2015": [10 + row % 3 for row in range(400)],
        ...     "y2016": [11 + row % 3 for row in range(400)],
        ...     "y2017": [12 + row % 3 + 4 * (row % 2) for row in range(400)],
        ... }
        >>> change = cv.Change("y2017", (0, 30), before=["y2015", "y2016"])
        >>> study = cv.Study("programme", change, assignment=cv.Observational())
        >>> session = cv.Session(workers, study, budget=cv.Budget(8), noise=cv.SeededNoise(1))
        >>> result = session.event_study(protects="outcome", epsilon=8)
        >>> result.reference, [effect.name for effect in result.periods]
        ('y2016', ['y2015', 'y2017'])
        >>> low, high = result.interval()["y2017"]
        >>> low < 4 < high
        True
        """
        arguments = EventStudyArguments(
            protects=protects,
            epsilon=epsilon,
            delta=delta,
            reference=reference,
            method=method,
            estimand=estimand,
            level=level,
            mechanism=mechanism,
            settings=settings,
            request_id=request_id,
        )
        return ask_of(self, arguments)

    @refuses_unknown
    def groups(
        self,
        *,
        by: By,
        protects: Protects,
        epsilon: Number,
        delta: Number = 0,
        method: GroupsMethod = "auto",
        level: float = 0.95,
        mechanism: Mechanism | None = None,
        settings: DifferenceInMeans | Groups | Matching | Weighting | None = None,
        request_id: str | None = None,
    ) -> GroupsResult:
        """Estimate the effects in public groups of people.

        Groups are disjoint, so that all of them together cost what one does.

        Parameters
        ----------
        by : str, sequence of str, or mapping
            What makes the groups: a covariate, several that are crossed, or a mapping of covariates to cut
            points: ``{"age": (40, 65), "sex": None}``.
        protects : {"outcome", "treatment and outcome", "record"}
            What is private. "outcome": outcomes alone; groups, arms and covariates are public. "treatment
            and outcome": treatments and outcomes; groups and covariates are public. "record": everything
            about a person, groups included.
        epsilon : number or str
            Privacy loss to spend on all groups together, read exactly: 0.1 is one tenth, ``"1/3"`` one
            third. Positive.
        delta : number, default 0
            0 for pure differential privacy. A small positive number, below one over the number of people
            (1e-6), allows Gaussian noise.
        method : str, default "auto"
            Estimator. With outcomes private: "difference_in_means", "weighting" or "matching". With records
            private: "arms" (trials) or "adjusted" (for covariates). With treatments and outcomes private:
            "adjusted".
        level : float, default 0.95
            Confidence level of the intervals, single or simultaneous, between 0 and 1; the privacy noise is
            included.
        mechanism : {"staircase", "laplace", "gaussian"}, optional
            Noise distribution; "gaussian" needs a positive `delta`. By default the one of least variance:
            staircase with ``delta=0`` and for few numbers, Gaussian otherwise.
        settings : settings of the method, optional
            With outcomes private `cv.settings.DifferenceInMeans`, `Weighting` or `Matching`; with records
            private `cv.settings.Groups`.
        request_id : str, optional
            Name of this request. Repeating a named request returns the stored answer and costs nothing.

        Returns
        -------
        GroupsResult
            The average effect of every group in units of the outcome, with its standard error, single and
            simultaneous intervals, and a test of whether effects differ.

        Raises
        ------
        CounterveilError
            Before anything is spent: arguments (CV-P), study (CV-S), data (CV-D), ledger (CV-L) or budget
            (CV-B).

        See Also
        --------
        cate : Effects as a function of covariates.
        policy_value : What a rule of treatment gains.

        Notes
        -----
        The estimand of group g is E[Y(1) - Y(0) | G = g]. No two neighbouring data sets differ in more
        than one group, so each group is answered with the whole budget (parallel composition); where groups
        are private, with half of it.

        Examples
        --------
        >>> import counterveil as cv
        >>> data = cv.datasets.simulated_trial(n=2000, effect=0.3)
        >>> session = cv.Session(data.frame, data.study, budget=cv.Budget(8), noise=cv.SeededNoise(1))
        >>> result = session.groups(by={"x": (0.5,)}, protects="outcome", epsilon=2)
        >>> len(result.table)
        2
        """
        arguments = GroupsArguments(
            by=by,
            protects=protects,
            epsilon=epsilon,
            delta=delta,
            method=method,
            level=level,
            mechanism=mechanism,
            settings=settings,
            request_id=request_id,
        )
        return ask_of(self, arguments)

    @refuses_unknown
    def moments(
        self,
        *,
        protects: Protects,
        epsilon: Number,
        delta: Number = 0,
        level: float = 0.95,
        mechanism: Mechanism | None = None,
        outcomes: Sequence[str] = (),
        terms: Sequence[str] = (),
        robust: Sequence[str] = (),
        request_id: str | None = None,
    ) -> Moments:
        """Release second moments of treatment, outcome and covariates, from which regressions are free.

        One epsilon pays for every linear and instrumental-variable regression among the columns: each is
        computed from the released moments alone (``rows/moments/regression_moments.proof.md``; with outcomes
        private ``rows/moments/outcome_moments.proof.md``).

        Parameters
        ----------
        protects : {"outcome", "record"}
            What is private. "outcome": the outcome alone; covariates and treatment are public, also
            instruments and earlier values. "record": everything about a person.
        epsilon : number or str
            Privacy loss to spend, once, read exactly: 0.1 is one tenth, ``"1/3"`` one third. Positive.
        delta : number, default 0
            0 for pure differential privacy. A small positive number, below one over the number of people
            (1e-6), allows Gaussian noise, which is several times smaller here.
        level : float, default 0.95
            Confidence level of the intervals of regressions, between 0 and 1; the privacy noise is
            included.
        mechanism : {"staircase", "laplace", "gaussian"}, optional
            Noise distribution; "gaussian" needs a positive `delta`. By default the one of least variance:
            staircase with ``delta=0`` and for few numbers, Gaussian otherwise.
        outcomes : sequence of str, default ()
            Covariates that are outcomes or received treatments, which regressions may explain; rows are not
            weighted by them.
        terms : sequence of str, default ()
            What formulas may use beside columns, released too: ``["treat:age", "I(age**2)",
            "log(income)"]``.
        robust : sequence of str, default ()
            Regressions that are asked with HC1 errors, ``["y ~ treat + age"]``; a quarter of the budget is
            theirs.
        request_id : str, optional
            Name of this request. Repeating a named request returns the stored answer and costs nothing.

        Returns
        -------
        Moments
            The moments, with `regress` and `compliance` to fit regressions at no cost.

        Raises
        ------
        CounterveilError
            Before anything is spent: arguments (CV-P), study (CV-S), data (CV-D), ledger (CV-L) or budget
            (CV-B).

        See Also
        --------
        ate : An average effect that needs no linear model.

        Notes
        -----
        With z the columns, rows weighted down where they are long, and Z the matrix of all rows, the
        release is Z'Z / n plus Gaussian or l2-ball noise; least squares is b = (X'X)^{-1} X'y from its
        blocks, with the noise in the standard errors.

        Examples
        --------
        >>> import counterveil as cv
        >>> data = cv.datasets.simulated_trial(n=2000, effect=0.3)
        >>> session = cv.Session(data.frame, data.study, budget=cv.Budget(8, 1e-6), noise=cv.SeededNoise(1))
        >>> moments = session.moments(protects="record", epsilon=4, delta=1e-6)
        >>> [one.name for one in moments.regress("y ~ treated + x").coefficients]
        ['Intercept', 'treated', 'x']
        """
        arguments = MomentsArguments(
            protects=protects,
            epsilon=epsilon,
            delta=delta,
            level=level,
            mechanism=mechanism,
            outcomes=outcomes,
            terms=terms,
            robust=robust,
            request_id=request_id,
        )
        return ask_of(self, arguments)

    @refuses_unknown
    def outcomes(
        self,
        *,
        protects: Protects,
        epsilon: Number,
        delta: Number = 0,
        method: OutcomesMethod = "auto",
        estimand: EstimandName = "ATE",
        measure: Measure = "difference",
        level: float = 0.95,
        mechanism: Mechanism | None = None,
        importance: Mapping[str, Number] | None = None,
        settings: Arms | DifferenceInMeans | Matching | Weighting | None = None,
        request_id: str | None = None,
    ) -> OutcomesResult:
        """Estimate the effects on all outcomes of a study, the primary one first.

        One epsilon pays for all outcomes together: they are released as one vector, with noise for what one
        person can change in all of its entries at once (``rows/linear/several_outcomes.proof.md``). The study
        declares several outcomes, and two arms or several.

        Parameters
        ----------
        protects : {"outcome", "treatment and outcome", "record"}
            What is private. "outcome": all outcomes of a person; covariates and treatments are public.
            "treatment and outcome": treatments and all outcomes; covariates are public. "record":
            everything about a person (trials).
        epsilon : number or str
            Privacy loss to spend on all outcomes together, read exactly: 0.1 is one tenth, ``"1/3"`` one
            third. Positive.
        delta : number, default 0
            0 for pure differential privacy. A small positive number, below one over the number of people
            (1e-6), allows Gaussian noise, which grows with the root of the number of outcomes; pure noise
            grows with their number, but by less than if each were asked for by itself.
        method : str, default "auto"
            Estimator. With outcomes private: "difference_in_means", "weighting" or "matching", with one set
            of weights for all outcomes; "auto" takes "weighting" where there are covariates. With records
            private "trial", with treatments and outcomes private "doubly_robust".
        estimand : {"ATE", "ATT", "ATC"}, default "ATE"
            Whose average effect: everyone's, that of the treated or of the untreated. With several arms
            "ATE".
        measure : {"difference", "ratio", "lift", "odds_ratio", "nnt"}, default "difference"
            Scale of the effect, from the mean outcomes m1 with treatment and m0 without: m1 - m0, m1 / m0,
            m1 / m0 - 1, the ratio of the odds m / (1 - m), or the number needed to treat, 1 / (m1 - m0).
            Ratios, lifts and odds ratios need a method that releases both means. Intervals of ratios may
            have no upper end, those of numbers needed to treat two parts.
        level : float, default 0.95
            Confidence level of the intervals, single or simultaneous, between 0 and 1; the privacy noise is
            included.
        mechanism : {"staircase", "laplace", "gaussian"}, optional
            Noise distribution; "gaussian" needs a positive `delta`. By default the one of least variance:
            staircase with ``delta=0`` and for few numbers, Gaussian otherwise.
        importance : mapping, optional
            How much less noise an outcome gets: noise is in proportion to one over its number, from 1/1000
            to 1000; 1 for outcomes that are not named.
        settings : settings of the method, optional
            With outcomes private `cv.settings.DifferenceInMeans`, `Weighting` or `Matching`; with several
            arms `cv.settings.Arms`.
        request_id : str, optional
            Name of this request. Repeating a named request returns the stored answer and costs nothing.

        Returns
        -------
        OutcomesResult
            The effect on every outcome with its standard error, and single and simultaneous intervals, in
            units of that outcome where `measure` is "difference". Each of m simultaneous intervals has the
            level ``level ** (1 / m)`` (Šidák).

        Raises
        ------
        CounterveilError
            Before anything is spent: arguments (CV-P), study (CV-S), data (CV-D), ledger (CV-L) or budget
            (CV-B).

        See Also
        --------
        ate : One outcome.
        arms : Several arms.

        Notes
        -----
        The estimand of outcome k is E[Y_k(1) - Y_k(0)], or its `measure`, over the people that `estimand`
        names.

        Examples
        --------
        >>> import counterveil as cv
        >>> visits = {
        ...     "new": [row % 2 for row in range(400)],
        ...     "visits": [3 + row % 2 + row % 5 for row in range(400)],
        ...     "spend": [100 + 50 * (row % 2) + row % 7 for row in range(400)],
        ... }
        >>> outcomes = cv.Outcomes({"visits": (0, 30), "spend": (0, 500)})
        >>> study = cv.Study("new", outcomes, assignment=cv.Trial())
        >>> session = cv.Session(visits, study, budget=cv.Budget(8), noise=cv.SeededNoise(1))
        >>> result = session.outcomes(protects="outcome", epsilon=5)
        >>> [effect.name for effect in result.table]
        ['visits', 'spend']
        >>> low, high = result.interval(simultaneous=True)["spend"]
        >>> low < 50 < high
        True
        """
        arguments = OutcomesArguments(
            protects=protects,
            epsilon=epsilon,
            delta=delta,
            method=method,
            estimand=estimand,
            measure=measure,
            level=level,
            mechanism=mechanism,
            importance=importance,
            settings=settings,
            request_id=request_id,
        )
        return ask_of(self, arguments)

    @refuses_unknown
    def overlap(
        self,
        *,
        protects: Protects,
        epsilon: Number,
        delta: Number = 0,
        level: float = 0.95,
        mechanism: Mechanism | None = None,
        request_id: str | None = None,
    ) -> OverlapSummary:
        """Summarise balance and overlap of the arms where whole records are private.

        Where only outcomes are private this is free: see ``result.diagnostics`` of `cv.ate`.

        Parameters
        ----------
        protects : {"record"}
            What is private. "record": everything about a person.
        epsilon : number or str
            Privacy loss to spend, read exactly: 0.1 is one tenth, ``"1/3"`` one third. Positive.
        delta : number, default 0
            0 for pure differential privacy. A small positive number, below one over the number of people
            (1e-6), allows Gaussian noise.
        level : float, default 0.95
            Confidence level of the intervals, which cover the privacy noise, between 0 and 1; the privacy
            noise is included.
        mechanism : {"staircase", "laplace", "gaussian"}, optional
            Noise distribution; "gaussian" needs a positive `delta`. By default the one of least variance:
            staircase with ``delta=0`` and for few numbers, Gaussian otherwise.
        request_id : str, optional
            Name of this request. Repeating a named request returns the stored answer and costs nothing.

        Returns
        -------
        OverlapSummary
            Standardised differences of all covariates, and the share treated along a released score, with
            intervals.

        Raises
        ------
        CounterveilError
            Before anything is spent: arguments (CV-P), study (CV-S), data (CV-D), ledger (CV-L) or budget
            (CV-B).

        See Also
        --------
        ate : The effect, adjusted for covariates.

        Notes
        -----
        The standardised difference of a covariate is (m1 - m0) / sqrt((s1^2 + s0^2) / 2), with means m and
        standard deviations s of both arms. The score is the linear discriminant of the released means and
        variances.

        Examples
        --------
        >>> import counterveil as cv
        >>> data = cv.datasets.synth(n=2000, covariates=2)
        >>> session = cv.Session(data.frame, data.study, budget=cv.Budget(8), noise=cv.SeededNoise(1))
        >>> summary = session.overlap(protects="record", epsilon=2)
        >>> [one.covariate for one in summary.differences]
        ['x1', 'x2']
        """
        arguments = OverlapArguments(
            protects=protects,
            epsilon=epsilon,
            delta=delta,
            level=level,
            mechanism=mechanism,
            request_id=request_id,
        )
        return ask_of(self, arguments)

    @refuses_unknown
    def policy_value(
        self,
        *,
        policy: Any,
        protects: Protects,
        epsilon: Number,
        delta: Number = 0,
        method: PolicyMethod = "auto",
        level: float = 0.95,
        cost: Number | None = None,
        settings: DifferenceInMeans | Groups | Matching | Weighting | None = None,
        request_id: str | None = None,
    ) -> PolicyValue:
        """Estimate what a public rule of treatment gains, per person.

        Parameters
        ----------
        policy : Policy or callable
            The rule: a `cv.Policy`, or a function of one row's covariates (a mapping to arrays of length
            one) that says whether to treat.
        protects : {"outcome", "treatment and outcome", "record"}
            What is private. "outcome": outcomes alone; covariates and treatments are public. "treatment and
            outcome": treatments and outcomes; covariates are public. "record": everything about a person.
        epsilon : number or str
            Privacy loss to spend, read exactly: 0.1 is one tenth, ``"1/3"`` one third. Positive.
        delta : number, default 0
            0 for pure differential privacy. A small positive number, below one over the number of people
            (1e-6), allows Gaussian noise.
        method : str, default "auto"
            Estimator. With records private: "scores" (trials) or "adjusted" (for covariates). With outcomes
            private: "difference_in_means", "weighting" or "matching". With treatments and outcomes private:
            "adjusted".
        level : float, default 0.95
            Confidence level of the intervals, between 0 and 1; the privacy noise is included.
        cost : number, optional
            Cost of treating one person, in units of the outcome. By default the policy's own, or 0.
        settings : settings of the method, optional
            With records private `cv.settings.Groups`; with outcomes private
            `cv.settings.DifferenceInMeans`, `Weighting` or `Matching`.
        request_id : str, optional
            Name of this request. Repeating a named request returns the stored answer and costs nothing.

        Returns
        -------
        PolicyValue
            Gains per person over treating nobody and over treating everybody, and of treating everybody over
            nobody, in units of the outcome, with intervals; and the share of people whom the rule treats.

        Raises
        ------
        CounterveilError
            Before anything is spent: arguments (CV-P), study (CV-S), data (CV-D), ledger (CV-L) or budget
            (CV-B).

        See Also
        --------
        targeting_curve : Gains for all shares of people treated.
        Policy : Rules by conditions or by a model.

        Notes
        -----
        With d(x) in {0, 1} the rule and c the cost, the gain over treating nobody is E[d(X) (Y(1) - Y(0) -
        c)], over treating everybody E[(1 - d(X)) (Y(0) - Y(1) + c)]. The rule must be public or released:
        one fitted to the same rows without noise reveals them.

        Examples
        --------
        >>> import counterveil as cv
        >>> data = cv.datasets.simulated_trial(n=2000, effect=0.3)
        >>> rule = cv.Policy.where(x=(0.5, 1))
        >>> session = cv.Session(data.frame, data.study, budget=cv.Budget(8), noise=cv.SeededNoise(1))
        >>> value = session.policy_value(policy=rule, protects="outcome", epsilon=2)
        >>> len(value.gains)
        3
        """
        arguments = PolicyValueArguments(
            policy=policy,
            protects=protects,
            epsilon=epsilon,
            delta=delta,
            method=method,
            level=level,
            cost=cost,
            settings=settings,
            request_id=request_id,
        )
        return ask_of(self, arguments)

    @refuses_unknown
    def quantiles(
        self,
        *,
        protects: Protects,
        epsilon: Number,
        delta: Number = 0,
        method: QuantilesMethod = "auto",
        level: float = 0.95,
        mechanism: Mechanism | None = None,
        probs: Sequence[float] = (0.25, 0.5, 0.75),
        grid: Grid = "found",
        request_id: str | None = None,
    ) -> QuantilesResult:
        """Estimate the differences of both arms' quantiles, and both distribution functions.

        All of it is from one release of counts.

        Parameters
        ----------
        protects : {"outcome", "treatment and outcome", "record"}
            What is private. "outcome": outcomes alone; covariates and treatments are public. "treatment and
            outcome": treatments and outcomes; covariates are public. "record": everything about a person
            (trials).
        epsilon : number or str
            Privacy loss to spend on everything together, read exactly: 0.1 is one tenth, ``"1/3"`` one
            third. Positive.
        delta : number, default 0
            0 for pure differential privacy. A small positive number, below one over the number of people
            (1e-6), allows Gaussian noise, which is taken where it is the smaller one.
        method : {"auto", "trial", "weighting"}, default "auto"
            Estimator. "trial" compares the arms as they are; "weighting", with public covariates, by all
            covariates. "auto" takes the latter where there are public covariates and no trial.
        level : float, default 0.95
            Confidence level of intervals and bands, between 0 and 1; the privacy noise is included.
        mechanism : {"staircase", "laplace", "gaussian"}, optional
            Noise distribution; "gaussian" needs a positive `delta`. By default the one of least variance:
            staircase with ``delta=0`` and for few numbers, Gaussian otherwise.
        probs : sequence of float, default (0.25, 0.5, 0.75)
            Probabilities of the quantiles that are compared, each in (0, 1): 0.5 for the median. Others can
            be read off the answer for free.
        grid : {"found", "even"}, int or sequence of number, default "found"
            Cells in which outcomes are counted. "found" spends a fifth of the budget on where most outcomes
            lie, and has as many cells there as suit the rows and the budget; "even" has that number over
            the whole range. A whole number from 2 to 1,000 is the number of even cells, a sequence their
            inner edges.
        request_id : str, optional
            Name of this request. Repeating a named request returns the stored answer and costs nothing.

        Returns
        -------
        QuantilesResult
            Differences of quantiles, treated minus control, in units of the outcome, both distribution
            functions (probabilities) and all other quantiles, with intervals and bands.

        Raises
        ------
        CounterveilError
            Before anything is spent: arguments (CV-P), study (CV-S), data (CV-D), ledger (CV-L) or budget
            (CV-B).

        See Also
        --------
        survival : Times that are censored.

        Notes
        -----
        With F_a(y) = P(Y(a) <= y), the estimand at probability p is F_1^{-1}(p) - F_0^{-1}(p), the quantile
        treatment effect. It is not the quantile of people's effects.

        Unless cells are declared, the ends of the range, and whole numbers where the ends are whole and
        there are few between, have cells of their own.

        Examples
        --------
        >>> import counterveil as cv
        >>> data = cv.datasets.simulated_trial(n=2000, effect=0.3, outcome="continuous")
        >>> session = cv.Session(data.frame, data.study, budget=cv.Budget(8), noise=cv.SeededNoise(1))
        >>> result = session.quantiles(probs=(0.5,), protects="record", epsilon=4)
        >>> len(result.table)
        1
        """
        arguments = QuantilesArguments(
            protects=protects,
            epsilon=epsilon,
            delta=delta,
            method=method,
            level=level,
            mechanism=mechanism,
            probs=probs,
            grid=grid,
            request_id=request_id,
        )
        return ask_of(self, arguments)

    @refuses_unknown
    def survival(
        self,
        *,
        protects: Protects,
        epsilon: Number,
        delta: Number = 0,
        method: SurvivalMethod = "auto",
        level: float = 0.95,
        mechanism: Mechanism | None = None,
        settings: Survival | None = None,
        request_id: str | None = None,
    ) -> SurvivalResult:
        """Estimate survival curves of both arms, with everything that follows from them.

        The outcome of the study is the time of follow-up; it declares the event, and a horizon or a grid of
        times.

        Parameters
        ----------
        protects : {"outcome", "record"}
            What is private. "outcome": times and events; covariates and treatments are public. "record":
            everything about a person.
        epsilon : number or str
            Privacy loss to spend on everything together, read exactly: 0.1 is one tenth, ``"1/3"`` one
            third. Positive.
        delta : number, default 0
            0 for pure differential privacy. A small positive number, below one over the number of people
            (1e-6), allows Gaussian noise, which is taken where it is the smaller one.
        method : {"auto", "kaplan_meier", "stratified", "weighting"}, default "auto"
            Estimator. "kaplan_meier" (trials), "stratified" (by covariates with labels or cut points) or,
            with outcomes private, "weighting" (balances all covariates). "auto" takes "kaplan_meier" in a
            trial, else "weighting" with outcomes private and "stratified" with records private.
        level : float, default 0.95
            Confidence level of intervals and bands, between 0 and 1; the privacy noise is included.
        mechanism : {"staircase", "laplace", "gaussian"}, optional
            Noise distribution; "gaussian" needs a positive `delta`. By default the one of least variance:
            staircase with ``delta=0`` and for few numbers, Gaussian otherwise.
        settings : cv.settings.Survival, optional
            Which cells of time are counted, and how strata are made.
        request_id : str, optional
            Name of this request. Repeating a named request returns the stored answer and costs nothing.

        Returns
        -------
        SurvivalResult
            Survival of both arms on the grid and its difference (probabilities), restricted mean times and
            quantiles (in the unit of the times), the log-rank test and hazard ratio, with intervals and
            bands.

        Raises
        ------
        CounterveilError
            Before anything is spent: arguments (CV-P), study (CV-S), data (CV-D), ledger (CV-L) or budget
            (CV-B).

        See Also
        --------
        quantiles : Outcomes that are not censored.

        Notes
        -----
        With T the time to the event, S_a(t) = P(T(a) > t); the difference is S_1(t) - S_0(t), the
        restricted mean the integral of S_a up to the horizon. Censoring is supposed to be independent of
        the time given the arm, and given the covariates where they are adjusted for.

        Examples
        --------
        >>> import counterveil as cv
        >>> people = {
        ...     "arm": [row % 2 for row in range(600)],
        ...     "days": [10 + 7919 * row % 350 for row in range(600)],
        ...     "died": [int(row % 5 != 0) for row in range(600)],
        ... }
        >>> study = cv.Study("arm", cv.TimeToEvent("days", "died", horizon=360), assignment=cv.Trial())
        >>> session = cv.Session(people, study, budget=cv.Budget(8), noise=cv.SeededNoise(1))
        >>> result = session.survival(protects="record", epsilon=2)
        >>> [effect.name for effect in result.table]
        ['difference in survival at 360', 'difference in mean time to 360']
        >>> low, high = result.hazard_ratio().interval()
        >>> 0 < low < 1 < high
        True
        """
        arguments = SurvivalArguments(
            protects=protects,
            epsilon=epsilon,
            delta=delta,
            method=method,
            level=level,
            mechanism=mechanism,
            settings=settings,
            request_id=request_id,
        )
        return ask_of(self, arguments)

    @refuses_unknown
    def targeting_curve(
        self,
        *,
        model: EffectModel,
        protects: Protects,
        epsilon: Number,
        delta: Number = 0,
        method: PolicyMethod = "auto",
        level: float = 0.95,
        bins: int = 10,
        thresholds: Sequence[float] | None = None,
        cost: Number = 0,
        settings: DifferenceInMeans | Groups | Matching | Weighting | None = None,
        request_id: str | None = None,
    ) -> TargetingCurve:
        """Estimate what treating the people whom a model ranks highest gains, for a ladder of shares.

        Parameters
        ----------
        model : CateModel or object with effect(X)
            The model that ranks people; it must be public or released. With a `request_id` a model of your own
            has an attribute `name`, which stands for it in the ledger.
        protects : {"outcome", "treatment and outcome", "record"}
            What is private. "outcome": outcomes alone; covariates and treatments are public. "treatment and
            outcome": treatments and outcomes; covariates are public. "record": everything about a person.
        epsilon : number or str
            Privacy loss to spend on the whole curve, read exactly: 0.1 is one tenth, ``"1/3"`` one third.
            Positive.
        delta : number, default 0
            0 for pure differential privacy. A small positive number, below one over the number of people
            (1e-6), allows Gaussian noise.
        method : str, default "auto"
            Estimator. With records private: "scores" (trials) or "adjusted" (for covariates). With outcomes
            private: "difference_in_means", "weighting" or "matching". With treatments and outcomes private:
            "adjusted".
        level : float, default 0.95
            Confidence level of intervals and band, between 0 and 1; the privacy noise is included.
        bins : int, default 10
            Parts of the ranking, of equal size. With records private their edges are paid for from the
            budget.
        thresholds : sequence of float, optional
            Public thresholds of the score in place of `bins`; they cost nothing.
        cost : number, default 0
            Cost of treating one person, in units of the outcome.
        settings : settings of the method, optional
            With records private `cv.settings.Groups`; with outcomes private
            `cv.settings.DifferenceInMeans`, `Weighting` or `Matching`.
        request_id : str, optional
            Name of this request. Repeating a named request returns the stored answer and costs nothing.

        Returns
        -------
        TargetingCurve
            The gain at every share, with intervals and a simultaneous band, the area under the curve
            (AUTOC) and Qini coefficient.

        Raises
        ------
        CounterveilError
            Before anything is spent: arguments (CV-P), study (CV-S), data (CV-D), ledger (CV-L) or budget
            (CV-B).

        See Also
        --------
        policy_value : The gain of one rule.
        cate : A model to rank by.

        Notes
        -----
        With s(x) the score and q a share, the gain is E[(Y(1) - Y(0) - c) 1{s(X) >= t_q}], where a share q
        of people have scores of t_q or more. AUTOC and Qini are areas under it [1]_.

        References
        ----------
        .. [1] Yadlowsky, S., Fleming, S., Shah, N., Brunskill, E. and Wager, S. (2025). Evaluating treatment
           prioritization rules via rank-weighted average treatment effects. Journal of the American
           Statistical Association 120, 38-51.

        Examples
        --------
        >>> from types import SimpleNamespace
        >>> import counterveil as cv
        >>> data = cv.datasets.synth(n=500, covariates=2)
        >>> model = SimpleNamespace(effect=lambda people: people["x1"])
        >>> session = cv.Session(data.frame, data.study, budget=cv.Budget(8), noise=cv.SeededNoise(2))
        >>> curve = session.targeting_curve(model=model, bins=4, protects="outcome", epsilon=4)
        >>> len(curve.shares)
        4
        """
        arguments = TargetingCurveArguments(
            model=model,
            protects=protects,
            epsilon=epsilon,
            delta=delta,
            method=method,
            level=level,
            bins=bins,
            thresholds=thresholds,
            cost=cost,
            settings=settings,
            request_id=request_id,
        )
        return ask_of(self, arguments)

    # End of what `python -m tools.session_methods` writes.

    @refuses_unknown
    def look(
        self,
        number: int,
        *,
        protects: Protects,
        method: AteMethod = "auto",
        estimand: EstimandName | None = None,
        mechanism: Mechanism | None = None,
        settings: Settings | None = None,
    ) -> Result:
        """Estimate the effect at a planned interim analysis; all intervals cover together.

        The access policy of the account says what the look spends. A look that was answered before is
        answered from the ledger, at no cost.

        Parameters
        ----------
        number : int
            Which of the planned analyses, from 1 on.
        protects : {"outcome", "treatment and outcome", "record"}
            What is private. "outcome": outcomes alone; covariates and treatments are public. "treatment and
            outcome": treatments and outcomes; covariates are public. "record": everything about a person.
        method : str, default "auto"
            Estimator. "auto" chooses from public numbers alone and names its choice in the result. With
            outcomes private: "difference_in_means" (trials), "weighting", "matching" and "stratified". With
            records private: "trial", "doubly_robust", "stratified" and "sample_and_aggregate". With
            treatments and outcomes private: "trial" and "doubly_robust".
        estimand : {"ATE", "ATT", "ATC", "ATO"}, optional
            Whose average effect: everyone's, that of the treated, of the untreated, or of the
            overlap-weighted population. By default "ATE"; "ATT" where a study compares changes and is not
            randomised.
        mechanism : {"staircase", "laplace", "gaussian"}, optional
            Noise distribution; "gaussian" needs a plan with a positive delta. By default the one of least
            variance.
        settings : settings of the method, optional
            As ``cv.settings.Matching(neighbours=5)``.

        Returns
        -------
        Result
            The effect with the interval of this look; `details` has its number and boundary.

        Raises
        ------
        CounterveilError
            CV-P730 without a plan that has this look. Otherwise before anything is spent: arguments (CV-P),
            study (CV-S), data (CV-D), ledger (CV-L) or budget (CV-B).

        See Also
        --------
        interim.planned : Plan looks.
        """
        return answer_look(self, number, protects, method, estimand, mechanism, settings)

    @refuses_unknown
    def release(
        self,
        name: str,
        *,
        value: Callable[[Table], Any],
        bound: int | Fraction,
        norm: Norm = "absolute",
        protects: Protects,
        epsilon: Number,
        delta: Number = 0,
        level: float = 0.95,
        mechanism: Mechanism | None = None,
        request_id: str | None = None,
    ) -> Release:
        """Release a sum of your own over the private rows, with noise that its bound calls for.

        Parameters
        ----------
        name : str
            What the release is called in the answer and in the ledger, at most 60 letters.
        value : callable
            From the rows to an exact number, int or Fraction, or to a list of them. The rows have `outcome`
            (whole steps of its range, up to `cv.methods.OUTCOME_STEPS`), `arm`, `treated`, `covariates` by
            name, `outcome_unit` (exact width of a step), `study` and `rows` (their number). Where it fails on
            the rows, it counts as zero.
        bound : int or Fraction
            The most by which one person moves it, in its own units. The guarantee rests on it; floats are
            refused.
        norm : {"absolute", "l1", "l2"}, default "absolute"
            What `bound` is a bound of: one number, the sum of the absolute changes of a list, or the
            Euclidean length of the change of a list.
        protects : {"outcome", "treatment and outcome", "record"}
            What is private, and so what of a person may change: the outcome; treatment and outcome; or
            everything.
        epsilon : number or str
            Privacy loss to spend, read exactly: 0.1 is one tenth, ``"1/3"`` one third. Positive.
        delta : number, default 0
            0 for pure differential privacy. A small positive number, below one over the number of people
            (1e-6), allows Gaussian noise.
        level : float, default 0.95
            Confidence level of the interval for the number without noise, between 0 and 1.
        mechanism : {"staircase", "laplace", "gaussian"}, optional
            Noise distribution; "gaussian" needs a positive `delta`. By default the one of least variance.
        request_id : str, optional
            Name of this request. Repeating a named request returns the stored answer and costs nothing;
            `name`, `bound` and `norm` must be the same, and stand for the function.

        Returns
        -------
        Release
            The released numbers, intervals for their noise, guarantee and what was spent.

        Raises
        ------
        CounterveilError
            Before anything is spent: arguments (CV-P), study (CV-S), data (CV-D), ledger (CV-L) or budget
            (CV-B). `value` is tried on made-up rows first: CV-P841 and CV-P842 say what is wrong with it.

        See Also
        --------
        counterveil.methods.Method : Estimates effects from such sums.

        Notes
        -----
        The answer satisfies differential privacy if the bound holds for all data sets that fit the study and
        differ in what is private of one person. ``counterveil audit module:function`` is for methods; a bound
        of a function is checked in the same way, by a proof and a search for data that refute it.

        Examples
        --------
        >>> import counterveil as cv
        >>> data = cv.datasets.simulated_trial(n=2000, effect=0.3)
        >>> def treated_and_low(rows):
        ...     return int((rows.treated & (rows.covariates["x"] < 0.5)).sum())
        >>> with cv.Session(data.frame, data.study, budget=cv.Budget(2), noise=cv.SeededNoise(1)) as session:
        ...     answer = session.release(
        ...         "treated with low x", value=treated_and_low, bound=1, protects="record", epsilon=1
        ...     )
        >>> 400 < answer.value < 600
        True
        """
        arguments = ReleaseArguments(
            called=name,
            value=value,
            bound=bound,
            norm=norm,
            protects=protects,
            epsilon=epsilon,
            delta=delta,
            level=level,
            mechanism=mechanism,
            request_id=request_id,
        )
        return ask_of(self, arguments)

    def remaining(self, protects: Protects = "outcome") -> Remaining:
        """Return what requests at a level of protection can still ask for.

        Parameters
        ----------
        protects : {"outcome", "treatment and outcome", "record"}, default "outcome"
            What such requests protect. Those that protect records may have less left than those that protect
            outcomes.

        Returns
        -------
        Remaining
            The largest pure `epsilon` and the `delta` that are left, as exact fractions, and the largest
            Gaussian `mu` (None where the ledger adds up epsilons).

        Raises
        ------
        CounterveilError
            CV-P001 for another level of protection.
        """
        return self.account().left(Unit.parse(protects))
