"""What a coordinator needs of whatever carries its messages."""

from __future__ import annotations

from typing import Protocol


class Engine(Protocol):
    """Carries texts to sites that proved who they are, and brings their replies."""

    def connected(self) -> set[str]:
        """Return the names of the sites that are there now."""
        ...

    def send(self, site: str, text: str, seconds: float) -> None:
        """Hand over a request that is worth nothing after so many seconds; None is returned."""
        ...

    def received(self) -> list[tuple[str, str | None]]:
        """Return the replies since the last call with their sites; None stands for one that went wrong."""
        ...
