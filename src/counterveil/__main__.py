"""`python -m counterveil`: the same as the `counterveil` command."""

from counterveil.cli import main

# Worker processes import this file under another name.
if __name__ == "__main__":
    main()
