"""What results must share before they may be averaged."""

from __future__ import annotations

from counterveil.errors import ParameterError
from counterveil.estimators.result import Result

Named = list[tuple[str, Result]]


def check_agreement(sites: Named) -> None:
    """Raise unless the results answer one question about different people."""
    if len(sites) < 2:
        raise ParameterError(
            "CV-P500",
            "there is nothing to pool",
            expected="results of at least two sites",
            got=f"{len(sites)} result{'' if len(sites) == 1 else 's'}",
            fix="pass the results, or the files, of all sites at once",
        )
    _check_same(sites)
    _check_distinct(sites)


def _question(result: Result) -> dict[str, str]:
    return {
        "unit of protection": result.guarantee.unit.value,
        "estimand": result.estimand.value,
        "treatment": result.treatment,
        "outcome": result.outcome,
        "target": str(result.details.get("target", "everyone the estimand names")),
    }


def _check_same(sites: Named) -> None:
    first_name, first = sites[0]
    wanted = _question(first)
    for name, result in sites[1:]:
        for word, value in _question(result).items():
            if value != wanted[word]:
                raise ParameterError(
                    "CV-P503",
                    f"the sites do not answer one question: another {word}",
                    expected=f"{word} as in {first_name}: {wanted[word]}",
                    got=f"{name}: {value}",
                    fix="ask all sites the same question, with one study file, and pool those that answer it",
                )


def _check_distinct(sites: Named) -> None:
    seen: dict[tuple[object, ...], str] = {}
    for name, result in sites:
        known = result.uncertainty
        # Two draws of noise do not agree in every number; the same release sent twice does.
        key = (result.estimate, known.variance, known.variance_cap, result.method, result.spent)
        if key in seen:
            raise ParameterError(
                "CV-P504",
                "the same result was given twice",
                expected="one result a site, about people who are in no other site",
                got=f"{seen[key]} and {name} are the same release",
                fix="leave one of them out",
            )
        seen[key] = name
