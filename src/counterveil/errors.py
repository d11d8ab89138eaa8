"""Every exception of the package: a code, what was expected, what was given, and how to mend it.

Texts are made of parameters and column names only. Once private rows are attached, no message
may depend on them; the checks that look at rows run while a table is being attached, before
anything can be spent, and speak to the holder of the data.
"""

from __future__ import annotations


class CounterveilError(Exception):
    """Base of every refusal; `exit_code` is what the command line returns for it."""

    exit_code = 1

    def __init__(self, code: str, problem: str, *, expected: str, got: str, fix: str) -> None:
        self.code = code
        self.problem = problem
        self.expected = expected
        self.got = got
        self.fix = fix
        super().__init__(self.text())

    @property
    def page(self) -> str:
        """Path of the page that explains this code, inside the package; `counterveil explain` shows it."""
        return f"error_pages/{self.code}.md"

    def text(self) -> str:
        """Return the message a person sees."""
        return (
            f"[{self.code}] {self.problem}\n"
            f"  expected: {self.expected}\n"
            f"  got:      {self.got}\n"
            f"  to fix:   {self.fix}\n"
            f"  more:     counterveil explain {self.code}"
        )

    def to_dict(self) -> dict[str, str]:
        """Return the same facts for programs (`--json`)."""
        return {
            "code": self.code,
            "problem": self.problem,
            "expected": self.expected,
            "got": self.got,
            "fix": self.fix,
            "page": self.page,
        }

    def __reduce__(self) -> tuple[object, ...]:
        # Keyword-only arguments do not survive the default pickling, which worker processes rely on.
        return (_rebuild, (type(self), self.code, self.problem, self.expected, self.got, self.fix))


def _rebuild(
    kind: type[CounterveilError], code: str, problem: str, expected: str, got: str, fix: str
) -> CounterveilError:
    return kind(code, problem, expected=expected, got=got, fix=fix)


class ParameterError(CounterveilError):
    """An argument is out of its range; depends on arguments only. Codes CV-P..."""

    exit_code = 2


class StudyError(CounterveilError):
    """The declaration of roles, bounds or categories is wrong. Codes CV-S..."""

    exit_code = 3


class DataError(CounterveilError):
    """The data do not fit the study; raised only while a table is being attached. Codes CV-D..."""

    exit_code = 3


class BudgetError(CounterveilError):
    """The request costs more than is left; nothing was spent. Codes CV-B..."""

    exit_code = 4


class LedgerError(CounterveilError):
    """The ledger is missing, damaged, or refuses the request. Codes CV-L..."""

    exit_code = 5


class ClaimError(CounterveilError):
    """A result without a finite-sample guarantee, or a request id without an identity. Codes CV-C..."""

    exit_code = 6


class MissingExtraError(CounterveilError):
    """An optional part is not installed. Codes CV-E..."""

    exit_code = 7


class FederationError(CounterveilError):
    """Several sites could not be asked, or one of them refused; a code and no private fact. Codes CV-F..."""

    exit_code = 8


class InternalError(CounterveilError):
    """A fault of ours, never the user's: a check inside the package failed. Codes CV-X..."""

    exit_code = 70
