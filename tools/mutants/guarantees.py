"""Faults in x"""

from tools.mutants.mutant import Mutant

GUARANTEES: tuple[Mutant, ...] = ()
