"""Moments of private records and scores from released models: trials, IPW, doubly robust effects, CATE."""
