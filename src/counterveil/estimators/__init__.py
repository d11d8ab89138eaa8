"""The front door: estimators that compute a statistic and release it through the curator."""
