"""In place of `torch.testing._internal.common_device_type`: no tests are made for each device or operator."""

from torch.testing._internal.common_utils import leaving_as_it_is

ops = leaving_as_it_is


def instantiate_device_type_tests(*arguments, **options):
    """Make none."""
