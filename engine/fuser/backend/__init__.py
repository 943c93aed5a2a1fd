"""Machine code: kernel IR through LLVM, code on disk, threads and memory of kernels, and when to compile."""
