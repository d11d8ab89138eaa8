"""What every rendering of an answer says first."""

from __future__ import annotations


def first_words(
    *,
    interval_of: str | None,
    condition: str | None = None,
    assumes: str | None = None,
    population: str | None = None,
) -> str | None:
    """Return what is said before any number, None where there is nothing to say.

    The gravest is said alone: no interval for the effect, then no adjustment, then models that were assumed.
    """
    depends = no_interval(interval_of) or _unadjusted(condition) or _supposed(assumes)
    return "; ".join(filter(None, (_trimmed(population), depends))) or None


def no_interval(interval_of: str | None) -> str | None:
    """Return what is said first where intervals are for something else than the effect, else None."""
    return (
        None
        if interval_of is None
        else f"NO VALID INTERVAL FOR THE EFFECT: the interval is for {interval_of}"
    )


def _unadjusted(condition: str | None) -> str | None:
    return None if condition is None else f"NOT ADJUSTED: {condition}"


def _supposed(assumes: str | None) -> str | None:
    return None if assumes is None else f"MODELS ASSUMED: the interval is valid if {assumes}"


def _trimmed(population: str | None) -> str | None:
    return None if population is None else f"TRIMMED: the effect is that of {population}, not of everyone"
