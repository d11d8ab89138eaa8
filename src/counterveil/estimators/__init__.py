"""The front door: estimators that compute a statistic and release it through the curator."""

from counterveil.estimators.front_door import Curator, ate
from counterveil.estimators.methods import method_names, settings_from_text
from counterveil.estimators.result import Result, StdError

__all__ = ["Curator", "Result", "StdError", "ate", "method_names", "settings_from_text"]
