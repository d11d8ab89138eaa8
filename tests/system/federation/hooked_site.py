"""`counterveil federation site run` with a fault planted in it: python hooked_site.py FAULT FOLDER."""

import sys
import time
from pathlib import Path

from counterveil.cli import main
from counterveil.federation import site

SECRET = "MRN=4711 outcome=7.1"
_answer = site.ask_of


def leaks(session, arguments):
    """Fail with a text that quotes a record, as a careless library would."""
    raise RuntimeError(SECRET)


def stalls(session, arguments):
    """Pay and get the answer, then hold it back until the test allows it to leave."""
    result = _answer(session, arguments)
    folder = Path(sys.argv[-1])
    (folder / "paid").touch()
    while not (folder / "go").exists():
        time.sleep(0.1)
    return result


if __name__ == "__main__":
    fault, folder = sys.argv[1:]
    site.ask_of = {"leaks": leaks, "stalls": stalls}[fault]
    sys.argv = ["counterveil", "federation", "site", "run", folder]
    main()
