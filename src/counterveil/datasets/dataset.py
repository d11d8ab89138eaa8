"""A data set with its study, its source, and the true effect if it is known."""

from __future__ import annotations

import csv
import gzip
import hashlib
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from counterveil.data import Study
from counterveil.errors import refusal


@dataclass(frozen=True, slots=True)
class Dataset:
    """Columns as arrays, the study that declares them, and what is known about them in public."""

    name: str
    # Left out of the text form: printing a data set shows no rows.
    frame: Mapping[str, NDArray[Any]] = field(repr=False, compare=False)
    study: Study
    source: str
    licence: str
    true_effect: float | None = None
    notes: str = ""
    # The expected effect in each row, and as a function of columns of covariates, where they are known.
    effects: NDArray[np.float64] | None = field(default=None, repr=False, compare=False)
    effect_at: Callable[[Mapping[str, NDArray[Any]]], NDArray[np.float64]] | None = field(
        default=None, repr=False, compare=False
    )


# Files of the data folder, checked by their SHA-256 before they are read.


VARIABLE = "COUNTERVEIL_DATA"


def locate(relative: str, sha256: str, folder: str | PathLike[str] | None = None) -> Path:
    """Return the path of a file whose content is the expected one; by default below COUNTERVEIL_DATA."""
    path = find_file(relative, folder)
    check_digest(hashlib.sha256(path.read_bytes()).hexdigest(), sha256, relative)
    return path


def find_file(relative: str, folder: str | PathLike[str] | None = None) -> Path:
    """Return the path of a file below a folder, by default COUNTERVEIL_DATA, or say that it is not there."""
    root = os.environ.get(VARIABLE, "") if folder is None else os.fspath(folder)
    if not root or not Path(root).is_dir():
        raise refusal(
            "CV-D040",
            variable=VARIABLE,
            got="no folder" if not root else "a path that is not a folder",
            relative=relative,
        )
    path = Path(root, relative)
    if not path.is_file():
        raise refusal("CV-D041", relative=relative)
    return path


def check_digest(got: str, expected: str, what: str) -> None:
    """Raise CV-D042 unless the content is the one the loader was written for."""
    if got != expected:
        raise refusal("CV-D042", what=what, expected=expected, got=got)


def read_text(path: Path, names: list[str]) -> dict[str, NDArray[Any]]:
    """Return the named columns of a packed CSV file as arrays of text, None where a cell is empty."""
    with gzip.open(path, "rt", encoding="utf-8", newline="") as lines:
        rows = csv.reader(lines)
        header = next(rows)
        places = [header.index(name) for name in names]
        cells = [[row[place] or None for place in places] for row in rows]
    return {
        name: np.array(column, dtype=object)
        for name, column in zip(names, zip(*cells, strict=True), strict=True)
    }


def numbers(column: NDArray[Any]) -> NDArray[np.float64]:
    """Return a column of text as doubles, NaN where a cell is empty."""
    return np.array([np.nan if cell is None else float(cell) for cell in column], dtype=np.float64)
