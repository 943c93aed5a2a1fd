"""From the call of an operator to its kernel: the operator table, overload resolution, hooks, wrapping of results."""
