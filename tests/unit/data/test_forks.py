"""Passes in copies of the process: every block counts once, whatever becomes of a copy."""

import os
import pickle
import signal
from types import SimpleNamespace

import numpy as np
import pytest

from counterveil.data import passes

PARENT = os.getpid()


def block(number):
    return SimpleNamespace(rows=1, number=number)


def number_and_one(one):
    return (np.array([one.number, 1]),)


def killed_in_a_copy(one):
    if os.getpid() != PARENT:
        os.kill(os.getpid(), signal.SIGKILL)
    return number_and_one(one)


def over(passed, count, monkeypatch):
    monkeypatch.setenv("COUNTERVEIL_CORES", "3")
    (sums,) = passes.side_by_side(passed, block, count, count)
    return sums.tolist()


@pytest.mark.parametrize("count", [1, 4, 37, 5000])
def test_every_block_counts_once(count, monkeypatch):
    assert over(number_and_one, count, monkeypatch) == [count * (count - 1) // 2, count]


def test_a_copy_that_is_killed_leaves_its_blocks_to_this_process(monkeypatch):
    assert over(killed_in_a_copy, 40, monkeypatch) == [780, 40]


def test_so_does_one_that_is_killed_while_it_answers(monkeypatch):
    def half(sums, pipe):
        whole = pickle.dumps(sums)
        pipe.write(whole[: len(whole) // 2])

    monkeypatch.setattr(
        passes,
        "pickle",
        SimpleNamespace(dump=half, **{name: getattr(pickle, name) for name in ("loads", "UnpicklingError")}),
    )
    assert over(number_and_one, 40, monkeypatch) == [780, 40]
