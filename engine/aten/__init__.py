"""Values and the operators on them."""

from engine.aten import autograd as _autograd  # noqa: F401  (records operators for gradients)
from engine.aten.python import binding as _methods  # noqa: F401  (gives tensors their methods)
from engine.aten.python import methods as _python_methods  # noqa: F401  (and those of Python only)
