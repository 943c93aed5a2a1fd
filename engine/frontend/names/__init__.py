"""Name lookup: namespaces like `torch`, global names, resolvers, and annotated types."""
