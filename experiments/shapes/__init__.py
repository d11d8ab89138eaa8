"""Every question and method on outcomes of every shape."""
