"""The process's global generators, for code of others that draws from them.

Nothing of ours draws from them. A learner that a user brings may: what one piece of data makes it draw would then
reach the next piece through the generator's state. Starting every piece from one fixed state cuts that way.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

_FIXED = 0


@contextmanager
def fixed_ambient_generators() -> Iterator[None]:
    """Run a block with the global generators in one fixed state, and put them back as they were afterwards."""
    plain, vectors = random.getstate(), np.random.get_state()
    random.seed(_FIXED)
    np.random.seed(_FIXED)
    try:
        yield
    finally:
        random.setstate(plain)
        np.random.set_state(vectors)
