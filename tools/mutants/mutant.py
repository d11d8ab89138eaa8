"""One kept fault: a function of the package, a text inside it, and what stands in its place."""

from __future__ import annotations

from dataclasses import dataclass

ESTIMATES = "estimates"
PRIVACY = "privacy"
HALVES = (ESTIMATES, PRIVACY)


@dataclass(frozen=True, slots=True)
class Mutant:
    """A fault and the tests that are expected to notice it.

    `function` ends in the name of a function or class. Names before it (of a class or a module) are read only where
    the text occurs in several functions of that name, so that moving a file does not lose the fault. `tests` are
    run first; the tests of the folders in `wider` only where these pass.
    """

    half: str
    function: str
    old: str
    new: str
    tests: tuple[str, ...]
    wider: tuple[str, ...] = ()
    # Tells apart two faults in one function.
    about: str = ""

    @property
    def name(self) -> str:
        """What `--only` and the table call it."""
        return f"{self.function} [{self.about or self.old.strip()}]"


def fault(half: str, function: str, old: str, new: str, *tests: str, about: str = "") -> Mutant:
    """Return a fault whose tests are named by what follows `tests/`; the contracts are the wider ones."""
    wider = ("tests/contract",) if half == ESTIMATES else ()
    return Mutant(half, function, old, new, tuple(f"tests/{one}" for one in tests), wider, about)
