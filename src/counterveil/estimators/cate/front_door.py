"""The front door for effects that differ between people: `cate(...)`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from counterveil.accounting import Ledger
from counterveil.curator import BitSource, Custody
from counterveil.data import Study, Table
from counterveil.estimators.cate.answers import CateAnswers
from counterveil.estimators.cate.methods import answer_cate, check_form
from counterveil.estimators.cate.model import CateModel
from counterveil.estimators.cate.question import ask_cate
from counterveil.privacy import Number


def cate(
    data: object,
    study: Study,
    *,
    protects: str = "record",
    epsilon: Number,
    delta: Number | None = None,
    method: str = "auto",
    level: float = 0.95,
    queries: Any = None,
    variant: str | None = None,
    settings: Any = None,
    accept: str | None = None,
    ledger: str | Path | Ledger | None = None,
    dataset: str | None = None,
    request_id: str | None = None,
    noise: BitSource | None = None,
) -> CateModel | CateAnswers:
    """Return the private effect as a function of the covariates, or its values at given queries.

    Args:
        data: as for `counterveil.ate`.
        study: column roles, public bounds and categories; at least one covariate.
        protects: "record", everything about a person.
        epsilon: privacy loss to spend on the whole function; evaluating it costs nothing.
        delta: None takes the smaller of 1e-6 and 1/(10 n); 0 for pure differential privacy.
        method: "auto", or a method by name; an unknown name lists the methods.
        level: confidence level of intervals and bands, which include the privacy noise.
        queries: people to ask about, as a table of covariates; None for a model, evaluated as often as you like.
        variant: None for the form that is proved; "paper" for a published form, where there is one.
        settings: the method's own settings.
        accept: "unproved" to accept a form without a finite-sample guarantee.
        ledger, dataset, request_id, noise: as for `counterveil.ate`.
    """
    arguments: dict[str, Any] = {
        "method": method,
        "protects": protects,
        "epsilon": epsilon,
        "delta": delta,
        "level": level,
        "queries": queries,
        "variant": variant,
        "settings": settings,
        "accept": accept,
        "request_id": request_id,
    }
    # Everything that can be refused without looking at the data is refused first.
    check_form(ask_cate(study, **arguments))
    table = data if isinstance(data, Table) else Table.attach(data, study)
    question = ask_cate(study, rows=table.rows, **arguments)
    budget = None if ledger is not None else question.own_budget
    with Custody(table, study, budget=budget, ledger=ledger, dataset=dataset, noise=noise) as custody:
        return answer_cate(custody, question)
