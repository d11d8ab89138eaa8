"""Results of several sites, pooled."""
