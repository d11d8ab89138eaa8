"""The auditor's refusals, and the checks that several testers share."""

from __future__ import annotations

import numpy as np

from counterveil.audit.protocols import FloatArray, Mechanism, Pair
from counterveil.errors import ParameterError


def needs_density(mechanism: Mechanism) -> ParameterError:
    """Return the refusal for a white-box test of a mechanism that does not know its law."""
    return ParameterError(
        "CV-A002",
        "this test needs the law of the mechanism",
        expected="a mechanism with a method log_density(dataset, outputs)",
        got=f"{type(mechanism).__name__} without log_density",
        fix="add log_density, or audit with ThresholdTester(), which needs samples only",
    )


def out_of_range(name: str, value: object, expected: str, fix: str) -> ParameterError:
    """Return the refusal for a setting of the auditor that makes no sense."""
    return ParameterError(
        "CV-A001",
        f"{name} is out of its range",
        expected=expected,
        got=f"{name}={value!r}",
        fix=fix,
    )


def nothing_to_audit(got: str) -> ParameterError:
    """Return the refusal for an audit without pairs or without testers."""
    return ParameterError(
        "CV-A004",
        "there is nothing to audit",
        expected="at least one pair of neighbours and one tester",
        got=got,
        fix="pass pairs of neighbouring data sets and testers, e.g. [ThresholdTester()]",
    )


def draw(
    mechanism: Mechanism, pair: Pair, count: int, rng: np.random.Generator
) -> tuple[FloatArray, FloatArray]:
    """Return `count` releases from each data set of the pair, as matrices of shape (count, d)."""
    first, second = (_draw_one(mechanism, dataset, count, rng) for dataset in pair)
    if first.shape != second.shape:
        raise _malformed(f"shapes {first.shape} and {second.shape} on two neighbours")
    return first, second


def _draw_one(mechanism: Mechanism, dataset: object, count: int, rng: np.random.Generator) -> FloatArray:
    outputs = np.asarray(mechanism.sample(dataset, count, rng), dtype=np.float64)
    if outputs.ndim not in (1, 2) or outputs.shape[0] != count:
        raise _malformed(f"shape {outputs.shape} for count={count}")
    if not np.isfinite(outputs).all():
        raise _malformed("an output that is infinite or not a number")
    return outputs.reshape(count, -1)


def _malformed(got: str) -> ParameterError:
    return ParameterError(
        "CV-A003",
        "the mechanism's outputs cannot be audited",
        expected="finite outputs of shape (count,) or (count, d), the same on both neighbours",
        got=got,
        fix="let sample(dataset, count, rng) return one finite number or vector per release",
    )
