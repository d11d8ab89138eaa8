"""Malformed inputs by the thousand: no traceback, no hang, no private value in a text, no charge without an answer."""
