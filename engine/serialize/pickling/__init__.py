"""Pickles of archives: the machine that reads them, the writer, and the tensors they name."""
