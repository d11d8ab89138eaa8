"""How each call is made. Where the product is renamed, this file and `numbers.py` follow; names of calls stay."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
from tools.golden.ways import Asked, Columns, data_for, study

import counterveil as cv

SEED = 1
WHOLE = ("1e9", "1e-2")
SESSION, FRONT_DOOR = "session", "front door"


@dataclass(frozen=True)
class Call:
    """One call under a name that never changes; `question` says which numbers are read off its answer."""

    name: str
    question: str
    answer: Callable[[], Any]


@dataclass(frozen=True)
class Given:
    """What a call is asked with: rows, budget, kind of source, a change of the data, and through which door."""

    rows: int = 200
    epsilon: str = "8"
    delta: str = "0"
    source: str = "numpy"
    change: Callable[[Columns], Columns] | None = None
    door: str = SESSION

    @property
    def budget(self) -> dict[str, str]:
        """The budget as arguments."""
        return {"epsilon": self.epsilon, "delta": self.delta}

    def __str__(self) -> str:
        return f"{self.rows} rows, epsilon {self.epsilon}, delta {self.delta}"


# The published form of a method, and those that have settings of their own.
PUBLISHED = {
    ("matching", "outcome"): "outcome_matching",
    ("matching", "record"): "record_matching",
    ("stratified", "record"): "smooth_matching",
    ("ipw", "record"): "ipw",
    ("cross_fit", "record"): "cross_fit",
    ("influence", "record"): "cate_finite",
    ("kernel", "record"): "cate_functional",
}
# Learners of effects that differ between people, by the words in the names of calls.
LEARNERS = {"arms": "t_learner", "interacted": "r_learner"}
# Methods that were asked of the front door, and the proved forms that answer as they did.
PROVED = {"matching": "record_matching_proved", "ipw": "ipw_proved", "cross_fit": "cross_fit_proved"}


_PLURAL = {"Fold": "Folds"}


def settings(name: str, **fields: Any) -> Any:
    """Return the settings of one class of them; keys keep the names that answers were taken under."""
    if name in ("Influence", "Kernel"):
        return getattr(cv.published, f"{name}Settings")(**fields)
    return getattr(cv.settings, _PLURAL.get(name, name))(**fields)


def published(**given: Any) -> dict[str, Any]:
    """Return the arguments that ask for the published form of a method."""
    return {"published": True} | given


def answer(question: str, declared: dict[str, Any], given: Given, **arguments: Any) -> Any:
    """Return the answer to one question about simulated people, with seeded noise.

    Questions, methods and settings come in the words that are part of the names of calls; where the product has
    other words, they are translated here.
    """
    if question == "cate":
        arguments["method"] = LEARNERS.get(arguments["method"], arguments["method"])
    asked = Asked(declared, lambda session, **budget: _asked_of(session, question, arguments | budget))
    return answer_asked(asked, given, question, arguments)


def _asked_of(session: cv.Session, question: str, arguments: dict[str, Any]) -> Any:
    if question == "ate" and arguments.get("protects") == "record" and not arguments.get("published"):
        form = PROVED.get(arguments["method"])
        if form is not None:
            left = {key: arguments[key] for key in arguments if key not in ("method", "protects")}
            return getattr(cv.published, form)(session, **left)
    if not arguments.get("published"):
        return getattr(session, question)(**arguments)
    form = PUBLISHED[arguments["method"], arguments.get("protects", "record")]
    given = {key: arguments[key] for key in arguments if key not in ("published", "method", "protects")}
    return getattr(cv.published, form)(session, accept="unproved", **given)


def answer_asked(
    asked: Asked, given: Given, question: str = "", arguments: dict[str, Any] | None = None
) -> Any:
    """Return the answer to one way of asking; through the front door, `question` is asked with `arguments`."""
    columns = data_for(asked, given.rows, "usual")
    data = _sources()[given.source](columns if given.change is None else given.change(columns))
    declared, noise = study(**asked.declared), cv.SeededNoise(SEED)
    if given.door == FRONT_DOOR:
        return getattr(cv, question)(data, declared, noise=noise, **(arguments or {}), **given.budget)
    with cv.Session(data, declared, budget=cv.Budget(*WHOLE), noise=noise) as session:
        return asked.ask(session, **given.budget)


def pooled(sites: dict[str, Any], **arguments: Any) -> Any:
    """Return the answers of several sites as one."""
    return cv.pool(sites, **arguments)


ASSUMED = ("mean", "effect", "sd", "explained", "confounding", "share", "binary")
OPTIONS = ("formula", "received", "spending")


def planned(declared: dict[str, Any], **arguments: Any) -> Any:
    """Return how long the intervals of a study would be; what is assumed of people, and options, by their names."""
    assumed = {name: arguments.pop(name) for name in ASSUMED if name in arguments}
    options = {name: arguments.pop(name) for name in OPTIONS if name in arguments}
    people = cv.Assumptions(**assumed)
    return cv.plan(study(**declared), assumed=people, options=options, **arguments)


@cache
def _folder() -> TemporaryDirectory[str]:
    """Return where files of rows lie while the process runs."""
    return TemporaryDirectory(prefix="golden-")


def _file(columns: Columns, name: str, write: Callable[[pa.Table, Path], None]) -> Path:
    path = Path(_folder().name) / name
    write(pa.table(columns), path)
    return path


def _relation(columns: Columns) -> Any:
    import duckdb

    return duckdb.connect().from_arrow(pa.table(columns))


def _database(columns: Columns) -> Any:
    import duckdb
    import ibis

    connection = duckdb.connect()
    connection.register("given", pa.table(columns))
    connection.execute("create table people as select * from given")
    return ibis.duckdb.from_connection(connection).table("people")


def _sources() -> dict[str, Callable[[Columns], Any]]:
    return {
        "numpy": lambda columns: columns,
        "pandas": pd.DataFrame,
        "polars": pl.DataFrame,
        "pyarrow": pa.table,
        "csv": lambda columns: _file(columns, "rows.csv", pyarrow.csv.write_csv),
        "parquet": lambda columns: _file(columns, "rows.parquet", pyarrow.parquet.write_table),
        "duckdb": _relation,
        "ibis": _database,
    }


SOURCES = tuple(_sources())


def with_gaps(columns: Columns) -> Columns:
    """Return the columns with every ninth value of the covariate a missing."""
    gone = np.arange(len(columns["a"])) % 9 == 0
    return columns | {"a": np.where(gone, np.nan, columns["a"])}


def with_words(columns: Columns) -> Columns:
    """Return the columns with a treatment of two words."""
    return columns | {"t": np.where(columns["t"] == 1, "new", "old")}


def with_truths(columns: Columns) -> Columns:
    """Return the columns with an outcome and a covariate of truths."""
    return columns | {"y": columns["y"] > 2, "b": columns["b"] == 1}
