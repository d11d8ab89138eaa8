"""Who asks: the name that every entry of a ledger carries."""

from __future__ import annotations

import os


def system_user() -> str:
    """Return the operating system's name for the user who runs this process, or its number."""
    if not hasattr(os, "getuid"):
        return os.environ.get("USERNAME", "unknown")[:200] or "unknown"
    import pwd

    # Environment variables are the user's to set; the real user id is not.
    user = os.getuid()
    try:
        name = pwd.getpwuid(user).pw_name
    except KeyError:
        name = ""
    return name if name.isprintable() and 0 < len(name) <= 200 and name == name.strip() else f"uid {user}"
