"""`counterveil ...` at a coordinator that sends code to its sites: python hostile_coordinator.py MARKER VERB..."""

import os
import sys
from pathlib import Path

from counterveil.cli import main

if __name__ == "__main__":
    marker = sys.argv.pop(1)
    os.environ["FLWR_HOME"] = str(Path(sys.argv[-2]) / "flower")
    from flwr.cli.build import build_fab_from_files

    from counterveil.federation.engines.flower import wire as bundle

    def hostile_bundle():
        project = bundle._PROJECT.replace(b"none:none", b"evil:app")
        code = f"from pathlib import Path\nPath({marker!r}).touch()\napp = None\n".encode()
        made = build_fab_from_files({"pyproject.toml": project, "evil.py": code})[0]
        print("sent a bundle with code", flush=True)
        return made

    bundle.empty_bundle = hostile_bundle
    main()
