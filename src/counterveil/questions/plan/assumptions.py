"""What a planner says of people nobody has looked at: `cv.Assumptions`, and of a test: `cv.Decision`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from counterveil.errors import CounterveilError, refusal
from counterveil.results.decisions import KINDS, TestKind
from counterveil.settings.methods import is_number

# Standard deviations of the log-odds of treatment: beyond this nearly everybody's arm is certain.
MAX_CONFOUNDING = 5.0
ByOutcome = float | Mapping[str, float] | None
Summaries = Mapping[str, Any]


def out_of_range(name: str, expected: str, got: object) -> CounterveilError:
    """Return CV-P700."""
    return refusal("CV-P700", name=name, expected=expected, got=got)


@dataclass(frozen=True, slots=True, kw_only=True)
class Assumptions:
    """What is assumed of the people of a planned study, for `cv.plan`.

    Every number is a guess or from public sources; none is read off private rows. Whatever is left out is
    taken from the declarations of the study. Of several outcomes, `mean`, `sd`, `effect` and `binary` may be
    given by name: ``{"death": 0.2, "days": 30}``.

    Parameters
    ----------
    mean : float or mapping, optional
        Mean outcome without treatment, in units of the outcome. For ``question="survival"`` the share free of
        the event at the horizon. By default the middle of the range.
    sd : float or mapping, optional
        Standard deviation of outcomes, of no use where they are binary. By default a sixth of the range.
    effect : float or mapping, default 0.0
        What treatment adds to everybody's mean outcome; of a ratio of sums, to the numerator.
    explained : float, optional
        Share of the outcome variance that a linear model of the covariates explains, from 0 to 1. By default
        0.2, and 0 without covariates.
    confounding : float, optional
        Standard deviation of the log-odds of treatment due to the covariates, from 0 to 5. By default 0.5,
        and 0 in a trial.
    share : float, optional
        Proportion treated, in (0, 1); of several arms, in another arm than the reference. By default the
        declared one, or arms of one size.
    binary : bool or mapping, optional
        Whether the outcome is one end of its range or the other. By default for the range 0 to 1.
    correlation : float or matrix, optional
        Correlation of neighbouring covariates, from -0.99 to 0.99, falling with their distance; or a matrix
        of public correlations in the order of the covariates. By default 0.3.
    covariates : mapping, optional
        Public summaries: ``{"age": (mean, sd), "sex": {"f": 0.6, "m": 0.4}}``. Numbers without one fill their
        range as a bell, labels are equally frequent.
    censoring_rate : float, optional
        Share of people who are lost to follow-up before the horizon, from 0 to 1, for
        ``question="survival"``. By default 0.2.
    outcome_correlation : float, optional
        Correlation within an arm, from 0 to 1, of any two outcomes of a person, of an outcome with its
        baseline, or of a numerator with its denominator. Not below `explained`; of binary outcomes it is that
        of the normal numbers behind them. By default 0.5.
    denominator : (float, float), optional
        Mean and standard deviation of denominators, in a study that compares ratios of sums. By default those
        of a bell.
    compliance_rate : float, optional
        Share of people who receive what they are assigned, from 0 to 1, for ``question="compliance"``. By
        default 0.7.
    sample : frame, mapping or path, optional
        A public sample with the columns of the study. It takes the place of everything else here.

    Raises
    ------
    CounterveilError
        CV-P700 for numbers out of range.

    See Also
    --------
    plan : Lengths of intervals, before anything is spent.

    Examples
    --------
    >>> import counterveil as cv
    >>> cv.Assumptions(mean=0.2, effect=-0.05, explained=0.3).effect
    -0.05
    """

    mean: ByOutcome = None
    sd: ByOutcome = None
    effect: float | Mapping[str, float] = 0.0
    explained: float | None = None
    confounding: float | None = None
    share: float | None = None
    binary: bool | Mapping[str, bool] | None = None
    correlation: float | Sequence[Sequence[float]] | None = None
    covariates: Summaries | None = None
    censoring_rate: float | None = None
    outcome_correlation: float | None = None
    denominator: Sequence[float] | None = None
    compliance_rate: float | None = None
    sample: Any = None

    def __post_init__(self) -> None:
        shares = ("explained", "share", "censoring_rate", "outcome_correlation", "compliance_rate")
        for name, most in (*((name, 1.0) for name in shares), ("confounding", MAX_CONFOUNDING)):
            value = getattr(self, name)
            if value is not None and not is_number(value, 0.0, most):
                raise out_of_range(name, f"a number from 0 to {most:g}", value)


@dataclass(frozen=True, slots=True)
class Decision:
    """The test whose power a plan shows, for `cv.plan`; as ``result.test`` makes it of a result.

    Parameters
    ----------
    kind : {"superiority", "noninferiority", "equivalence"}
        What is to be shown: that the effect is better than none (or than the margin), not worse than the
        margin, or within the margins.
    margin : float or (float, float), optional
        Margin in units of the effect, above 0; of a ratio a ratio. Two numbers are the bounds of equivalence.
        Needed but
        for superiority.
    higher_is_better : bool, default True
        Whether a higher outcome is better.

    Raises
    ------
    CounterveilError
        CV-P796 for a test that is none.

    See Also
    --------
    plan : Lengths of intervals and power, before anything is spent.

    Notes
    -----
    With the interval [low, high] and the margin d, superiority is shown by low > d, noninferiority by low > -d,
    equivalence by -d < low and high < d; mirrored where lower outcomes are better.

    Examples
    --------
    >>> import counterveil as cv
    >>> cv.Decision("noninferiority", margin=0.05).margin
    0.05
    """

    kind: TestKind
    margin: float | tuple[float, float] | None = None
    higher_is_better: bool = True

    def __post_init__(self) -> None:
        if not isinstance(self.kind, str) or self.kind not in KINDS:
            raise refusal("CV-P796", kind=self.kind, margin=self.margin, null=0.0)
