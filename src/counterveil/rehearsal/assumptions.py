"""What a planner supposes about people nobody has looked at yet."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from counterveil.data import Study
from counterveil.errors import ParameterError, shown
from counterveil.estimators.setting_checks import number

# Without better knowledge the declared range is taken as six standard deviations wide.
_RANGE_IN_SDS = 6
# Twice the log-odds of a lean: beyond this nearly everybody's arm is certain.
_STRONGEST = 5.0


@dataclass(frozen=True, slots=True)
class Assumptions:
    """What made-up data are made from; every number is a supposition, none is read off private rows.

    Attributes:
        mean: mean outcome of people who are not treated.
        sd: standard deviation of their outcomes; of no use where outcomes are yes or no.
        effect: what treatment adds to the mean outcome of everybody.
        explained: share of the variance of outcomes that follows the covariates (of their log-odds' where outcomes
            are yes or no).
        confounding: standard deviations of the log-odds of being treated that follow the same covariates.
        share: share of people who are treated.
        yes_no: whether outcomes are one end of their range or the other.
    """

    mean: float
    sd: float
    effect: float
    explained: float
    confounding: float
    share: float
    yes_no: bool

    @classmethod
    def of(
        cls,
        study: Study,
        mean: float | None = None,
        sd: float | None = None,
        effect: float = 0.0,
        explained: float = 0.0,
        confounding: float = 0.0,
        share: float | None = None,
        yes_no: bool = False,
    ) -> Assumptions:
        """Return the assumptions of a study, with what is left out taken from its declarations; raises CV-P700."""
        low, high = map(float, study.outcome_range)
        width = high - low
        declared = 0.5 if study.treated_share is None else float(study.treated_share)
        mean = (low + high) / 2 if mean is None else mean
        found = cls(
            mean=_between("mean", mean, low, high),
            sd=_between("sd", width / _RANGE_IN_SDS if sd is None else sd, 0.0, width / 2, open_low=True),
            effect=_between("effect", effect, low - mean, high - mean),
            explained=_between("explained", explained, 0.0, 1.0),
            confounding=_between("confounding", confounding, 0.0, _STRONGEST),
            share=_between(
                "share", declared if share is None else share, 0.0, 1.0, open_low=True, open_high=True
            ),
            yes_no=bool(yes_no),
        )
        if found.explained > 0 and not study.covariates:
            raise out_of_range("explained", "0 in a study without covariates", explained)
        if found.confounding > 0 and (study.randomised or not study.covariates):
            raise out_of_range("confounding", "0 in a trial, and where there are no covariates", confounding)
        return found

    def words(self) -> str:
        """Return the assumptions in one sentence."""
        outcomes = "yes or no, mean" if self.yes_no else "mean"
        spread = "" if self.yes_no else f", standard deviation {self.sd:.4g}"
        text = (
            f"outcomes without treatment {outcomes} {self.mean:.4g}{spread}; effect {self.effect:.4g} on everybody; "
            f"{100 * self.explained:.3g} % of outcomes explained by covariates; {100 * self.share:.3g} % treated"
        )
        return text + (f"; confounding {self.confounding:.3g}" if self.confounding else "")


def _between(
    name: str, value: Any, low: float, high: float, open_low: bool = False, open_high: bool = False
) -> float:
    wanted = f"a number {'above' if open_low else 'from'} {low:.6g} {'and below' if open_high else 'to'} {high:.6g}"
    if not number(value, low, high) or (open_low and value == low) or (open_high and value == high):
        raise out_of_range(name, wanted, value)
    return float(value)


def out_of_range(name: str, expected: str, got: object) -> ParameterError:
    """Return CV-P700."""
    return ParameterError(
        "CV-P700",
        f"{name} cannot be supposed of this study",
        expected=expected,
        got=shown(got),
        fix="take it from what is published about such studies, in the unit of the outcome; never from private rows",
    )
