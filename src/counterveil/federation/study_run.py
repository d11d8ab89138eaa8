"""One run of a study on Flower, from the first process to the last reply, with its times."""

from __future__ import annotations

import time

from counterveil.federation.coordinator import Round, Teller
from counterveil.federation.files import wrong_setting
from counterveil.federation.study_files import StudyFolder

# This machine alone, or every network it is on; a firewall can say more.
_LISTEN = ("127.0.0.1", "0.0.0.0")


def run_study(folder: StudyFolder, listen: str, tell: Teller) -> dict[str, float]:
    """Ask the sites that have not answered yet and return how many seconds each part took."""
    from counterveil.federation.engines.flower.surroundings import prepare

    if listen not in _LISTEN:
        raise wrong_setting("the address to listen on", " or ".join(_LISTEN), repr(listen))
    start = time.monotonic()
    with folder.running():
        prepare(folder.path / "flower")
        from counterveil.federation.engines.flower.link import FlowerLink

        loaded = time.monotonic()
        with FlowerLink(folder, listen) as link:
            ready = time.monotonic()
            tell(f"listening on {folder.study.address}")
            Round(folder, link, tell).run()
            answered = time.monotonic()
    return {
        "load": loaded - start,
        "link": ready - loaded,
        "answers": answered - ready,
        "stop": time.monotonic() - answered,
    }
