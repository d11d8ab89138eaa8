"""Bases as they are written into a model and read back."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from counterveil.kernels.bases import Basis
from counterveil.kernels.fourier_features import FourierFeatures


def basis_from_dict(facts: Mapping[str, Any]) -> Basis | FourierFeatures:
    """Return the basis that `to_dict` of its class wrote."""
    return FourierFeatures.from_dict(facts) if facts["kind"] == "fourier" else Basis.from_dict(facts)
