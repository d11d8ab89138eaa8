"""Checks that no file names a path of one machine or the host of a package index."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

# Written in pieces, so that this file does not contain what it looks for.
_FOLDERS = ("home/", "root/", "work/", "Users/", "tmp/w/", "mnt/")
_HOSTS = (
    "pypi" + r"\.org",
    "python" + r"hosted\.org",
    "ana" + r"conda\.org",
    "index" + "-url",
    "PIP_" + "INDEX_URL",
    "trusted" + "-host",
)
# A slash after a letter, a dot, a tilde or a closing bracket belongs to a relative path or to an address.
PATHS = re.compile(r"(?<![\w.~\-}*)])/(?:" + "|".join(_FOLDERS) + ")")
HOSTS = re.compile("|".join(_HOSTS), re.IGNORECASE)
_TEXT_BYTES = 2_000_000


def files_of(root: Path) -> list[Path]:
    """Return the files that are tracked or would be, or all files where there is no repository."""
    listing = subprocess.run(
        ["git", "-C", str(root), "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        capture_output=True,
        check=False,
    )
    if listing.returncode == 0:
        names = [name for name in listing.stdout.decode().split("\0") if name]
        return [root / name for name in sorted(set(names)) if (root / name).is_file()]
    return sorted(path for path in root.rglob("*") if path.is_file())


def problems(root: Path) -> list[str]:
    """Return one line for each place where a file under `root` depends on one machine."""
    found: list[str] = []
    for path in files_of(root):
        if path.stat().st_size > _TEXT_BYTES:
            continue
        try:
            text = path.read_text(encoding="utf-8")
        except UnicodeDecodeError:
            continue
        for number, line in enumerate(text.splitlines(), 1):
            for kind, pattern in (("path of one machine", PATHS), ("host of a package index", HOSTS)):
                match = pattern.search(line)
                if match:
                    found.append(f"{path.relative_to(root).as_posix()}:{number}: {kind}: {match.group()}")
    return found


def main(arguments: list[str]) -> int:
    """Print the problems under the root given (default: here) and return 1 if there are any."""
    found = problems(Path(arguments[0] if arguments else "."))
    print("\n".join(found) or "portability: in order")
    return bool(found)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
