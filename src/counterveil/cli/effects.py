"""The commands that estimate effects and spend a budget: estimate, arms, groups, cate and policy-value."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from counterveil.cli.options import Out, option
from counterveil.cli.requests import Request, question


@question("estimand", "mechanism", "setting", "table")
def estimate(request: Request) -> None:
    """Estimate the average effect of a treatment."""
    import counterveil as cv
    from counterveil.data import open_table

    data = open_table(request.given["data"], request.given["table"])
    request.show(cv.ate(data, request.study, **request.arguments))


@question("mechanism")
def arms(request: Request) -> None:
    """Estimate the effects of several treatment arms against a reference arm.

    The study file declares the arms and the reference. One epsilon pays for all arms.
    """
    import counterveil as cv

    request.show(cv.arms(request.given["data"], request.study, **request.arguments))


@question("mechanism")
def groups(
    request: Request,
    by: Annotated[
        list[str],
        option(
            "NAME[=CUTS]", "A covariate, with cut points if it is a number: age=40,65. Several are crossed."
        ),
    ],
) -> None:
    """Estimate the effects in subgroups defined by covariates.

    One epsilon pays for all subgroups.
    """
    import counterveil as cv

    request.show(cv.groups(request.given["data"], request.study, by=_cut(by), **request.arguments))


@question(without=("report",), protects="record", delta=None)
def cate(request: Request, out: Out = None) -> None:
    """Estimate the effect as a function of the covariates (CATE).

    One epsilon pays for the whole function. If delta is omitted, it is the smaller of 1e-6 and 1/(10 n).
    """
    import counterveil as cv

    model = cv.cate(request.given["data"], request.study, **request.arguments)
    # Printed first: what was paid for is not lost if the file cannot be written.
    request.show(model)
    if out is not None:
        model.save(out)


@question(protects="record")
def policy_value(
    request: Request,
    policy: Annotated[
        Path,
        option(
            "FILE", "A policy written by Policy.save, or an effect model written by `counterveil cate --out`."
        ),
    ],
    cost: Annotated[
        str | None,
        option(
            "NUMBER",
            "Cost of treating one person, in units of the outcome; the policy's own, or 0, if omitted.",
        ),
    ] = None,
) -> None:
    """Estimate the value of a treatment policy against treating nobody and treating everybody."""
    import counterveil as cv
    from counterveil.questions import stored_policy

    rule = stored_policy(policy, cost)
    data = request.given["data"]
    request.show(cv.policy_value(data, request.study, policy=rule, cost=cost, **request.arguments))


def _cut(words: list[str]) -> dict[str, list[str] | None]:
    """Return covariates and their cut points from words such as "site" and "age=40,65"."""
    found: dict[str, list[str] | None] = {}
    for word in words:
        name, sign, points = word.partition("=")
        found[name.strip()] = [point.strip() for point in points.split(",")] if sign else None
    return found
