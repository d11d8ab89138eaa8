"""The process's global generators, for code of others that draws from them.

Nothing of ours draws from them. A learner that a user brings may: what one piece of data makes it draw would then
reach the next piece through the generator's state. Starting every piece from one fixed state cuts that way.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import numpy as np

_FIXED = 0


@contextmanager
def fixed_ambient_generators() -> Iterator[Callable[[], None]]:
    """Run a block with the global generators in one fixed state, and put them back as they were afterwards.

    The block is given a function that puts them into that fixed state again.
    """
    plain, vectors = random.getstate(), np.random.get_state()
    _fix()
    try:
        yield _fix
    finally:
        random.setstate(plain)
        np.random.set_state(vectors)


def _fix() -> None:
    random.seed(_FIXED)
    np.random.seed(_FIXED)
