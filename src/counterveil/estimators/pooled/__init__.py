"""One answer from the private results of several sites."""
