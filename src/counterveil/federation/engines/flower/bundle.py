"""The bundle that Flower wants with every run: a name and nothing to execute."""

from __future__ import annotations

from flwr.cli.build import build_fab_from_files

# The coordinator is its own server app, and sites run what is installed there, so both names are never loaded.
_PROJECT = b"""
[build-system]
requires = ["hatchling"]
build-backend = "hatchling.build"

[project]
name = "counterveil"
version = "1.0.0"
description = "Carries requests and replies; holds no code."
license = "Apache-2.0"
dependencies = []

[tool.flwr.app]
publisher = "counterveil"

[tool.flwr.app.components]
serverapp = "none:none"
clientapp = "none:none"

[tool.flwr.app.config]
"""


def empty_bundle() -> bytes:
    """Return the bundle of an app without code."""
    bundle: bytes = build_fab_from_files({"pyproject.toml": _PROJECT})[0]
    return bundle
