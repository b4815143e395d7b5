/* A stand-in for NVIDIA's management library, as far as Grass asks it anything.
 *
 * FAKE_NVML chooses how it behaves: "two" GPUs (the default), "error" at the start,
 * "broken" second device, or "hang" for ever.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct { unsigned long long total, free, used; } memory_v1;
typedef struct { unsigned version; unsigned long long total, reserved, free, used; } memory_v2;

enum { SUCCESS = 0, INVALID_ARGUMENT = 2, DRIVER_NOT_LOADED = 9, GPU_IS_LOST = 15 };
static const unsigned long long GIB = 1ULL << 30;

static int behaves(const char *how) {
    const char *chosen = getenv("FAKE_NVML");
    return chosen != NULL && strcmp(chosen, how) == 0;
}

int nvmlInit_v2(void) {
    while (behaves("hang")) pause();
    return behaves("error") ? DRIVER_NOT_LOADED : SUCCESS;
}
int nvmlInitWithFlags(unsigned flags) { (void)flags; return nvmlInit_v2(); }
int nvmlShutdown(void) { return SUCCESS; }
const char *nvmlErrorString(int code) { (void)code; return "a stand-in's error"; }

int nvmlDeviceGetCount_v2(unsigned *count) { *count = 2; return SUCCESS; }

int nvmlDeviceGetHandleByIndex_v2(unsigned index, void **device) {
    if (index > 1) return INVALID_ARGUMENT;
    if (index == 1 && behaves("broken")) return GPU_IS_LOST;
    *device = (void *)(size_t)(index + 1);
    return SUCCESS;
}
int nvmlDeviceGetName(void *device, char *name, unsigned length) {
    snprintf(name, length, "Stand-in %zu", (size_t)device - 1);
    return SUCCESS;
}
int nvmlDeviceGetUUID(void *device, char *uuid, unsigned length) {
    snprintf(uuid, length, "GPU-0000-%zu", (size_t)device - 1);
    return SUCCESS;
}
int nvmlDeviceGetMemoryInfo(void *device, memory_v1 *memory) {
    memory->total = (size_t)device * 40 * GIB;
    memory->free = memory->total;
    memory->used = 0;
    return SUCCESS;
}
int nvmlDeviceGetMemoryInfo_v2(void *device, memory_v2 *memory) {
    memory->total = (size_t)device * 40 * GIB;
    memory->free = memory->total;
    memory->used = memory->reserved = 0;
    return SUCCESS;
}
