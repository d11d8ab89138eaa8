"""The reference pages of the command line and of the Python API, made from the code."""
