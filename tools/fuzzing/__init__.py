"""Malformed inputs by the thousand: no traceback, no hang, no private value in any text, no lost charge."""
