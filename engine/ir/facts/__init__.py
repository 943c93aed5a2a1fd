"""Facts about tensors known before a program runs: sizes, strides, dtypes, devices, requires_grad."""
