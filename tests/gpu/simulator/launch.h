// How a kernel runs: block after block.  Where its threads wait for each other they are contexts that take turns: those
// that wait for their warp go on when no thread of the block can run, those that wait for the block when no warp waits.
template <class... A, std::size_t... I> void call_each(void (*kernel)(A...), void **given, std::index_sequence<I...>) {
    kernel(*(typename std::remove_reference<A>::type *)given[I]...);
}
template <class... A> void call_with(void (*kernel)(A...), void **given) {
    call_each(kernel, given, std::index_sequence_for<A...>{});
}

typedef void (*Go)(void **);
static Go go;
static void **given;
static std::vector<char> *finished;

static void run_thread() {
    go(given);
    (*finished)[thread_number] = 1;
    setcontext(&scheduler);
}

static void run_block(const unsigned *sizes, std::vector<char *> &stacks, std::size_t stack) {
    unsigned count = stacks.size();
    std::vector<ucontext_t> contexts(count);
    std::vector<char> done(count, 0);
    finished = &done;
    for (unsigned t = 0; t < count; t++) {
        waiting[t] = NOT_WAITING;
        getcontext(&contexts[t]);
        contexts[t].uc_stack.ss_sp = stacks[t];
        contexts[t].uc_stack.ss_size = stack;
        contexts[t].uc_link = nullptr;
        makecontext(&contexts[t], run_thread, 0);
    }
    for (unsigned live = count; live;) {
        for (unsigned t = 0; t < count; t++) {
            if (done[t] || waiting[t]) continue;
            threadIdx = {t % sizes[3], t / sizes[3] % sizes[4], t / sizes[3] / sizes[4]};
            current = &contexts[t];
            thread_number = t;
            swapcontext(&scheduler, &contexts[t]);
        }
        bool warps = false;
        live = 0;
        for (unsigned t = 0; t < count; t++) {
            if (done[t]) continue;
            live++;
            warps = warps || waiting[t] == FOR_WARP;
        }
        for (unsigned t = 0; t < count; t++)
            if (!warps || waiting[t] == FOR_WARP) waiting[t] = NOT_WAITING;
    }
    current = nullptr;
}

enum Way { ONE_THREAD, EACH_ALONE, TOGETHER };
// A kernel that goes through its elements in a loop is run by one thread, if that gets to the end of the loop.

static void run_kernel(Go kernel, void **arguments, const unsigned *sizes, Way way) {
    const std::size_t stack = 1 << 16;
    go = kernel;
    given = arguments;
    blockIdx = threadIdx = {0, 0, 0};
    gridDim = blockDim = {1, 1, 1};
    if (way == ONE_THREAD) return kernel(arguments);
    gridDim = {sizes[0], sizes[1], sizes[2]};
    blockDim = {sizes[3], sizes[4], sizes[5]};
    static std::vector<char *> stacks;
    if (way == TOGETHER)
        for (stacks.resize(0); stacks.size() < sizes[3] * sizes[4] * sizes[5];) stacks.push_back((char *)malloc(stack));
    for (unsigned z = 0; z < sizes[2]; z++)
        for (unsigned y = 0; y < sizes[1]; y++)
            for (unsigned x = 0; x < sizes[0]; x++) {
                blockIdx = {x, y, z};
                if (way == TOGETHER) run_block(sizes, stacks, stack);
                else
                    for (unsigned t = 0; t < sizes[3]; t++) {
                        threadIdx = {t, 0, 0};
                        kernel(arguments);
                    }
            }
    for (char *each : stacks) free(each);
    stacks.clear();
}
