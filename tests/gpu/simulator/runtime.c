/* The functions of CUDA's runtime, driver and compiler that cupy calls, over the memory of the CPU.

   In: calls.  Out: success.  Memory is malloc's, a compiled program is the name of its source, and a launch is handed to
   a function of Python's (`set_launcher`), as sources are (`set_saver`).  What is not written here is answered by f_zero. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

typedef void *Pointer;
typedef size_t Size;
enum { COMPUTE_MAJOR = 75, COMPUTE_MINOR = 76, WARP_SIZE = 10 };

/* ---- the runtime: install.py puts f_NAME in the place of NAME */

int f_zero(void) { return 0; }
int f_cudaGetDevice(int *device) { *device = 0; return 0; }
int f_cudaGetDeviceCount(int *count) { *count = 1; return 0; }
int f_cudaRuntimeGetVersion(int *version) { *version = 12080; return 0; }
int f_cudaDriverGetVersion(int *version) { *version = 12080; return 0; }

int f_cudaDeviceGetAttribute(int *value, int attribute, int device) {
    static const int known[][2] = {
        {1, 1024}, {2, 1024}, {3, 1024}, {4, 1024}, {5, 2147483647}, {6, 65535}, {7, 65535}, {8, 49152},
        {WARP_SIZE, 32}, {16, 132}, {39, 2048}, {COMPUTE_MAJOR, 9}, {COMPUTE_MINOR, 0}, {97, 49152},
    };
    *value = 0;
    for (unsigned i = 0; i < sizeof known / sizeof *known; i++)
        if (known[i][0] == attribute) *value = known[i][1];
    return 0;
}

int f_cudaGetDeviceProperties_v2(char *properties, int device) {
    memset(properties, 0, 1032);
    strcpy(properties, "Simulated GPU");
    *(Size *)(properties + 288) = (Size)1 << 35; /* memory */
    *(Size *)(properties + 296) = 49152;         /* shared memory of a block */
    *(int *)(properties + 304) = 65536;          /* registers of a block */
    *(int *)(properties + 308) = 32;             /* threads of a warp */
    int *most = (int *)(properties + 320);       /* threads of a block; then its sizes, and those of a grid */
    int values[] = {1024, 1024, 1024, 64, 2147483647, 65535, 65535};
    memcpy(most, values, sizeof values);
    *(int *)(properties + 360) = 9;              /* compute capability */
    *(int *)(properties + 388) = 132;            /* multiprocessors */
    return 0;
}
int f_cudaGetDeviceProperties(char *properties, int device) { return f_cudaGetDeviceProperties_v2(properties, device); }

int f_cudaMalloc(Pointer *memory, Size size) {
    Size whole = (size + 1023) / 512 * 512;
    *memory = aligned_alloc(512, whole);
    memset(*memory, 0, whole);
    return 0;
}
int f_cudaMallocAsync(Pointer *memory, Size size, Pointer stream) { return f_cudaMalloc(memory, size); }
int f_cudaMallocManaged(Pointer *memory, Size size, unsigned flags) { return f_cudaMalloc(memory, size); }
int f_cudaMallocHost(Pointer *memory, Size size) { *memory = calloc(1, size + 64); return 0; }
int f_cudaHostAlloc(Pointer *memory, Size size, unsigned flags) { return f_cudaMallocHost(memory, size); }
int f_cudaFree(Pointer memory) { free(memory); return 0; }
int f_cudaFreeAsync(Pointer memory, Pointer stream) { free(memory); return 0; }
int f_cudaFreeHost(Pointer memory) { free(memory); return 0; }
int f_cudaMemcpy(Pointer to, Pointer from, Size size, int kind) { memmove(to, from, size); return 0; }
int f_cudaMemcpyAsync(Pointer to, Pointer from, Size size, int kind, Pointer stream) { memmove(to, from, size); return 0; }
int f_cudaMemcpyPeer(Pointer to, int a, Pointer from, int b, Size size) { memmove(to, from, size); return 0; }
int f_cudaMemcpyPeerAsync(Pointer to, int a, Pointer from, int b, Size size, Pointer stream) { memmove(to, from, size); return 0; }
int f_cudaMemset(Pointer to, int value, Size size) { memset(to, value, size); return 0; }
int f_cudaMemsetAsync(Pointer to, int value, Size size, Pointer stream) { memset(to, value, size); return 0; }
int f_cudaMemGetInfo(Size *left, Size *all) { *left = (Size)1 << 34; *all = (Size)1 << 35; return 0; }

int f_cudaStreamCreate(Pointer *stream) { *stream = malloc(8); return 0; }
int f_cudaStreamCreateWithFlags(Pointer *stream, unsigned flags) { return f_cudaStreamCreate(stream); }
int f_cudaStreamCreateWithPriority(Pointer *stream, unsigned flags, int priority) { return f_cudaStreamCreate(stream); }
int f_cudaStreamIsCapturing(Pointer stream, int *status) { *status = 0; return 0; }
int f_cudaEventCreate(Pointer *event) { *event = malloc(8); return 0; }
int f_cudaEventCreateWithFlags(Pointer *event, unsigned flags) { return f_cudaEventCreate(event); }
int f_cudaEventElapsedTime(float *time, Pointer start, Pointer end) { *time = 1.5f; return 0; }
int f_cudaPointerGetAttributes(int *found, Pointer memory) {
    found[0] = 2;
    found[1] = 0;
    ((Pointer *)(found + 2))[0] = ((Pointer *)(found + 2))[1] = memory;
    return 0;
}
const char *f_cudaGetErrorName(int error) { return "simulated"; }
const char *f_cudaGetErrorString(int error) { return "the simulator failed"; }
int cudaRuntimeGetVersion(int *version) { return f_cudaRuntimeGetVersion(version); }

/* Writes a jump to another function over the beginning of one. */
int replace(uint8_t *function, void *other) {
    long page = sysconf(_SC_PAGESIZE);
    uint8_t *start = (uint8_t *)((uintptr_t)function & ~(page - 1));
    if (mprotect(start, page * 2, PROT_READ | PROT_WRITE | PROT_EXEC)) return -1;
    uint8_t jump[13] = {0x49, 0xbb, 0, 0, 0, 0, 0, 0, 0, 0, 0x41, 0xff, 0xe3}; /* mov r11, other; jmp r11 */
    memcpy(jump + 2, &other, 8);
    memcpy(function, jump, sizeof jump);
    return 0;
}

/* ---- the driver */

typedef struct { char *image; } Module;
typedef struct { Module *module; char name[512]; } Kernel;
static int (*launcher)(const char *, const char *, const unsigned *, Pointer *);
void set_launcher(void *function) { launcher = function; }

int cuInit(unsigned flags) { return 0; }
int cuGetErrorName(int error, const char **name) { *name = "simulated"; return 0; }
int cuGetErrorString(int error, const char **text) { *text = "the simulator failed"; return 0; }
int cuCtxGetCurrent(Pointer *context) { static int one; *context = &one; return 0; }
int cuCtxSetCurrent(Pointer context) { return 0; }
int cuModuleLoadData(Pointer *module, const char *image) {
    Module *made = malloc(sizeof *made);
    made->image = strdup(image);
    *module = made;
    return 0;
}
int cuModuleUnload(Pointer module) { return 0; }
int cuModuleGetFunction(Pointer *function, Pointer module, const char *name) {
    Kernel *made = malloc(sizeof *made);
    made->module = module;
    strncpy(made->name, name, sizeof made->name - 1);
    *function = made;
    return 0;
}
int cuLaunchKernel(Pointer function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
                   unsigned shared, Pointer stream, Pointer *parameters, Pointer *extra) {
    unsigned sizes[] = {gx, gy, gz, bx, by, bz};
    Kernel *kernel = function;
    return launcher(kernel->module->image, kernel->name, sizes, parameters);
}
int cuLaunchCooperativeKernel(Pointer function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
                              unsigned bz, unsigned shared, Pointer stream, Pointer *parameters) {
    return cuLaunchKernel(function, gx, gy, gz, bx, by, bz, shared, stream, parameters, 0);
}
int cuFuncGetAttribute(int *value, int attribute, Pointer function) { *value = attribute == 0 ? 1024 : 0; return 0; }
int cuFuncSetAttribute(Pointer function, int attribute, int value) { return 0; }
int cuOccupancyMaxActiveBlocksPerMultiprocessor(int *count, Pointer function, int size, Size shared) { *count = 1; return 0; }
int cuOccupancyMaxPotentialBlockSize(int *grid, int *block, Pointer function, Pointer of, Size shared, int limit) {
    *grid = 1;
    *block = 128;
    return 0;
}
#define ABSENT(name) int name(void) { return 1; }
ABSENT(cuModuleLoad) ABSENT(cuModuleGetGlobal) ABSENT(cuLinkCreate) ABSENT(cuLinkAddData) ABSENT(cuLinkAddFile)
ABSENT(cuLinkComplete) ABSENT(cuLinkDestroy) ABSENT(cuCtxCreate) ABSENT(cuCtxDestroy) ABSENT(cuDevicePrimaryCtxRelease)

/* ---- the compiler: its output names the source */

typedef struct { char *source; char name[32]; } Program;
static void (*saver)(const char *, const char *);
void set_saver(void *function) { saver = function; }

static uint64_t digest(const char *text) {
    uint64_t found = 1469598103934665603ull;
    for (; *text; text++) found = (found ^ (uint8_t)*text) * 1099511628211ull;
    return found;
}
const char *nvrtcGetErrorString(int error) { return "the simulator failed"; }
int nvrtcVersion(int *major, int *minor) { *major = 12; *minor = 8; return 0; }
int nvrtcCreateProgram(Pointer *program, const char *source, const char *name, int count, Pointer headers, Pointer names) {
    Program *made = malloc(sizeof *made);
    made->source = strdup(source);
    sprintf(made->name, "sim%016lx", digest(source));
    *program = made;
    return 0;
}
int nvrtcDestroyProgram(Pointer *program) { return 0; }
int nvrtcCompileProgram(Program *program, int count, const char **options) { saver(program->name, program->source); return 0; }
int nvrtcGetCUBINSize(Program *program, Size *size) { *size = strlen(program->name) + 1; return 0; }
int nvrtcGetCUBIN(Program *program, char *to) { strcpy(to, program->name); return 0; }
int nvrtcGetPTXSize(Program *program, Size *size) { return nvrtcGetCUBINSize(program, size); }
int nvrtcGetPTX(Program *program, char *to) { return nvrtcGetCUBIN(program, to); }
int nvrtcGetNVVMSize(Program *program, Size *size) { *size = 1; return 0; }
int nvrtcGetNVVM(Program *program, char *to) { *to = 0; return 0; }
int nvrtcGetProgramLogSize(Program *program, Size *size) { *size = 1; return 0; }
int nvrtcGetProgramLog(Program *program, char *to) { *to = 0; return 0; }
int nvrtcAddNameExpression(Program *program, const char *name) { return 0; }
int nvrtcGetLoweredName(Program *program, const char *name, const char **lowered) { *lowered = name; return 0; }
int nvrtcGetNumSupportedArchs(int *count) { *count = 1; return 0; }
int nvrtcGetSupportedArchs(int *archs) { *archs = 90; return 0; }
