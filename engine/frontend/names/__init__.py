"""Where names come from: namespaces like `torch`, global names, and resolvers; types as they are annotated."""
