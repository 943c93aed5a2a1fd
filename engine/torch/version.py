"""`torch.version`: the engine's version, and the toolkits it was built with (none)."""

__version__ = "0.1.0"
cuda = None
hip = None
debug = False
git_version = "unknown"
