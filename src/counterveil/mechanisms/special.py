"""The special functions of scipy, loaded at their first use: the import alone costs a fifth of a second."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray


def special(function: str, *arguments: Any) -> NDArray[np.float64]:
    """Return scipy.special.<function>(*arguments) as float64."""
    from scipy import special as scipy_special

    return np.asarray(getattr(scipy_special, function)(*arguments), dtype=np.float64)
