"""How to ask a question again: the study as a file, and the calls that ask the same of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

ANEW = (
    "The same question of the same data. Noise is drawn anew and the budget is spent again, unless a ledger holds the "
    "answer under the same request id: then it is returned, at no cost. There is no seed to give away."
)
SIMULATED = (
    "The noise of this result came from a seed, which is left out: what is asked here draws true noise."
)
FREE = "Pooling reads no data and spends nothing: the same files give the same answer."


class Declared(Protocol):
    """A study."""

    def to_toml(self) -> str:
        """Return the text of a study file."""
        ...


@dataclass(frozen=True, slots=True)
class Repeat:
    """The study, a call in Python, a command, and what repeating means; empty where there is none of it."""

    study: Declared | None
    python: str
    command: str = ""
    remark: str = ANEW

    def to_dict(self) -> dict[str, str]:
        """Return the texts by name, that of the study as a file."""
        # Written only here: most answers are never made a report of.
        study = "" if self.study is None else self.study.to_toml()
        return {"study": study, "python": self.python, "command": self.command, "remark": self.remark}
