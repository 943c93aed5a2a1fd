"""Values and the operators on them."""

from engine.aten.python import binding as _binding
from engine.aten.python import methods as _methods  # noqa: F401  (binds those that the table does not have)

_binding.bind_table()
