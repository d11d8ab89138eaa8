"""The columns that a study and the arguments of `moments` declare: covariates, arms, outcomes, products.

Reads declarations alone; what a row holds in each column stands in `rows.moments.regression_columns`.

In: a study and the arguments of the question. Out: names, order and units of the columns, each scaled to [-1,
1] by its declared range. Nothing private is read and nothing is released.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import log

from counterveil.data import Categories, Range, Study
from counterveil.data.features import feature_map
from counterveil.errors import CounterveilError, refusal
from counterveil.numerics.products import Column
from counterveil.results.regression import written_out
from counterveil.rows.moments.regression_columns import Columns


def columns_of(study: Study, outcomes: Sequence[str], terms: Sequence[str]) -> Columns:
    """Return the columns that a study and the arguments declare; no row is looked at."""
    features = feature_map(study, 1, reference="first")
    arms = study.arms[1:] if study.arms is not None else (study.treated,)
    treatments = [study.treatment] if study.arms is None else [f"{study.treatment}={arm}" for arm in arms]
    sources = [column.source for column in features.columns]
    labels = [_named(study, column) for column in features.columns]
    further_outcomes = () if study.several is None else study.several.columns[1:]
    raised = [factor for text in terms for factor in _factors(text, study) if factor.startswith("log(")]
    logs = [name[4:-1] for name in dict.fromkeys(raised) if name not in labels]
    _refuse_logs(study, logs)
    log_outcome = tuple(name for name in logs if name == study.outcome)
    logs = [name for name in logs if name != study.outcome]
    names = (*labels, *(f"log({name})" for name in logs), *treatments, study.outcome, *further_outcomes)
    names = (*names, *(f"log({name})" for name in log_outcome))
    ends = [(column.low + column.width / 2, column.width / 2) for column in features.columns]
    ends += [_logarithms(*_range(study, name)) for name in logs]
    ends += [(0.5, 0.5)] * len(arms) + [_middle(study, name) for name in (study.outcome, *further_outcomes)]
    ends += [_logarithms(*_range(study, name)) for name in log_outcome]
    groups = [
        (name, tuple(label for label, source in zip(labels, sources, strict=True) if source == name))
        for name in study.covariates
    ]
    groups += [(study.treatment, tuple(treatments))]
    _refuse_unknown(outcomes, tuple(study.covariates), "outcomes")
    explained = (study.outcome,) if study.several is None else study.several.names
    responses = [source in outcomes for source in (*sources, *logs)] + [True] * len(arms)
    responses += [name in explained for name in (study.outcome, *further_outcomes)] + [True] * len(
        log_outcome
    )
    flags = {
        name: source
        for name, source, is_flag in zip(labels, sources, features.two_valued, strict=True)
        if is_flag
    }
    flags |= dict.fromkeys(treatments, study.treatment)
    products, named = _products(terms, study, names, groups=dict(groups), flags=flags)
    return Columns(
        names=(*names, *named),
        features=features,
        arms=tuple(arms),  # type: ignore[arg-type]
        responses=tuple(responses),
        products=products,
        ends=tuple(ends),
        groups=tuple((name, members) for name, members in groups if members != (name,)),
        measures=len(further_outcomes),
        logs=tuple((sources.index(name), high / low) for name in logs for low, high in [_range(study, name)]),
        log_outcome=tuple(high / low for name in log_outcome for low, high in [_range(study, name)]),
    )


def _logarithms(low: float, high: float) -> tuple[float, float]:
    return (log(low) + log(high)) / 2, (log(high) - log(low)) / 2


def _range(study: Study, name: str) -> tuple[float, float]:
    """Return the ends of the range of the outcome or a covariate, (0, 0) where it is not one of numbers."""
    domain = study.outcome_bounds if name == study.outcome else study.covariates.get(name)
    return domain.floats() if isinstance(domain, Range) else (0.0, 0.0)


def _refuse_logs(study: Study, names: Sequence[str]) -> None:
    """Raise CV-P792 for a logarithm of what is not a number above zero."""
    for name in names:
        low, high = _range(study, name)
        if not 0 < low < high:
            raise refusal("CV-P792", name=name, low=low, high=high)


def _middle(study: Study, name: str) -> tuple[float, float]:
    """Return the middle and half the width of the range of an outcome, or of what was measured before."""
    bounds = study._measured_bounds(name)
    low, high = (study.outcome_bounds if bounds is None else bounds).floats()
    return (low + high) / 2, (high - low) / 2


def _named(study: Study, column: Column) -> str:
    """Return the name of a covariate's column; the first label is the reference and has none."""
    domain = study.covariates[column.source]
    return column.source if column.label is None else f"{column.source}={domain.labels[column.label]}"  # type: ignore[union-attr]


def _refuse_unknown(names: Sequence[str], columns: Sequence[str], argument: str) -> None:
    """Raise CV-P780 for a name that is not among the columns."""
    for name in names:
        if name not in columns:
            raise refusal(
                "CV-P780b",
                argument=argument,
                known=", ".join(map(repr, columns)) or "no covariates",
                name=name,
            )


def _factors(text: object, study: Study) -> list[str]:
    """Return the names of one or two columns that a term is made of, or raise CV-P781."""
    if not isinstance(text, str):
        raise _no_interaction(text)
    groups = {name: () for name, domain in study.covariates.items() if isinstance(domain, Categories)}
    factors = [factor.strip().strip("`") for factor in written_out(text, groups).split(":")]
    if len(factors) == 2 or (len(factors) == 1 and factors[0].startswith("log(")):
        return factors
    raise _no_interaction(text)


def _products(
    terms: Sequence[str],
    study: Study,
    names: Sequence[str],
    groups: dict[str, tuple[str, ...]],
    flags: dict[str, str],
) -> tuple[tuple[tuple[int, int], ...], list[str]]:
    """Return pairs of places and names of the products of pairs such as "treat:age"; those of labels are all taken.

    `flags` says of every flag which column it is of: products of two flags of one column are known.
    """
    products: dict[tuple[int, int], str] = {}
    for text in terms:
        factors = _factors(text, study)
        _refuse_unknown(factors, tuple(dict.fromkeys((*groups, *names))), "terms")
        if len(factors) == 1:
            continue
        firsts, seconds = (groups.get(factor, (factor,)) for factor in factors)
        of_term = {
            (names.index(first), names.index(second)): f"{first}:{second}"
            for first in firsts
            for second in seconds
            if first not in flags or flags.get(second) != flags[first]
        }
        if not of_term:
            raise _no_interaction(text)
        products |= {
            pair: name for pair, name in of_term.items() if pair[::-1] not in products or pair[0] == pair[1]
        }
    return tuple(products), list(products.values())


def _no_interaction(text: object) -> CounterveilError:
    return refusal("CV-P781", text=text)
