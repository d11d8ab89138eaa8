"""One thread for linear algebra.

Our products are tall and thin, and read in blocks that stay in a core's cache. Threads for them cost more than they
save, and many times more when another process holds the other cores.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from functools import cache
from importlib import import_module
from typing import Any


@cache
def _libraries() -> Any:
    # scipy brings a library of its own, which must be loaded to be found.
    import_module("scipy.linalg")
    return import_module("threadpoolctl").ThreadpoolController()


def one_thread() -> AbstractContextManager[object]:
    """Return a context in which numpy and scipy multiply and solve on one thread."""
    found: AbstractContextManager[object] = _libraries().limit(limits=1, user_api="blas")
    return found
