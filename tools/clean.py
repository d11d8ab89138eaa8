"""What the pages document, tried with only what they say to install: `python -m tools.clean [NAME ...]`.

Every page of README, tutorials and how-to names its extras in a line `pip install '.[...]'`, or none. For each set of
extras an environment is made that holds the package, what it requires, and what these extras bring; the examples of
the pages run in it, and the commands that go with an extra. Prints what fails, and exits with 1 if anything does.

The package and what it requires are installed once, into an environment that the others read as well.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
import urllib.error
import urllib.request
import venv
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path

from tools.check_docs import blocks_of

ROOT = Path(__file__).resolve().parents[1]
PAGES = ("README.md", "docs/tutorials/*.md", "docs/how-to/*.md", "docs/reference/ledger.md")
# What a page says to install: extras in brackets, and the laboratory where a line of a command installs it.
_EXTRAS, _LABORATORY = (
    re.compile(r"pip install '?\.\[([\w,-]+)\]"),
    re.compile(r"^pip install .*\./lab", re.M),
)
# Another project's package that a page says to install, by its name alone.
_OTHERS = re.compile(r"`pip install ([a-z][a-z0-9_-]+)`")
SECONDS = 600
# Extras that need a program beside Python; without it they are left out.
ELSEWHERE = {"spark": "java"}


def wanted(page: str) -> tuple[frozenset[str], bool]:
    """Return the extras that a page says to install, and whether it needs the laboratory."""
    extras = {name for listed in _EXTRAS.findall(page) for name in listed.split(",")}
    return frozenset(extras), bool(_LABORATORY.search(page))


def requirements(extras: frozenset[str], declared: dict[str, list[str]]) -> list[str]:
    """Return what extras bring, those that they name included."""
    found: list[str] = []
    for extra in sorted(extras):
        for text in declared[extra]:
            inner = re.fullmatch(r"counterveil\[(.+)\]", text)
            found += requirements(frozenset(inner[1].split(",")), declared) if inner else [text]
    return found


class Environments:
    """Environments in a folder: one with the package alone, and one for each set of extras on top of it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
        self.extras: dict[str, list[str]] = project["optional-dependencies"]
        self.alone = self._made("alone")
        run(self.alone, "-m", "pip", "install", "--quiet", "--no-compile", str(ROOT))

    def _made(self, name: str) -> Path:
        venv.create(self.folder / name, with_pip=True, symlinks=True)
        return self.folder / name / "bin/python"

    def of(self, extras: frozenset[str], laboratory: bool = False) -> Path:
        """Return the Python of an environment with these extras, or of the package alone."""
        if not extras and not laboratory:
            return self.alone
        python = self._made("-".join([*sorted(extras), *["lab"] * laboratory]))
        packages = next(self.folder.glob("alone/lib/python*/site-packages"))
        own = next(python.parents[1].glob("lib/python*/site-packages"))
        (own / "alone.pth").write_text(f"{packages}\n", encoding="utf-8")
        more = [str(ROOT / "lab")] * laboratory
        needed = requirements(extras, self.extras)
        run(python, "-m", "pip", "install", "--quiet", "--no-compile", *needed, *more)
        return python


class FailureError(Exception):
    """What a command printed that failed."""


def run(python: Path, *words: str, folder: Path | None = None) -> str:
    """Return what a Python prints; raises FailureError with the end of it if it fails."""
    # Nothing of the checkout, nor of the environment that this runs in.
    kept = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "VIRTUAL_ENV")}
    kept |= {"PIP_DISABLE_PIP_VERSION_CHECK": "1", "PATH": f"{python.parent}:{os.environ['PATH']}"}
    done = subprocess.run(
        [python, *words], cwd=folder, capture_output=True, text=True, check=False,
        timeout=SECONDS, env=kept,
    )  # fmt: skip
    if done.returncode:
        raise FailureError((done.stdout + done.stderr).strip()[-1500:])
    return done.stdout


def examples(python: Path, page: Path, folder: Path) -> None:
    """Run the Python examples of a page in a folder."""
    blocks = [block for block in blocks_of(page.read_text(encoding="utf-8")) if block.run]
    source = "\n".join(block.text for block in blocks if block.language == "python")
    if source:
        for package in _OTHERS.findall(page.read_text(encoding="utf-8")):
            # Beside the examples, where no other page finds it.
            run(python, "-m", "pip", "install", "--quiet", "--no-compile", "--target", str(folder), package)
        (folder / "page.py").write_text(source, encoding="utf-8")
        run(python, "page.py", folder=folder)


def doctor(python: Path, folder: Path, extras: frozenset[str]) -> None:
    """Check that `counterveil doctor` finds what the extras bring."""
    facts = json.loads(run(python, "-m", "counterveil", "doctor", "--json", folder=folder))
    brought = {name: found for name, found in facts["optional"].items() if extras & set(found["extras"])}
    missing = [name for name, found in brought.items() if found["version"] is None]
    if missing:
        raise FailureError(f"doctor misses {', '.join(missing)}")


def console(python: Path, folder: Path, _: frozenset[str]) -> None:
    """Start the console on an empty folder, and ask it for its first page."""
    command = [python, "-m", "counterveil", "console", str(folder)]
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=kept
    ) as server:
        try:
            told = ""
            for line in server.stdout or ():
                told += line
                link = re.search(r"http://\S+", line)
                if link:
                    address = "/".join(link[0].split("/")[:3]) + "/"
                    _first_page(address)
                    return
            raise FailureError(told[-1500:])
        finally:
            server.terminate()


def _first_page(address: str) -> None:
    """Ask for GET /; without a link it answers with a page that says so, whatever its status."""
    for _ in range(50):
        try:
            with urllib.request.urlopen(address, timeout=10) as page:
                page.read()
            return
        except urllib.error.HTTPError as fault:
            if fault.code >= 500:
                raise FailureError(f"GET {address}: {fault.code}") from None
            return
        except OSError:
            time.sleep(0.2)
    raise FailureError(f"nothing answers at {address}")


def federation(python: Path, folder: Path, _: frozenset[str]) -> None:
    """Run four sites and a coordinator."""
    run(python, "-m", "counterveil", "federation", "demo", folder=folder)


def demo(python: Path, folder: Path, _: frozenset[str]) -> None:
    """Run the demo twice: the second time the stored answer is shown."""
    first, again = (run(python, "-m", "counterveil", "demo", folder=folder) for _ in range(2))
    if first != again:
        raise FailureError("the second demo prints something else")


def laboratory_commands(python: Path, folder: Path, _: frozenset[str]) -> None:
    """List what can be audited and reproduced."""
    for words in (["audit", "--list"], ["reproduce", "--list"]):
        run(python, "-m", "counterveil", *words, folder=folder)


def from_r(python: Path, folder: Path, _: frozenset[str]) -> None:
    """Install the R package, and estimate an effect from R, with the Python of this environment."""
    if shutil.which("Rscript") is None:
        print("     R is not installed: left out", flush=True)
        return
    library = folder / "library"
    library.mkdir()
    made = ["R", "CMD", "INSTALL", "--no-docs", f"--library={library}", str(ROOT / "r")]
    done = subprocess.run(made, capture_output=True, text=True, check=False, timeout=SECONDS)
    code = (
        f'.libPaths(c("{library}", .libPaths())); library(counterveil); '
        "trial <- data.frame(t = rep(0:1, 50), y = rep(c(0, 1, 1, 1), 25)); "
        "study <- cv_study(y ~ t, ranges = list(y = c(0, 1)), assignment = 'trial'); "
        'print(cv_ate(trial, study, protects = "outcome", epsilon = 1))'
    )
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    if done.returncode == 0:
        done = subprocess.run(
            ["Rscript", "-e", code], capture_output=True, text=True, check=False, timeout=SECONDS,
            env=kept | {"RETICULATE_PYTHON": str(python)},
        )  # fmt: skip
    if done.returncode:
        raise FailureError((done.stdout + done.stderr)[-1500:])


def fresh_clone(_: Path, folder: Path, __: frozenset[str]) -> None:
    """Run `make demo` in a fresh clone of what is committed."""
    clone = ["git", "clone", "--quiet", "--depth", "1", f"file://{ROOT}", str(folder / "clone")]
    kept = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "MAKEFLAGS")}
    for command, place in ((clone, folder), (["make", "demo"], folder / "clone")):
        done = subprocess.run(
            command, cwd=place, capture_output=True, text=True, check=False, timeout=SECONDS, env=kept
        )
        if done.returncode:
            raise FailureError((done.stdout + done.stderr)[-1500:])


Check = Callable[[Path, Path, frozenset[str]], None]
# What is tried beside the examples of pages, by extra; "" stands for none, and "lab" for the laboratory.
COMMANDS: dict[str, list[Check]] = {
    "": [from_r, fresh_clone],
    "console": [console],
    "demo": [demo],
    "federation": [federation],
    "lab": [laboratory_commands],
}


def sets() -> dict[tuple[frozenset[str], bool], list[Path]]:
    """Return the pages by what they say to install; an extra that no page names has a set without pages."""
    found: dict[tuple[frozenset[str], bool], list[Path]] = defaultdict(list)
    lacking = {extra for extra, tool in ELSEWHERE.items() if not shutil.which(tool)}
    for page in sorted(path for pattern in PAGES for path in ROOT.glob(pattern)):
        extras, laboratory = wanted(page.read_text(encoding="utf-8"))
        found[extras - lacking, laboratory].append(page)
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    for extra, needed in project["optional-dependencies"].items():
        builds = any(text.startswith("counterveil[") for text in needed)
        if not builds and extra not in {"bench", *lacking}:
            found.setdefault((frozenset([extra]), False), [])
    return dict(found)


def main(names: list[str]) -> int:
    """Try every set of extras, or those that hold one of the names; return 1 if anything fails."""
    failed = 0
    with tempfile.TemporaryDirectory(prefix="counterveil-clean-") as place:
        environments = Environments(Path(place))
        for (extras, laboratory), pages in sets().items():
            labels = {*extras, *["lab"] * laboratory} or {""}
            lacking = [
                tool for extra, tool in ELSEWHERE.items() if extra in extras and not shutil.which(tool)
            ]
            if (names and not labels & set(names)) or lacking:
                continue
            title = f"pip install .{sorted(extras) if extras else ''}{' ./lab' * laboratory}"
            failed += sum(told(title, environments, extras, laboratory, pages, labels))
    print(f"{failed} of what the pages document fails" if failed else "all that the pages document runs")
    return int(failed > 0)


def told(
    title: str,
    environments: Environments,
    extras: frozenset[str],
    laboratory: bool,
    pages: list[Path],
    labels: set[str],
) -> Iterator[bool]:
    """Yield whether each thing to try with some extras fails, and print it."""
    print(title, flush=True)
    try:
        python = environments.of(extras, laboratory)
    except FailureError as fault:
        print(f"  FAILS: the installation\n{fault}", flush=True)
        yield True
        return
    tried: list[tuple[str, Callable[[Path], None]]] = [
        ("counterveil doctor", lambda folder: doctor(python, folder, extras))
    ]
    tried += [
        (check.__name__, lambda folder, check=check: check(python, folder, extras))  # type: ignore[misc]
        for label in sorted(labels)
        for check in COMMANDS.get(label, [])
    ]
    tried += [
        (page.relative_to(ROOT).as_posix(), lambda folder, page=page: examples(python, page, folder))  # type: ignore[misc]
        for page in pages
    ]
    for name, attempt in tried:
        with tempfile.TemporaryDirectory() as folder:
            begin = time.monotonic()
            try:
                attempt(Path(folder))
            except (FailureError, subprocess.TimeoutExpired) as fault:
                print(f"  FAILS: {name}\n{fault}", flush=True)
                yield True
            else:
                print(f"  {name}: {time.monotonic() - begin:.0f} s", flush=True)
                yield False


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
