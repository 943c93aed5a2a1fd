"""From definitions to functions and classes of a compilation unit."""
