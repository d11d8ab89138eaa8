"""What is known of a number on a scale of its own, such as that of ratios."""

from __future__ import annotations

Ends = tuple[float, float]


class OwnScale:
    """What is known on a scale of its own, such as that of ratios: its value of no effect, and its test."""

    __slots__ = ()

    @property
    def null(self) -> float:
        """The value of no effect."""
        raise NotImplementedError

    @property
    def estimate(self) -> float:
        """The released number."""
        raise NotImplementedError

    @property
    def sampling_sd(self) -> float:
        """Standard deviation of the sampling error."""
        raise NotImplementedError

    @property
    def noise_sd(self) -> float:
        """Standard deviation of the privacy noise."""
        raise NotImplementedError

    def interval(self, level: float) -> Ends:
        """Return the two ends of an interval of this level; they may be infinite."""
        raise NotImplementedError

    def p_value(self, level: float) -> float:
        """Return the p-value of no effect, variances as for an interval of `level`."""
        raise NotImplementedError

    def gap(self, level: float) -> Ends | None:  # noqa: ARG002 - most intervals have one part
        """Return what lies between the two parts of an interval, None where it has one part."""
        return None
