/* A stand-in for NVIDIA's management library, as far as Grass asks it anything.
 *
 * FAKE_NVML_FILE names the file that says what there is; tests write it with
 * `tests/support/gpus.py`, which also tells its form. Files in FAKE_NVML_FILE.processes/
 * are processes that announced themselves. Whoever changes one of them writes another
 * number into FAKE_NVML_FILE.version afterwards. That is mapped into memory, so every
 * call sees a change at once and one without a change costs no more than a driver's.
 * As with a driver, a process that has ended is on no device any more.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

typedef unsigned long long u64;
typedef struct { u64 total, free, used; } memory_v1;
typedef struct { unsigned version; u64 total, reserved, free, used; } memory_v2;
typedef struct { unsigned pid; u64 memory; unsigned instance, compute; } process_info;
typedef struct { unsigned pid; u64 at; unsigned sm, mem, enc, dec; } process_sample;
typedef struct { unsigned gpu, memory; } utilization;
typedef struct { int device, heard; } event_set;
typedef struct { void *device; u64 type, data; unsigned instance, compute; } event_data;
typedef struct {
    uint32_t field, scope;
    int64_t at, latency;
    int type, result;
    union { unsigned ui; u64 ull; double d; } value;
} field_value;

enum { MOST_DEVICES = 16, MOST_INSTANCES = 8, MOST_PROCESSES = 1024, MOST_WORDS = 32 };
enum {
    SUCCESS = 0, INVALID_ARGUMENT = 2, NOT_SUPPORTED = 3, NOT_FOUND = 6,
    INSUFFICIENT_SIZE = 7, TIMEOUT = 10, FUNCTION_NOT_FOUND = 13, GPU_IS_LOST = 15
};
static const u64 NOT_AVAILABLE = ~0ULL;
static const int RECOVERY_ACTION = 230;

typedef struct {
    int present, lost, hang, slow_ms, mig, utilization, temperature, numa;
    long power_mw, limit_mw;
    int recovery;
    u64 memory, reserved, base, ecc, cores;
    char name[96], uuid[96];
} device_state;
typedef struct {
    int device, instance, always, utilization;
    char kind;
    long pid;
    u64 memory;
} process_state;
typedef struct {
    int hang, error;
    device_state devices[MOST_DEVICES][MOST_INSTANCES + 1];
    int levels[MOST_DEVICES][MOST_DEVICES], nvlink[MOST_DEVICES][MOST_DEVICES];
    process_state processes[MOST_PROCESSES];
    int process_count;
    struct { int device, code, serial; } events[64];
    int event_count;
    char missing[16][64];
    int missing_count;
} state;

/* Replaced whole, and the old one is left: other threads may look at it. */
static state *present;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static const volatile u64 *version;
static u64 seen_version;

/* Reading the file. */

static const char *value_of(char **words, int count, const char *key, const char *other) {
    size_t length = strlen(key);
    for (int i = 0; i < count; i++)
        if (strncmp(words[i], key, length) == 0 && words[i][length] == '=')
            return words[i] + length + 1;
    return other;
}
static long long number_of(char **words, int count, const char *key, long long other) {
    const char *text = value_of(words, count, key, NULL);
    return text == NULL ? other : strtoll(text, NULL, 0);
}
static void unit_of(const char *text, int *device, int *instance) {
    *instance = 0;
    char *end;
    *device = (int)strtol(text, &end, 10);
    if (*end == '.') *instance = (int)strtol(end + 1, NULL, 10) + 1;
    if (*device < 0 || *device >= MOST_DEVICES) *device = 0;
    if (*instance < 0 || *instance > MOST_INSTANCES) *instance = 0;
}
static void read_device(state *into, char **words, int count) {
    int device, instance;
    unit_of(words[1], &device, &instance);
    device_state *it = &into->devices[device][instance];
    it->present = 1;
    it->memory = number_of(words, count, "memory", 0);
    it->reserved = number_of(words, count, "reserved", 0);
    it->base = number_of(words, count, "used", 0);
    it->utilization = number_of(words, count, "utilization", 0);
    it->temperature = number_of(words, count, "temperature", -1);
    it->power_mw = number_of(words, count, "power_mw", -1);
    it->limit_mw = number_of(words, count, "power_limit_mw", -1);
    it->ecc = number_of(words, count, "ecc", 0);
    it->recovery = number_of(words, count, "recovery", 0);
    it->numa = number_of(words, count, "numa", -1);
    it->cores = number_of(words, count, "cores", 0);
    it->lost = number_of(words, count, "lost", 0);
    it->hang = number_of(words, count, "hang", 0);
    it->slow_ms = number_of(words, count, "slow_ms", 0);
    it->mig = number_of(words, count, "mig", 0);
    snprintf(it->uuid, sizeof it->uuid, "%s", value_of(words, count, "uuid", "GPU-?"));
    snprintf(it->name, sizeof it->name, "%s", value_of(words, count, "name", "?"));
    for (char *at = it->name; *at; at++) if (*at == '_') *at = ' ';
}
static void read_process(state *into, char **words, int count) {
    if (into->process_count == MOST_PROCESSES) return;
    process_state *it = &into->processes[into->process_count++];
    unit_of(words[1], &it->device, &it->instance);
    it->pid = strtol(words[2], NULL, 10);
    it->memory = number_of(words, count, "memory", (long long)NOT_AVAILABLE);
    it->utilization = number_of(words, count, "utilization", -1);
    it->always = number_of(words, count, "always", 0);
    it->kind = value_of(words, count, "kind", "compute")[0];
}
static void read_line(state *into, char *line) {
    char *words[MOST_WORDS], *rest = NULL;
    int count = 0;
    for (char *word = strtok_r(line, " \n", &rest); word && count < MOST_WORDS;
         word = strtok_r(NULL, " \n", &rest))
        words[count++] = word;
    if (count < 2) return;
    if (strcmp(words[0], "library") == 0) {
        into->hang = number_of(words, count, "hang", 0);
        into->error = number_of(words, count, "error", 0);
    } else if (strcmp(words[0], "device") == 0) {
        read_device(into, words, count);
    } else if (strcmp(words[0], "process") == 0 && count > 2) {
        read_process(into, words, count);
    } else if (strcmp(words[0], "pair") == 0 && count > 2) {
        int one = atoi(words[1]) % MOST_DEVICES, other = atoi(words[2]) % MOST_DEVICES;
        into->levels[one][other] = number_of(words, count, "level", 50);
        into->levels[other][one] = into->levels[one][other];
        into->nvlink[one][other] = number_of(words, count, "nvlink", 0);
        into->nvlink[other][one] = into->nvlink[one][other];
    } else if (strcmp(words[0], "xid") == 0 && count > 3 && into->event_count < 64) {
        into->events[into->event_count].device = atoi(words[1]);
        into->events[into->event_count].code = atoi(words[2]);
        into->events[into->event_count++].serial = atoi(words[3]);
    } else if (strcmp(words[0], "without") == 0 && into->missing_count < 16) {
        snprintf(into->missing[into->missing_count++], 64, "%s", words[1]);
    }
}
static void read_file(state *into, const char *path) {
    FILE *file = fopen(path, "r");
    if (file == NULL) return;
    char line[1024];
    while (fgets(line, sizeof line, file)) read_line(into, line);
    fclose(file);
}
static void read_folder(state *into, const char *path) {
    DIR *folder = opendir(path);
    if (folder == NULL) return;
    for (struct dirent *entry; (entry = readdir(folder));) {
        char name[8192];
        if (entry->d_name[0] == '.') continue;
        snprintf(name, sizeof name, "%s/%s", path, entry->d_name);
        read_file(into, name);
    }
    closedir(folder);
}
static const volatile u64 *mapped(const char *path) {
    char name[4096];
    snprintf(name, sizeof name, "%s.version", path);
    int file = open(name, O_RDONLY | O_CLOEXEC);
    void *at = mmap(NULL, sizeof *version, PROT_READ, MAP_SHARED, file, 0);
    if (at == MAP_FAILED) abort();
    close(file);
    return at;
}
static void refresh(void) {
    const char *path = getenv("FAKE_NVML_FILE");
    if (path == NULL) return;
    if (version != NULL && *version == __atomic_load_n(&seen_version, __ATOMIC_ACQUIRE))
        return;
    pthread_mutex_lock(&lock);
    if (version == NULL) version = mapped(path);
    u64 now = *version;
    if (present == NULL || now != seen_version) {
        char folder[4096];
        snprintf(folder, sizeof folder, "%s.processes", path);
        state *read = calloc(1, sizeof *read);
        read_file(read, path);
        read_folder(read, folder);
        __atomic_store_n(&present, read, __ATOMIC_RELEASE);
        __atomic_store_n(&seen_version, now, __ATOMIC_RELEASE);
    }
    pthread_mutex_unlock(&lock);
}

/* What every call does first. */

static int is_missing(const char *function) {
    for (int i = 0; i < present->missing_count; i++)
        if (strcmp(present->missing[i], function) == 0) return 1;
    return 0;
}
static int enter(const char *function) {
    for (refresh(); present->hang; refresh()) usleep(10000);
    return is_missing(function) ? FUNCTION_NOT_FOUND : SUCCESS;
}
static size_t number(void *handle) { return ((size_t)handle & 0xff) - 1; }
static size_t instance(void *handle) { return (size_t)handle >> 8; }
static void *handle_of(size_t device, size_t instance) {
    return (void *)((device + 1) | instance << 8);
}
static device_state *state_of(void *handle) {
    return &present->devices[number(handle)][instance(handle)];
}
static int enter_device(const char *function, void *handle) {
    int failed = enter(function);
    if (failed) return failed;
    while (present->devices[number(handle)][0].hang) {
        usleep(10000);
        refresh();
    }
    if (present->devices[number(handle)][0].lost) return GPU_IS_LOST;
    return state_of(handle)->present ? SUCCESS : GPU_IS_LOST;
}
#define ENTER(handle) \
    do { \
        int failed = enter_device(__func__, handle); \
        if (failed) return failed; \
    } while (0)

static int is_there(const process_state *it, void *handle) {
    if (it->device != (int)number(handle)) return 0;
    if (instance(handle) && it->instance != (int)instance(handle)) return 0;
    return it->always || kill((pid_t)it->pid, 0) == 0 || errno == EPERM;
}
static u64 used(void *handle) {
    u64 sum = state_of(handle)->base;
    for (int i = 0; i < present->process_count; i++) {
        const process_state *it = &present->processes[i];
        if (it->memory != NOT_AVAILABLE && it->kind == 'c' && is_there(it, handle))
            sum += it->memory;
    }
    return sum;
}

/* The library. */

int nvmlInitWithFlags(unsigned flags) {
    (void)flags;
    int failed = enter(__func__);
    return failed ? failed : present->error;
}
int nvmlInit_v2(void) { return nvmlInitWithFlags(0); }
int nvmlShutdown(void) { return SUCCESS; }
const char *nvmlErrorString(int code) { (void)code; return "a stand-in's error"; }
int nvmlSystemGetDriverVersion(char *version, unsigned length) {
    snprintf(version, length, "580.00.stand-in");
    return enter(__func__);
}
int nvmlDeviceGetCount_v2(unsigned *count) {
    int failed = enter(__func__);
    *count = 0;
    for (int i = 0; i < MOST_DEVICES; i++) *count += present->devices[i][0].present;
    return failed ? failed : present->error;
}
int nvmlDeviceGetHandleByIndex_v2(unsigned index, void **device) {
    int failed = enter(__func__);
    if (failed) return failed;
    for (int i = 0; i < MOST_DEVICES; i++)
        if (present->devices[i][0].present && index-- == 0) {
            *device = handle_of(i, 0);
            return enter_device(__func__, *device);
        }
    return INVALID_ARGUMENT;
}
int nvmlDeviceGetName(void *device, char *name, unsigned length) {
    ENTER(device);
    snprintf(name, length, "%s", state_of(device)->name);
    return SUCCESS;
}
int nvmlDeviceGetUUID(void *device, char *uuid, unsigned length) {
    ENTER(device);
    snprintf(uuid, length, "%s", state_of(device)->uuid);
    return SUCCESS;
}
int nvmlDeviceGetMemoryInfo_v2(void *device, memory_v2 *memory) {
    ENTER(device);
    if (state_of(device)->slow_ms) usleep(1000 * state_of(device)->slow_ms);
    memory->total = state_of(device)->memory;
    memory->reserved = state_of(device)->reserved;
    memory->used = used(device);
    memory->free = memory->total - memory->reserved - memory->used;
    return SUCCESS;
}
int nvmlDeviceGetMemoryInfo(void *device, memory_v1 *memory) {
    ENTER(device);
    memory->total = state_of(device)->memory;
    memory->used = used(device) + state_of(device)->reserved;
    memory->free = memory->total - memory->used;
    return SUCCESS;
}
int nvmlDeviceGetUtilizationRates(void *device, utilization *rates) {
    ENTER(device);
    if (instance(device)) return NOT_SUPPORTED;
    rates->gpu = state_of(device)->utilization;
    rates->memory = 0;
    return SUCCESS;
}
int nvmlDeviceGetTemperature(void *device, unsigned sensor, unsigned *celsius) {
    (void)sensor;
    ENTER(device);
    if (state_of(device)->temperature < 0) return NOT_SUPPORTED;
    *celsius = state_of(device)->temperature;
    return SUCCESS;
}
int nvmlDeviceGetPowerUsage(void *device, unsigned *milliwatts) {
    ENTER(device);
    if (state_of(device)->power_mw < 0) return NOT_SUPPORTED;
    *milliwatts = state_of(device)->power_mw;
    return SUCCESS;
}
int nvmlDeviceGetEnforcedPowerLimit(void *device, unsigned *milliwatts) {
    ENTER(device);
    if (state_of(device)->limit_mw < 0) return NOT_SUPPORTED;
    *milliwatts = state_of(device)->limit_mw;
    return SUCCESS;
}

/* Processes. */

static int list(void *device, char kind, unsigned *room, process_info *infos) {
    unsigned count = 0;
    for (int i = 0; i < present->process_count; i++) {
        const process_state *it = &present->processes[i];
        if (it->kind != kind || !is_there(it, device)) continue;
        if (infos != NULL && count < *room) {
            infos[count].pid = (unsigned)it->pid;
            infos[count].memory = it->memory;
            infos[count].instance = infos[count].compute = ~0u;
        }
        count++;
    }
    int fits = infos != NULL ? count <= *room : count == 0;
    *room = count;
    return fits ? SUCCESS : INSUFFICIENT_SIZE;
}
int nvmlDeviceGetComputeRunningProcesses_v3(void *device, unsigned *n, process_info *at) {
    ENTER(device);
    return list(device, 'c', n, at);
}
int nvmlDeviceGetGraphicsRunningProcesses_v3(void *device, unsigned *n, process_info *at) {
    ENTER(device);
    return list(device, 'g', n, at);
}
int nvmlDeviceGetMPSComputeRunningProcesses_v3(void *device, unsigned *n, process_info *at) {
    ENTER(device);
    return list(device, 'm', n, at);
}
int nvmlDeviceGetProcessUtilization(
    void *device, process_sample *samples, unsigned *room, u64 since) {
    ENTER(device);
    if (instance(device)) return NOT_SUPPORTED;
    unsigned count = 0;
    for (int i = 0; i < present->process_count; i++) {
        const process_state *it = &present->processes[i];
        if (it->utilization < 0 || !is_there(it, device)) continue;
        if (samples != NULL && count < *room) {
            memset(&samples[count], 0, sizeof samples[count]);
            samples[count].pid = (unsigned)it->pid;
            samples[count].at = since + 1;
            samples[count].sm = it->utilization;
        }
        count++;
    }
    int fits = samples != NULL && count <= *room;
    *room = count;
    return count == 0 ? NOT_FOUND : fits ? SUCCESS : INSUFFICIENT_SIZE;
}

/* MIG. */

int nvmlDeviceGetMigMode(void *device, unsigned *current, unsigned *pending) {
    ENTER(device);
    *current = *pending = state_of(device)->mig;
    return SUCCESS;
}
int nvmlDeviceGetMaxMigDeviceCount(void *device, unsigned *count) {
    ENTER(device);
    *count = MOST_INSTANCES - 1;
    return SUCCESS;
}
int nvmlDeviceGetMigDeviceHandleByIndex(void *device, unsigned index, void **found) {
    ENTER(device);
    if (index >= MOST_INSTANCES || !present->devices[number(device)][index + 1].present)
        return NOT_FOUND;
    *found = handle_of(number(device), index + 1);
    return SUCCESS;
}

/* Health. */

int nvmlDeviceGetTotalEccErrors(void *device, int type, int counter, u64 *count) {
    (void)type; (void)counter;
    ENTER(device);
    *count = state_of(device)->ecc;
    return SUCCESS;
}
int nvmlDeviceGetFieldValues(void *device, int count, field_value *values) {
    ENTER(device);
    for (int i = 0; i < count; i++) {
        values[i].result = values[i].field == RECOVERY_ACTION ? SUCCESS : NOT_SUPPORTED;
        values[i].type = 1;
        values[i].value.ull = 0;
        values[i].value.ui = state_of(device)->recovery;
    }
    return SUCCESS;
}
int nvmlEventSetCreate(event_set **set) {
    *set = calloc(1, sizeof **set);
    return enter(__func__);
}
int nvmlEventSetFree(event_set *set) { free(set); return SUCCESS; }
int nvmlDeviceRegisterEvents(void *device, u64 types, event_set *set) {
    (void)types;
    ENTER(device);
    set->device = (int)number(device);
    for (int i = 0; i < present->event_count; i++)
        if (present->events[i].serial > set->heard) set->heard = present->events[i].serial;
    return SUCCESS;
}
int nvmlEventSetWait_v2(event_set *set, event_data *data, unsigned timeout_ms) {
    (void)timeout_ms;
    int failed = enter(__func__);
    if (failed) return failed;
    for (int i = 0; i < present->event_count; i++)
        if (present->events[i].serial > set->heard) {
            set->heard = present->events[i].serial;
            if (present->events[i].device != set->device) continue;
            memset(data, 0, sizeof *data);
            data->device = handle_of(set->device, 0);
            data->type = 8;
            data->data = present->events[i].code;
            return SUCCESS;
        }
    return TIMEOUT;
}

/* Where devices are. */

int nvmlDeviceGetTopologyCommonAncestor(void *one, void *other, int *level) {
    ENTER(one);
    *level = present->levels[number(one)][number(other)];
    if (*level == 0 && number(one) != number(other)) *level = 50;
    return SUCCESS;
}
int nvmlDeviceGetP2PStatus(void *one, void *other, int index, int *status) {
    ENTER(one);
    *status = index == 2 && present->nvlink[number(one)][number(other)] ? 0 : 5;
    return SUCCESS;
}
int nvmlDeviceGetCpuAffinity(void *device, unsigned size, unsigned long *mask) {
    ENTER(device);
    if (state_of(device)->cores == 0) return NOT_SUPPORTED;
    memset(mask, 0, size * sizeof *mask);
    mask[0] = state_of(device)->cores;
    return SUCCESS;
}
int nvmlDeviceGetMemoryAffinity(
    void *device, unsigned size, unsigned long *mask, int scope) {
    (void)scope;
    ENTER(device);
    if (state_of(device)->numa < 0) return NOT_SUPPORTED;
    memset(mask, 0, size * sizeof *mask);
    mask[0] = 1UL << state_of(device)->numa;
    return SUCCESS;
}
