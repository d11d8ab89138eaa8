"""What a release needs: `python -m tools.release wheel`, `constraints`, `sbom`, or `version TAG`.

wheel        builds sdists and wheels of the package and its laboratory in dist/, compares them with the repository,
             and tries the wheels in an empty environment: `counterveil -h`, `doctor`, the demo and `audit --list`
constraints  writes constraints.txt and constraints-federation.txt: the versions that pip chooses today
sbom         writes build/sbom.cdx.json: what an installation of the core consists of, as CycloneDX
version TAG  fails unless both pyproject.toml, CITATION.cff and the tag name the same version

It needs no package but pip.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import tomllib
import venv
import zipfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
LABORATORY = ROOT / "lab"
DIST, WORK = ROOT / "dist", ROOT / "build/release"
SBOM = ROOT / "build/sbom.cdx.json"
CONSTRAINTS = ROOT / "constraints.txt"
FEDERATION_CONSTRAINTS = ROOT / "constraints-federation.txt"
EXTRAS = "test,docs,bench,browser"
FEDERATION_EXTRAS = "federation-test"
LABORATORY_EXTRAS = "interpret"
# Tracked files that belong to the repository and to no sdist.
LEFT_OUT = (".ci/", ".github/", ".dockerignore", ".gitignore", ".pre-commit-config.yaml")
# Files that the build adds.
_ADDED = re.compile(r"\.(egg|dist)-info/|/PKG-INFO$|/setup\.cfg$|\.abi3\.so$")
_HEAD = "# Made by `make constraints` with Python {python}: the versions that pip chose.\n"


def run(*command: str | Path, **kwargs: Any) -> str:
    """Return what a command prints; it is shown first, and fails loudly."""
    print(
        "$",
        *(os.path.relpath(word, ROOT) if isinstance(word, Path) else word for word in command),
        flush=True,
    )
    clean = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(
        [str(word) for word in command], env=clean, check=False, stdout=subprocess.PIPE, text=True, **kwargs
    )
    if done.returncode:
        sys.exit(f"{done.stdout}\nfailed with exit code {done.returncode}")
    return done.stdout


def environment(name: str, *packages: str | Path) -> Path:
    """Return the Python of a new environment with these packages."""
    folder = WORK / name
    shutil.rmtree(folder, ignore_errors=True)
    venv.create(folder, with_pip=True)
    python = folder / "bin/python"
    if packages:
        install(python, *packages)
    return python


def install(python: Path, *packages: str | Path) -> None:
    """Install packages into an environment."""
    run(python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *packages)


def built(python: Path, project: Path) -> Path:
    """Return the wheel of a project, built from a new sdist; both have the files that the repository tracks."""
    out = WORK / "dist"
    shutil.rmtree(out, ignore_errors=True)
    run(python, "-m", "build", "--outdir", out, project)
    (sdist,), (made,) = out.glob("*.tar.gz"), out.glob("*.whl")
    tracked = run("git", "-C", project, "ls-files").splitlines()
    with tarfile.open(sdist) as archive, zipfile.ZipFile(made) as package:
        files = [member.name for member in archive.getmembers() if member.isfile()]
        found = differences(files, package.namelist(), tracked)
    if found:
        sys.exit("\n".join(found))
    DIST.mkdir(exist_ok=True)
    shutil.move(sdist, DIST)
    return Path(shutil.move(made, DIST))


def differences(sdist: Iterable[str], wheel: Iterable[str], tracked: Iterable[str]) -> list[str]:
    """Return how the packed files differ from the tracked ones: what is missing, and what does not belong."""
    kept = {name for name in tracked if not name.startswith(LEFT_OUT)}
    package = {name for name in kept if name.startswith("src/")}
    in_sdist = {name.split("/", 1)[-1] for name in sdist if not _ADDED.search(name)}
    in_wheel = {f"src/{name}" for name in wheel if not _ADDED.search(name)}
    found = [f"sdist lacks {name}" for name in kept - in_sdist] + [
        f"wheel lacks {name}" for name in package - in_wheel
    ]
    found += [f"sdist has {name}" for name in in_sdist - kept] + [
        f"wheel has {name}" for name in in_wheel - package
    ]
    return sorted(found)


def wheel() -> int:
    """Build sdists and wheels, and try the wheels in an empty environment."""
    shutil.rmtree(DIST, ignore_errors=True)
    builder = environment("build", "build")
    made, laboratory = built(builder, ROOT), built(builder, LABORATORY)
    python = environment("empty", made)
    program = python.with_name("counterveil")
    with tempfile.TemporaryDirectory() as folder:
        for arguments in (["-h"], ["doctor"]):
            print(run(program, *arguments, cwd=folder))
        install(python, f"{made}[demo]")
        print(run(program, "demo", cwd=folder))
        install(python, laboratory)
        print(run(program, "audit", "--list", cwd=folder))
    print(f"work in an empty environment: {made.name}, {laboratory.name}")
    return 0


def pins(report: dict[str, Any]) -> list[str]:
    """Return the lines `name==version` of pip's report on an installation, without our own packages."""
    found = [item["metadata"] for item in report["install"]]
    named = sorted((_name(facts["name"]), facts["version"]) for facts in found)
    return [f"{name}=={number}" for name, number in named if name not in ("counterveil", "counterveil-lab")]


def constraints() -> int:
    """Write the versions that pip chooses for every extra; those of a federation apart, as it is installed apart."""
    resolved(CONSTRAINTS, f"{ROOT}[{EXTRAS}]", f"{LABORATORY}[{LABORATORY_EXTRAS}]")
    resolved(FEDERATION_CONSTRAINTS, f"{ROOT}[{FEDERATION_EXTRAS}]")
    return 0


def resolved(target: Path, *wanted: str) -> None:
    """Write the versions that pip chooses for some packages together."""
    python = environment("resolve")
    report = WORK / "resolved.json"
    run(
        *(python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--dry-run"),
        *("--ignore-installed", "--report", report, *wanted),
    )
    lines = pins(json.loads(report.read_text(encoding="utf-8")))
    target.write_text(
        _HEAD.format(python=f"{sys.version_info.major}.{sys.version_info.minor}") + "\n".join(lines) + "\n",
        encoding="utf-8",
    )
    print(f"{target.name}: {len(lines)} packages")


def bill(inspected: dict[str, Any]) -> dict[str, Any]:
    """Return a CycloneDX bill of materials from pip's description of an environment."""
    found = {_name(item["metadata"]["name"]): item["metadata"] for item in inspected["installed"]}
    found.pop("pip", None)
    found.pop("setuptools", None)
    own = found.pop("counterveil")
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {"component": _component(own) | {"type": "application"}},
        "components": [_component(facts) for _, facts in sorted(found.items())],
        "dependencies": [
            {"ref": _purl(facts), "dependsOn": [_purl(found[n]) for n in _needs(facts) if n in found]}
            for facts in (own, *(facts for _, facts in sorted(found.items())))
        ],
    }


def _name(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def _purl(facts: dict[str, Any]) -> str:
    return f"pkg:pypi/{_name(facts['name'])}@{facts['version']}"


def _needs(facts: dict[str, Any]) -> list[str]:
    """Return the packages that one needs without any extra."""
    needed = [text for text in facts.get("requires_dist", []) if "extra ==" not in text]
    return sorted({_name(re.match(r"[\w.\-]+", text).group()) for text in needed})  # type: ignore[union-attr]


def _component(facts: dict[str, Any]) -> dict[str, Any]:
    licence = facts.get("license_expression")
    named = [{"expression": licence}] if licence else []
    classified = [c.split(" :: ")[-1] for c in facts.get("classifier", []) if c.startswith("License :: ")]
    # Some packages put the whole text of their licence here.
    classified = classified or [text for text in [facts.get("license", "")] if 0 < len(text) < 60]
    return {
        "type": "library",
        "bom-ref": _purl(facts),
        "name": facts["name"],
        "version": facts["version"],
        "purl": _purl(facts),
        "licenses": named or [{"license": {"name": name}} for name in classified],
    }


def sbom() -> int:
    """Write the bill of materials of the core, as it is installed today."""
    python = environment("core", ROOT)
    inspected = json.loads(run(python, "-m", "pip", "inspect", "--local"))
    SBOM.write_text(json.dumps(bill(inspected), indent=2) + "\n", encoding="utf-8")
    print(f"{SBOM.relative_to(ROOT)}: {len(bill(inspected)['components'])} packages beside counterveil")
    return 0


def versions(root: Path = ROOT) -> set[str]:
    """Return the versions that the files of the repository name."""
    projects = [
        tomllib.loads((root / folder / "pyproject.toml").read_text(encoding="utf-8"))["project"]
        for folder in (".", "lab")
    ]
    # The laboratory works with the package of its own version.
    needed = [
        text.partition("==")[2] for text in projects[1]["dependencies"] if text.startswith("counterveil[")
    ]
    cited = re.findall(r"^version: (\S+)$", (root / "CITATION.cff").read_text(encoding="utf-8"), re.MULTILINE)
    return {*(project["version"] for project in projects), *needed, *cited}


def version(tag: str) -> int:
    """Return 0 if the tag and the files name one version."""
    if versions() != {tag.removeprefix("v")}:
        sys.exit(f"the tag is {tag}, the files name {', '.join(sorted(versions()))}")
    return 0


COMMANDS = {"wheel": wheel, "constraints": constraints, "sbom": sbom}

if __name__ == "__main__":
    if len(sys.argv) == 3 and sys.argv[1] == "version":
        sys.exit(version(sys.argv[2]))
    if len(sys.argv) != 2 or sys.argv[1] not in COMMANDS:
        sys.exit(__doc__)
    sys.exit(COMMANDS[sys.argv[1]]())
