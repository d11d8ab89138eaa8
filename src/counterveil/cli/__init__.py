"""The command line."""

from counterveil.cli.app import main

__all__ = ["main"]
