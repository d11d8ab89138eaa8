"""Compile the loops of matching and weighting into numba's cache, so that not every test process does it for itself.

`python -m tools.compile` takes most of a minute in a new checkout and two seconds afterwards.
"""

from __future__ import annotations

import numpy as np

import counterveil as cv

_ROWS = 200


def main() -> None:
    """Ask one question by each method that has compiled loops."""
    rng = np.random.default_rng(0)
    x = rng.random(_ROWS)
    treated = (rng.random(_ROWS) < 0.3 + 0.4 * x).astype(int)
    people = {"x": x, "t": treated, "y": np.clip(x / 2 + 0.1 * treated, 0, 1)}
    study = cv.Study("t", "y", (0, 1), {"x": cv.Range(0, 1)}, treated=1, control=0)
    for method in ("matching", "weighting"):
        cv.ate(people, study, protects="outcome", method=method, epsilon=1, noise=cv.SeededNoise(0))


if __name__ == "__main__":
    main()
