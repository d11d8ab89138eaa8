"""Rows in Spark: passes are sent to the executors, run there on Arrow batches, and only whole numbers come back.

The Python of the executors needs the same version of this package. No row reaches this process, and what goes wrong
with rows in an executor is caught there, so that no log quotes them.
"""

from __future__ import annotations

import json
import os
import re
import weakref
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from importlib import metadata
from typing import Any

import numpy as np

from counterveil.data.features import feature_map
from counterveil.data.passes import Pass, Sums, added, reads_covariates
from counterveil.data.silence import silence
from counterveil.data.spark_kept import (
    BLOCK_ROWS,
    Kept,
    at_a_time,
    forget,
    found_in,
    keep,
    lines_at_a_time,
    needed,
)
from counterveil.data.spark_reading import Read, Reading, columns_in_spark, kinds_of
from counterveil.data.spool import NEVER, VARIABLE
from counterveil.data.study import Study
from counterveil.data.survey import Survey
from counterveil.data.wrong_data import changed_table, failed_source, no_executors, too_wide_for_driver

# A partition answers with one text: whole numbers as JSON, nothing where it failed.
_ANSWER = "answer string"
# So many answers are added up by one executor, and as many reach this process at most.
_TOGETHER = 32
# What Spark lets a collection bring to this process, unless its settings say otherwise.
_LIMIT, _DEFAULT = "spark.driver.maxResultSize", "1g"
# Bytes of an answer for each pair of features, about twice what moments of 20 to 300 features take; models with squares
# and products of covariates have no more than so many.
_PAIR_BYTES, _MODEL_FEATURES = 64, 140


@dataclass(frozen=True, slots=True)
class Task:
    """What an executor does with a partition: an answer in whole numbers from its rows."""

    answer: Callable[[Iterator[Any]], Any]

    def __call__(self, batches: Iterator[Any]) -> Iterator[Any]:
        """Yield one Arrow batch with the answer."""
        import pyarrow as pa

        try:
            # Not in the executor's log either.
            with silence():
                found = json.dumps(self.answer(batches))
        except Exception:  # what it says may quote rows
            found = "null"
        yield pa.RecordBatch.from_pydict({"answer": pa.array([found], pa.string())})


def surveyed(reading: Read, batches: Iterator[Any]) -> dict[str, Any]:
    """Return what a survey of a partition finds."""
    survey = Survey(reading.study)
    for _ in reading.tables(batches, survey):
        pass
    return survey.facts()


def summed(reading: Read, passed: Pass, batches: Iterator[Any]) -> list[Any]:
    """Return a survey's facts and the sums of a pass over a partition, None where it has no rows."""
    survey = Survey(reading.study)
    total: Sums | None = None
    for table in reading.tables(batches, survey):
        if table.rows:
            total = added(total, passed(table))
    return [survey.facts(), None if total is None else [part.tolist() for part in total]]


def together(study: Study, batches: Iterator[Any]) -> list[Any]:
    """Return the facts and the sums of several partitions, from what each of them answered."""
    answers = (json.loads(line.as_py()) for batch in batches for line in batch.column(0))
    survey, total = _joined(study, answers)
    return [survey.facts(), None if total is None else [part.tolist() for part in total]]


def _joined(study: Study, answers: Iterable[Any]) -> tuple[Survey, Sums | None]:
    """Return what partitions found and summed; whole numbers, so that every order gives the same."""
    survey = Survey(study)
    total: Sums | None = None
    for facts, sums in answers:
        survey.join(facts)
        if sums is not None:
            total = added(total, tuple(np.array(part, dtype=object) for part in sums))
    return survey, total


def version(_batches: object = None) -> str:
    """Return the version of this package that a process has."""
    return metadata.version("counterveil")


@dataclass(frozen=True, slots=True, eq=False, repr=False, weakref_slot=True)
class SparkRows:
    """Rows in Spark that fit a study; made by `SparkRows.of`."""

    study: Study
    rows: int
    reading: Read
    frame: Any
    facts: str
    batch: int
    partitions: int
    # How many answers this process takes at once.
    most: int

    @classmethod
    def of(cls, table: Any, study: Study) -> SparkRows:
        """Return the rows of an Ibis table on Spark, checked by the executors, or say why they do not fit.

        Spark keeps them encoded; where no rows may be kept, every pass reads the table again.
        """
        kinds = kinds_of(table, study)
        frame, reading = columns_in_spark(table, kinds), Reading(study, tuple(kinds.items()))
        if study.person is not None:
            from counterveil.data import spark_reading

            # Sorted on the executors' disks in any case.
            return cls._kept(spark_reading.by_person(frame, reading), spark_reading.OnePerPerson(reading))
        if os.environ.get(VARIABLE) != NEVER:
            return cls._kept(frame, reading)
        return cls._checked(
            reading, frame, _answers(frame, partial(surveyed, reading), BLOCK_ROWS), BLOCK_ROWS
        )

    @classmethod
    def _kept(cls, frame: Any, reading: Read) -> SparkRows:
        kept = keep(frame, reading)
        try:
            facts = _sound(kept, lambda: found_in(kept))
            found = cls._checked(Kept(reading.study), kept, facts, lines_at_a_time(reading.study))
        except BaseException:
            forget(kept)
            raise
        weakref.finalize(found, forget, kept).atexit = False
        return found

    @classmethod
    def _checked(cls, reading: Read, frame: Any, found: list[Any], batch: int) -> SparkRows:
        survey = Survey(reading.study)
        for facts in found:
            survey.join(facts)
        survey.verdict()
        # Here nothing was charged yet: a pass that could not bring its sums home would lose its charge.
        most = _most_answers(frame, reading.study)
        known = json.dumps(survey.facts())
        return cls(reading.study, survey.rows, reading, frame, known, batch, len(found), most)

    def run(self, passed: Pass, in_turn: bool = False) -> Sums:  # noqa: ARG002
        """Return a pass's sums over all rows; executors work side by side, each on one block at a time."""
        frame = self.frame
        if isinstance(self.reading, Kept):
            frame = needed(frame, reads_covariates(passed))
        answers = _answers(frame, partial(summed, self.reading, passed), self.batch, self._tree)
        survey, total = _joined(self.study, answers)
        if total is None or json.dumps(survey.facts()) != self.facts:
            raise changed_table()
        return total

    def _tree(self, answers: Any) -> Any:
        """Return the answers of partitions as few, added up by executors."""
        count = self.partitions
        while count > self.most:
            count = -(-count // _TOGETHER)
            answers = answers.repartition(count).mapInArrow(Task(partial(together, self.study)), _ANSWER)
        return answers

    def close(self) -> None:
        """Let Spark forget the rows that it keeps."""
        if isinstance(self.reading, Kept):
            forget(self.frame)

    def __repr__(self) -> str:
        # Declarations only, as for a table.
        return (
            f"SparkRows(treatment={self.study.treatment!r}, outcome={self.study.outcome!r}, rows not shown)"
        )


def _most_answers(frame: Any, study: Study) -> int:
    """Return how many answers this process may take at once, or raise CV-D061 where it could not take one."""
    features = feature_map(study, 1).size if study.covariates else 0
    size = _PAIR_BYTES * max(features, _MODEL_FEATURES) ** 2
    limit = _driver_limit(frame)
    if limit and size > limit:
        raise too_wide_for_driver(f"{limit:,}", features, f"{size:,}")
    return min(_TOGETHER, limit // size) if limit else _TOGETHER


def _driver_limit(frame: Any) -> int:
    """Return how many bytes a collection may bring to this process, 0 where there is no limit."""
    text = str(frame.sparkSession.conf.get(_LIMIT, _DEFAULT)).lower()
    found = re.fullmatch(r"\s*([0-9]{1,18})([kmgtp]?)b?\s*", text)
    # Spark itself refuses a setting that is no size.
    number, unit = found.groups() if found else ("1", "g")
    return int(number) << 10 * " kmgtp".index(unit or " ")


def _answers(
    frame: Any,
    answer: Callable[[Iterator[Any]], Any],
    batch: int,
    tree: Callable[[Any], Any] = lambda lines: lines,
) -> list[Any]:
    """Return the answers of all partitions, which get so many rows of the frame at a time; `tree` makes them few."""

    def asked() -> list[Any]:
        with at_a_time(frame, batch):
            lines = tree(frame.mapInArrow(Task(answer), _ANSWER)).collect()
        return [json.loads(line["answer"]) for line in lines]

    return _sound(frame, asked)


def _sound(frame: Any, asked: Callable[[], list[Any]]) -> list[Any]:
    """Return what partitions answered; where one failed, say whether the executors could have answered."""
    try:
        found = asked()
    except Exception:
        # Its message may quote rows.
        _check_executors(frame)
        raise failed_source("a table in Spark") from None
    if any(one is None for one in found):
        _check_executors(frame)
        raise failed_source("a table in Spark")
    return found


def _check_executors(frame: Any) -> None:
    """Raise CV-D060 where an executor lacks this package, or has another version of it."""
    nothing = frame.sparkSession.range(1)
    try:
        rows = nothing.mapInArrow(Task(version), _ANSWER).collect()
        there = {json.loads(row["answer"]) for row in rows}
    except Exception:
        there = set()
    if there != {version()}:
        raise no_executors(version()) from None
