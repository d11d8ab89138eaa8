"""The covariance of vector noise that costs predictions least, for a public set of moves.

One row may move a released vector by its move m_i, times a unit. Noise of covariance S hides that as well as noise
of variance one hides a move of length one, if m_i' S^-1 m_i <= 1 for every row. Among such S this is the one with
the least mean squared error tr(S L) of predictions, L being the matrix of their loss.

Lineage: the matrix mechanism (Li, Miklau, Hay, McGregor and Rastogi 2015); multiplicative steps as in optimal design
(Silvey, Titterington and Torsney 1978).
"""

from __future__ import annotations

import numpy as np

from counterveil.numerics.arrays import Floats

# Eigenvalues below this part of the largest are raised to it.
_LEAST = 1e-10
# Moves that are this little above the level of the optimum are as good as it.
_NEAR = 1.03


def matrix_power(matrix: Floats, exponent: float) -> Floats:
    """Return a power of a symmetric matrix that is not negative, small eigenvalues raised a little."""
    values, vectors = np.linalg.eigh((matrix + matrix.T) / 2)
    raised = np.maximum(values, max(_LEAST * float(values[-1]), np.finfo(np.float64).tiny))
    return np.asarray((vectors * raised**exponent) @ vectors.T)


def noise_shape(moves: Floats, loss: Floats, rounds: int) -> Floats:
    """Return S up to a factor, (k, k), for moves (r, k) and the loss (k, k); more rounds come nearer to the best.

    Any S is private once it is scaled by the largest m_i' S^-1 m_i.
    """
    root = matrix_power(loss, 0.5)
    inverse = matrix_power(loss, -0.5)
    w = moves @ root
    weights = np.full(len(w), 1.0 / len(w))
    for _ in range(rounds):
        spread = (w * weights[:, None]).T @ w
        size = np.einsum("ij,ij->i", w @ matrix_power(spread, -0.5), w)
        # The mean of the sizes, which all are at the optimum where their weight is positive.
        level = float(weights @ size)
        if not level > 0 or float(size.max()) <= _NEAR * level:
            break
        weights = weights * size / level
        weights = weights / weights.sum()
    spread = (w * weights[:, None]).T @ w
    return np.asarray(inverse @ matrix_power(spread, 0.5) @ inverse)


def largest_move(moves: Floats, whitener: Floats) -> float:
    """Return the largest length of a move after whitening, moves (r, k), whitener (k, k)."""
    white = moves @ whitener.T
    return float(np.sqrt(np.einsum("ij,ij->i", white, white).max(initial=0.0)))
