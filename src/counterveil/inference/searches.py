"""Numerical searches that go on together, so that what they ask for is computed for all of them at once.

A search is a Python generator: it yields what it wants evaluated (a point, a constant), is sent the value,
and returns what it found. `in_step` runs many at the same time and evaluates all their points by one call of
an array function; `remembered` keeps what they found. Each search sees exactly the values that it would see
alone, so that results are the same. One evaluation of a thousand points takes hardly longer than that of one.
Used for half-widths and inflated variances; nothing private enters.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from functools import partial
from typing import TypeVar, cast

# Searches that go on together.
_TOGETHER = 256
# Answers that are remembered.
_MOST_REMEMBERED = 16_384

Request = TypeVar("Request")
Answer = TypeVar("Answer")
Outcome = TypeVar("Outcome")
Key = TypeVar("Key")


def in_step(
    solvers: Sequence[Generator[Request, Answer, Outcome]],
    evaluate: Callable[[list[int], list[Request]], Sequence[Answer]],
) -> list[Outcome]:
    """Return what searches find that go on together: what all of them ask for next is evaluated at once.

    `evaluate` is given the indices of the searches that are not over, and what each of them asks for.
    """
    results: dict[int, Outcome] = {}
    requests: dict[int, Request] = {}

    def go_on(index: int, ask: Callable[[], Request]) -> None:
        try:
            requests[index] = ask()
        except StopIteration as end:
            requests.pop(index, None)
            results[index] = end.value

    for index, solver in enumerate(solvers):
        go_on(index, partial(next, solver))
    while requests:
        indices = list(requests)
        for index, answer in zip(indices, evaluate(indices, list(requests.values())), strict=True):
            go_on(index, partial(solvers[index].send, answer))
    return [results[index] for index in range(len(solvers))]


def remembered(
    memory: dict[Key, Outcome],
    keys: Sequence[Key],
    solve: Callable[[list[Key]], Sequence[Outcome]],
    together: int = _TOGETHER,
) -> list[Outcome]:
    """Return the value of every key from the memory; those that are new are solved together, and kept."""
    # Other threads may empty the memory meanwhile.
    remembered_values = [memory.get(key) for key in keys]
    if None not in remembered_values:
        return cast("list[Outcome]", remembered_values)
    new = list(
        dict.fromkeys(key for key, value in zip(keys, remembered_values, strict=True) if value is None)
    )
    batches = [new[start : start + together] for start in range(0, len(new), together)]
    solved = {key: value for batch in batches for key, value in zip(batch, solve(batch), strict=True)}
    if len(memory) + len(new) > _MOST_REMEMBERED:
        memory.clear()
    memory.update(solved)
    return [
        solved[key] if value is None else value for key, value in zip(keys, remembered_values, strict=True)
    ]
