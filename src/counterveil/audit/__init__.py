"""Tests that try to break a claimed guarantee."""
