"""The command line: one verb a file."""

from counterveil.cli.app import main

__all__ = ["main"]
