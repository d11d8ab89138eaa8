"""The documentation site: its pages are gathered from the repository, run, and built by Sphinx."""
