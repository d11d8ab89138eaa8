"""Every method asked at the edges of what may be asked."""
