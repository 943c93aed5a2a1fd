"""Kernels are made of the plans of first calls here."""

import pytest


@pytest.fixture(autouse=True)
def _plans(plans_at_once: None) -> None:
    """First calls have plans."""
