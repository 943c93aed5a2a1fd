"""The register interpreter, which defines the meaning of a program; its events, and runs within a budget."""
