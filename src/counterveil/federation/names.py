"""Names of sites and addresses of coordinators, as people write them."""

from __future__ import annotations

import re

from counterveil.errors import ParameterError

_NAME = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9 ._-]{0,38}[A-Za-z0-9])?")
_HOST = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9.-]{0,251}[A-Za-z0-9])?")
_HIGHEST_PORT = 65535


def check_name(name: str) -> str:
    """Return a site's name if it can be part of a file name, or raise CV-P601."""
    if _NAME.fullmatch(name):
        return name
    raise ParameterError(
        "CV-P601",
        "this cannot be the name of a site",
        expected="1 to 40 letters, digits, spaces, dots, dashes or underscores, starting and ending with a "
        "letter or digit",
        got=repr(name),
        fix="choose a short plain name",
    )


def check_address(address: str) -> str:
    """Return HOST:PORT if it is one, or raise CV-P602."""
    host, _, port = address.rpartition(":")
    if _HOST.fullmatch(host) and port.isdecimal() and 0 < int(port) <= _HIGHEST_PORT:
        return address
    raise ParameterError(
        "CV-P602",
        "this is not the address of a coordinator",
        expected="HOST:PORT, such as coordinator.example.org:9092",
        got=repr(address),
        fix="name the host and the port",
    )


def host_of(address: str) -> str:
    """Return the host of a checked address."""
    return address.rpartition(":")[0]


def port_of(address: str) -> int:
    """Return the port of a checked address."""
    return int(address.rpartition(":")[2])
