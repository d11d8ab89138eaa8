"""How far one unit can move a statistic: one statistic a file, its proof beside it."""

from counterveil.sensitivity.centred_contrast import CentredContrast, Totals
from counterveil.sensitivity.difference_in_means import DifferenceInMeans
from counterveil.sensitivity.linear_estimate import LinearEstimate

__all__ = ["CentredContrast", "DifferenceInMeans", "LinearEstimate", "Totals"]
