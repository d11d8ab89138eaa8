"""`python -m counterveil`: the same as the `counterveil` command."""

from counterveil.cli import main

main()
