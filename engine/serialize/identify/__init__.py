"""Identification of files by their bytes."""
