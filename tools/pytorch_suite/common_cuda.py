"""In place of `torch.testing._internal.common_cuda`: there is no GPU."""

TEST_CUDA = TEST_MULTIGPU = TEST_CUDNN = SM90OrLater = False


def with_tf32_off(test):
    return test
