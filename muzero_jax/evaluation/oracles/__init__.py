"""Exact play of small games."""
