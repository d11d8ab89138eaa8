"""Moments of private records and clipped scores of released models, and how far one record moves them.

Each module makes bounded numbers of private rows, adds them up exactly in whole steps and passes the sums to
the gate, which adds Laplace or Gaussian noise and lets each planned release through once. Columns are in half
ranges around the middle of their declared ranges, in [-1, 1], unless a module says otherwise. Modules name
the proof page of their bound, `rows/moments/*.proof.md`.
"""
