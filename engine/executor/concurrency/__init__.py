"""Futures, and the threads that run forked functions."""
