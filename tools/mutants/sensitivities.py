"""Faults in how far one person can move what is released."""

from tools.mutants.mutant import Mutant

SENSITIVITIES: tuple[Mutant, ...] = ()
