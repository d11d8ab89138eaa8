"""What one input led to, and whether it broke a rule: an uncoded error, a private value in a text, a lost charge."""

from __future__ import annotations

import os
import random
import sys
import tempfile
import traceback
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Any

from counterveil.errors import CounterveilError, InternalError

ANSWERED, REFUSED, FAILED = "answered", "refused", "failed"

# Planted in private cells. Found again in any text, they show that a cell got out.
TEXT_CANARY = "QZXVCANARYKJW"
SECRET = "QZXVSECRET"  # the password of an address
NUMBER_CANARY = 3.1416273859271


class BrokenRuleError(Exception):
    """A rule that a subject checks itself is broken; the text says which."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What an input was answered with: every text a person or a program would see."""

    texts: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Verdict:
    """How one input ended: `state`, the code of a refusal or the reason of a failure."""

    state: str
    reason: str = ""


Attempt = Callable[[], Answer]
# A subject makes its input (with nothing watched) and returns what tries it (with everything watched).
Subject = Callable[[random.Random, Path], Attempt]


def judge(subject: Subject, name: str, number: int, seed: int, folder: Path) -> Verdict:
    """Return how input `number` of a subject ends; the same numbers always make the same input."""
    attempt = subject(generator(name, number, seed), folder)
    said: list[str] = []
    with _everything_said(said):
        verdict, texts = _tried(attempt)
    leak = canary_in("\n".join([*texts, *said]))
    if leak:
        return Verdict(FAILED, f"private value {leak!r} in a text")
    if verdict.state != FAILED and any("Traceback (most recent call last)" in text for text in said):
        return Verdict(FAILED, "a traceback was printed")
    strange = [text for text in said if "RuntimeWarning" in text]
    if verdict.state != FAILED and strange:
        return Verdict(FAILED, f"a warning that may depend on rows: {_line(strange[0])}")
    return verdict


def generator(name: str, number: int, seed: int) -> random.Random:
    """Return the source of choices of one input."""
    return random.Random(f"{seed}/{name}/{number}")


def canary_in(text: str) -> str | None:
    """Return a planted value that stands in a text, None where none does."""
    digits = "".join(sign for sign in text if sign != ".")
    folded = text.casefold()
    planted = [mark for mark in (TEXT_CANARY, SECRET) if mark.casefold() in folded]
    return next((mark for mark in (*planted, *_DIGITS) if mark in planted or mark in digits), None)


# The number as it is printed, cut to what a rounded print still shows, and as an exact fraction.
_DIGITS = ("31416273", str(Fraction(repr(NUMBER_CANARY)).numerator), str(Fraction(NUMBER_CANARY).numerator))


def _tried(attempt: Attempt) -> tuple[Verdict, list[str]]:
    with warnings.catch_warnings(record=True) as raised:
        warnings.simplefilter("always")
        try:
            answer = attempt()
            verdict, texts = Verdict(ANSWERED), answer.texts
        except InternalError as error:
            verdict, texts = Verdict(FAILED, f"{error.code}: {_line(error.got)}"), _text_of(error)
        except CounterveilError as error:
            verdict, texts = Verdict(REFUSED, error.code), [*_text_of(error), str(error.to_dict())]
        except BrokenRuleError as broken:
            verdict, texts = Verdict(FAILED, str(broken)), []
        except (Exception, SystemExit, KeyboardInterrupt) as fault:
            verdict, texts = Verdict(FAILED, f"{type(fault).__name__} {_place(fault)}"), _text_of(fault)
    texts = texts + [f"{each.category.__name__}: {each.message}" for each in raised]
    numeric = [each for each in raised if issubclass(each.category, RuntimeWarning)]
    if numeric and verdict.state != FAILED:
        verdict = Verdict(
            FAILED, f"a RuntimeWarning that may depend on rows: {_line(str(numeric[0].message))}"
        )
    return verdict, texts


def _text_of(fault: BaseException) -> list[str]:
    return ["".join(traceback.format_exception(fault))]


def _place(fault: BaseException) -> str:
    """Return the last place in the package that an error went through, and the first line of its text."""
    place = "outside the package"
    for frame, line in traceback.walk_tb(fault.__traceback__):
        name = str(frame.f_globals.get("__name__", ""))
        if name.startswith("counterveil"):
            place = f"{name}:{line}"
    return f"at {place}: {_line(str(fault))}"


def _line(text: str) -> str:
    return text.strip().split("\n")[0][:120]


@contextmanager
def _everything_said(said: list[str]) -> Iterator[None]:
    """Collect what is written to standard output and error, by C libraries too."""
    sys.stdout.flush()
    sys.stderr.flush()
    kept = [os.dup(number) for number in (1, 2)]
    streams = sys.stdout, sys.stderr
    with tempfile.TemporaryFile() as file:
        for number in (1, 2):
            os.dup2(file.fileno(), number)
        # As strict as a terminal's: what cannot be written there must not be printed.
        sys.stdout = open(1, "w", encoding="utf-8", closefd=False)  # noqa: SIM115
        sys.stderr = open(2, "w", encoding="utf-8", errors="backslashreplace", closefd=False)  # noqa: SIM115
        try:
            yield
        finally:
            for stream in (sys.stdout, sys.stderr):
                _flushed(stream)
            sys.stdout, sys.stderr = streams
            for number, before in zip((1, 2), kept, strict=True):
                os.dup2(before, number)
                os.close(before)
            file.seek(0)
            said.append(file.read().decode("utf-8", "replace"))


def _flushed(stream: Any) -> None:
    try:
        stream.flush()
    except (OSError, ValueError):
        return
