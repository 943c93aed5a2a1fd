"""The steps that every call is made of, and questions about a tensor's form, as machine code."""
