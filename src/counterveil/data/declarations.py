"""What a study declares, checked: every field in turn, or the refusal of the first declaration that is invalid."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fractions import Fraction
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from counterveil.data.cluster import declared_cluster, declared_unit
from counterveil.data.domains import Binary, Categories, Domain, Range
from counterveil.data.labels import (
    Drop,
    Fill,
    Label,
    LabelIndex,
    MissingRule,
    arm_labels,
    checked_label,
    first_confusable,
)
from counterveil.data.outcomes import declared_before, declared_per
from counterveil.data.several import declared_several
from counterveil.data.time_to_event import declared_event
from counterveil.data.where import Where
from counterveil.data.where import declared as declared_subset
from counterveil.data.wrong_data import nearest
from counterveil.errors import ParameterError, Refusal, StudyError, shown
from counterveil.privacy import Number, exact

if TYPE_CHECKING:
    from counterveil.data.study import Study

TREATED = 1  # the label that means treated unless the study says otherwise


def declare(study: Study, **given: Any) -> None:
    """Set every field of a study to what is declared."""

    def put(name: str, value: object) -> None:
        object.__setattr__(study, name, value)

    put("several", declared_several(given))
    if study.several is not None:
        (first, ends), *_ = study.several.ranges
        given |= {"outcome": first, "outcome_range": ends}
    put("treatment", _column_name(given["treatment"], "treatment"))
    put("outcome", _column_name(given["outcome"], "outcome"))
    put("event", declared_event(given))
    put("outcome_range", _outcome_bounds(_declared_range(study, given), study.outcome))
    put("covariates", MappingProxyType(_covariates(given["covariates"])))
    earlier = ("before", "before_range", "change_range", "time", "after", "person")
    put("before", declared_before(study, *(given[name] for name in earlier)))
    put("per", None)
    _put_arms(study, put, given)
    put("missing", MappingProxyType(_rules(given["missing"], study)))
    put("randomised", _truth(given["randomised"]))
    put("treated_share", _share(given["treated_share"], study.randomised))
    person, cluster, rules = given["person"], given["cluster"], given["per_cluster"]
    flags = (given["protects_cluster"], given["assigned_by_cluster"])
    put("cluster", declared_cluster(study, cluster, *flags, rules, person))
    order = _order(given["order"], given["time"])
    own = ((person, given["per_person"]), (cluster, rules))
    put("person", declared_unit(study, *own, order, given["most_rows"]))
    if study.before is not None:
        put("outcome_range", study.before.bounds)
    subset = declared_subset(given["where"], given["others"], study.treatment, study.treatment_labels)
    put("where", subset)
    _not_by_outcomes(study.where, study.outcomes)
    put("bought", MappingProxyType(_bought(given["bought"], study.columns)))


def _put_arms(study: Study, put: Callable[[str, object], None], given: Mapping[str, Any]) -> None:
    """Set the labels of the arms, and what their outcomes are divided by."""
    label, control = checked_label(given["treated"], "treated"), given["control"]
    two_arms = {
        "treated": None if label == TREATED else label,
        "control": control,
        "treated_share": given["treated_share"],
    }
    put("arms", arm_labels(given["arms"], given["reference"], two_arms))
    put("per", declared_per(study, given["per"], given["per_range"]))
    _one_role_each(study.columns)
    put("treated", label if study.arms is None else None)
    put("control", None if control is None else checked_label(control, "control"))
    _two_arms(study.treated, study.control)


def _declared_range(study: Study, given: Mapping[str, Any]) -> object:
    """Return the range of the outcome as declared; that of a time to an event reaches to the horizon."""
    return given["outcome_range"] if study.event is None else (0, study.event.horizon)


def _column_name(name: object, role: str) -> str:
    if isinstance(name, str) and name.strip():
        return name
    raise StudyError(
        "CV-S004",
        f"the {role} has no valid column name",
        expected="a non-blank text",
        got=shown(name),
        fix=f"name the column that holds the {role}, as it is written in the data",
    )


def _outcome_bounds(outcome_range: object, outcome: str) -> tuple[Fraction, Fraction]:
    if not isinstance(outcome_range, tuple | list) or len(outcome_range) != 2:
        raise StudyError(
            "CV-S001",
            "the outcome has no public range",
            expected="outcome_range=(lowest, highest), known without looking at the data",
            got=f"outcome_range={shown(outcome_range)}",
            fix="declare the range of the measure, e.g. outcome_range=(0, 1) for a binary outcome",
        )
    bounds = Range(outcome_range[0], outcome_range[1], name=f"outcome {outcome!r}")
    return bounds.lo, bounds.hi


def _covariates(covariates: object) -> dict[str, Domain]:
    given = {} if covariates is None else covariates
    if not isinstance(given, Mapping):
        raise _bad_domain("covariates", type(given).__name__)
    for name, domain in given.items():
        _column_name(name, "covariate")
        if not isinstance(domain, Range | Binary | Categories):
            raise _bad_domain(f"covariate {name!r}", shown(domain))
    return dict(given)


_bad_domain = Refusal(
    "CV-S008",
    "{what}: no domain is declared",
    expected="a mapping from column name to Range(lo, hi), Binary() or Categories([...])",
    got="{got}",
    fix='for example covariates={{"age": Range(18, 90), "smoker": Binary()}}',
)


def _one_role_each(columns: tuple[str, ...]) -> None:
    if len(set(columns)) == len(columns):
        return
    seen = set()
    for name in columns:
        if name in seen:
            raise StudyError(
                "CV-S005",
                f"column {name!r} has two roles",
                expected="treatment, outcome and covariates in different columns",
                got=f"{shown(name)} named twice",
                fix="leave the column in one role",
            )
        seen.add(name)


def _two_arms(treated: Label | None, control: Label | None) -> None:
    if treated is not None and control is not None and first_confusable((treated, control)) is not None:
        raise StudyError(
            "CV-S007",
            "treated and control are the same label",
            expected="two labels that differ as text and as numbers",
            got=f"treated={shown(treated)}, control={shown(control)}",
            fix="give the label of each arm, or leave control out if there is only one other label",
        )


def _not_by_outcomes(where: Where | None, outcomes: tuple[str, ...]) -> None:
    private = [name for name in outcomes if where is not None and name in where.columns]
    if private:
        raise StudyError(
            "CV-S123",
            "rows are chosen by the outcome",
            expected="where= over columns other than the outcome",
            got=f"a condition on {private[0]!r}",
            fix="leave it out: the outcome is protected, and an effect among people chosen by it is biased; missing "
            "outcomes are treated by missing=",
        )


def _bought(bought: object, columns: tuple[str, ...]) -> dict[str, str]:
    given = {} if bought is None else bought
    if isinstance(given, Mapping) and all(
        name in columns and isinstance(cost, str) and cost for name, cost in given.items()
    ):
        return dict(given)
    raise StudyError(
        "CV-S127",
        "the declaration of what was bought is invalid",
        expected="columns of the study, and for each in words what its release cost",
        got=f"bought={shown(bought)}",
        fix="leave it as `counterveil draft --buy` writes it",
    )


def _rules(missing: object, study: Study) -> dict[str, MissingRule]:
    if isinstance(missing, Fill | Drop):
        missing = dict.fromkeys(study.columns, missing)
    given = {} if missing is None else missing
    if not isinstance(given, Mapping):
        raise _bad_rule(
            "missing",
            type(given).__name__,
            "pass one rule, or one per column",
        )
    columns = set(study.columns)
    for name, rule in given.items():
        if name not in columns:
            raise _bad_rule("missing", f"a rule for {name!r}", nearest(name, study.columns, "the study"))
        if not isinstance(rule, Fill | Drop):
            raise _bad_rule(
                f"column {name!r}", shown(rule), "write cv.drafting.Drop() or cv.drafting.Fill(value)"
            )
        if isinstance(rule, Fill):
            _check_fill(name, rule, study)
    return dict(given)


_bad_rule = Refusal(
    "CV-S009",
    "{what}: the rule for missing values is invalid",
    expected="cv.drafting.Drop() or cv.drafting.Fill(value) for columns of the study",
    got="{got}",
    fix="{fix}",
)


def _check_fill(name: str, rule: Fill, study: Study) -> None:
    domain = study.measured_bounds(name) or study.covariates.get(name)
    if isinstance(domain, Range):
        try:
            fits = domain.lo <= exact(rule.value, "Fill") <= domain.hi
        except ParameterError:
            fits = False
        allowed = f"a number in [{domain.lo}, {domain.hi}]"
    else:
        labels = study.treatment_labels if domain is None else domain.labels
        fits = LabelIndex(labels).code(rule.value) is not None
        allowed = f"one of {list(labels)!r}"
    if not fits:
        raise StudyError(
            "CV-S010",
            f"column {name!r}: the fill value is not in its domain",
            expected=allowed,
            got=f"Fill({shown(rule.value)})",
            fix="fill with a declared value, or use Drop()",
        )


def _order(order: str | None, time: str | None) -> str | None:
    """Return the column that orders a person's rows: that of the periods where there are any."""
    if order is not None and time is not None:
        raise StudyError(
            "CV-S018",
            "the declaration of what was measured before is invalid",
            expected="order= or time=: time= orders a person's rows",
            got=f"order={shown(order)}, time={shown(time)}",
            fix="leave order= out",
        )
    return order if time is None else time


def _truth(randomised: object) -> bool | None:
    if randomised is None or isinstance(randomised, bool):
        return randomised
    raise StudyError(
        "CV-S012",
        "randomised must be True, False or None",
        expected="True for a randomised trial, False for an observational study, None if unknown",
        got=f"randomised={shown(randomised)}",
        fix="pass True or False",
    )


def _share(treated_share: Number | None, randomised: bool | None) -> Fraction | None:
    if treated_share is None:
        return None
    try:
        share = exact(treated_share, "treated_share")
    except ParameterError:
        share = None
    if share is None or not 0 < share < 1 or randomised is not True:
        raise StudyError(
            "CV-S011",
            "treated_share is not the assignment probability of a randomised trial",
            expected="a number strictly between 0 and 1, together with randomised=True",
            got=f"treated_share={shown(treated_share)}, randomised={shown(randomised)}",
            fix="pass the probability published in the trial's design, or leave it out",
        )
    return share
