"""What is known of tensors before a program runs: sizes, strides, dtypes, devices, gradients."""
