"""What several sites need beyond the core."""

from __future__ import annotations

from counterveil.errors import MissingExtraError


def not_installed(package: str) -> MissingExtraError:
    """Return the refusal where a package of the extra `federation` is not installed."""
    return MissingExtraError(
        "CV-E060",
        "asking several sites needs an extra",
        expected=f"the package {package}",
        got="it is not installed",
        fix="pip install 'counterveil[federation]'",
    )
