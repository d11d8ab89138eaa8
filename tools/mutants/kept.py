"""The kept list of faults, all together."""

from __future__ import annotations

from tools.mutants.comparisons import COMPARISONS
from tools.mutants.guarantees import GUARANTEES
from tools.mutants.mutant import Mutant
from tools.mutants.records import RECORDS
from tools.mutants.sensitivities import SENSITIVITIES
from tools.mutants.several import SEVERAL

MUTANTS: tuple[Mutant, ...] = (*COMPARISONS, *RECORDS, *SEVERAL, *SENSITIVITIES, *GUARANTEES)
