"""Composition of privacy losses, calibration, and the ledger."""
