"""Builds the documentation site: `python -m tools.site` gathers the pages, runs audits and notebooks, writes HTML.

Warnings are errors, links that lead nowhere among them.
"""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

from sphinx.cmd.build import main as sphinx
from tools.site.gather import gathered, write
from tools.site.generated import generated

ROOT = Path(__file__).resolve().parents[2]
BUILD = ROOT / "build/site"
SOURCE, HTML = BUILD / "source", BUILD / "html"


def main(arguments: list[str]) -> int:
    """Build the site and return 0; `--fresh` forgets what an earlier build kept."""
    if "--fresh" in arguments:
        shutil.rmtree(BUILD, ignore_errors=True)
    print("gathering the pages, running audits that were not kept: up to five minutes", flush=True)
    write(gathered(ROOT, generated(BUILD / "audits")), SOURCE)
    os.environ["IPYTHONDIR"] = str(BUILD / "ipython")
    profile = BUILD / "ipython/profile_default"
    profile.mkdir(parents=True, exist_ok=True)
    # The reader's own profile stays out, and kernels on this machine do not warn of the network.
    (profile / "ipython_kernel_config.py").write_text("get_config().IPKernelApp.log_level = 40\n")
    quiet = [] if sys.stdout.isatty() else ["-q"]
    print("running the notebooks, writing HTML: two to five minutes", flush=True)
    kept = ["-d", str(BUILD / "kept"), "-D", f"nb_execution_cache_path={BUILD / 'runs'}"]
    code = sphinx(["-W", "--keep-going", *quiet, *kept, "-c", str(ROOT / "docs"), str(SOURCE), str(HTML)])
    if code == 0:
        print(f"the site is in {HTML.relative_to(ROOT)}: open index.html there")
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
