"""`python -m counterveil.cli`: the same as the `counterveil` command."""

from counterveil.cli.app import main

main()
