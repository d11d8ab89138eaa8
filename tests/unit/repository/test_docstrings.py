"""Docstrings of public names: what numpydoc asks of them, what the package asks beside it, and their examples."""

import doctest
import importlib
from dataclasses import dataclass
from pathlib import Path

import pytest

from counterveil.errors import MissingExtraError

ROOT = Path(__file__).resolve().parents[3]
WITH_EXAMPLES = sorted(
    path.relative_to(source).as_posix()
    for source in (ROOT / "src", ROOT / "lab/src")
    for path in source.rglob("*.py")
    if ">>> " in path.read_text(encoding="utf-8")
)


@pytest.mark.parametrize("path", WITH_EXAMPLES)
def test_the_examples_of_a_module_print_what_they_show(path, tmp_path, monkeypatch):
    monkeypatch.setenv("MPLBACKEND", "Agg")
    name = path.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
    try:
        module = importlib.import_module(name)
    except ImportError as missing:
        pytest.skip(f"{missing.name} is not installed")
    runner = doctest.DebugRunner(optionflags=doctest.NORMALIZE_WHITESPACE)
    for example in doctest.DocTestFinder(exclude_empty=True).find(module, name):
        monkeypatch.chdir(tmp_path)
        try:
            runner.run(example)
        except doctest.DocTestFailure as failure:
            line = example.lineno + failure.example.lineno + 1
            pytest.fail(
                f"{path}:{line} ({example.name}): {failure.example.source}"
                f"expected:\n{failure.example.want}got:\n{failure.got}"
            )
        except doctest.UnexpectedException as failure:
            error = failure.exc_info[1]
            if isinstance(error, ImportError | MissingExtraError):
                pytest.skip(f"{example.name}: {error}")
            raise error from None


@pytest.fixture(scope="module")
def check():
    pytest.importorskip("numpydoc", reason="numpydoc is not installed: pip install 'counterveil[test]'")
    from tools import check_docstrings

    return check_docstrings


def test_public_names_are_documented(check, capsys):
    assert check.main([]) == 0, capsys.readouterr().out


def whole(level, *units, **others):
    """Return the half width.

    Parameters
    ----------
    level : float
        Confidence level, in (0, 1).
    *units : str
        Privacy units.
    **others : object
        Passed on to `cv.ate`.

    Returns
    -------
    float
        In units of the outcome.
    """
    return level, units, others


def lacking(level, other):
    """returns the half width

    Parameters
    ----------
    level
    gone : float
        A level, as for `cv.ate`.

    Examples
    --------
    See [the page](page.md) and `cv.nothing`; *never closed.
    """
    return level, other


@dataclass(frozen=True)
class Described:
    """A share.

    Attributes
    ----------
    share : float
        In (0, 1).
    kept : int, optional
        Whole number; see `Described.doubled`.
    """

    share: float
    kept: int = 0

    def doubled(self):
        return 2 * self.share


@dataclass(frozen=True)
class Undescribed:
    """A share.

    Attributes
    ----------
    shares : float
        In (0, 1).
    """

    share: float


@dataclass(frozen=True)
class Silent:
    share: float


def codes(check, thing):
    return {code for code, _ in check.problems(thing)}


def test_whole_docstrings_pass(check):
    assert check.problems(whole) == []
    assert check.problems(Described) == []


def test_what_a_docstring_lacks_is_named(check):
    assert codes(check, lacking) >= {
        "SS02",
        "SS03",
        "PR01",
        "PR02",
        "PR04",
        "RT01",
        "TX02",
        "TX04",
        "TX05",
        "TX06",
    }
    assert codes(check, Undescribed) == {"AT01", "AT02"}
    assert codes(check, Silent) == codes(check, Described.doubled) == {"GL08"}


def test_a_problem_is_reported_with_its_name_and_its_place(check):
    lines = check.report({"cv.whole": whole, "cv.silent": Silent})
    assert [line.partition(": ")[2] for line in lines] == ["cv.silent: GL08 there is no docstring"]
    assert lines[0].startswith("tests/unit/repository/test_docstrings.py:")
