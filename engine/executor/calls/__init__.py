"""The boundary between Python values and the values of programs, in both directions."""
