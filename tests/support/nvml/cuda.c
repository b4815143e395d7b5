/* A stand-in for the CUDA driver: which of the made-up devices a process sees.
 *
 * Devices are those of the file that drives the stand-in NVML. As the real driver does,
 * it reads CUDA_VISIBLE_DEVICES (here indices only) once, when it starts. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SUCCESS = 0, INVALID_VALUE = 1, NOT_INITIALIZED = 3, MOST_DEVICES = 16 };

static int started, count;
static char uuids[MOST_DEVICES][16];

static int read_uuid(int index, char *uuid) {
    FILE *file = fopen(getenv("FAKE_NVML_FILE"), "r");
    char line[4096], start[32];
    int found = 0;
    snprintf(start, sizeof start, "device %d ", index);
    while (file && !found && fgets(line, sizeof line, file)) {
        char *at = strncmp(line, start, strlen(start)) ? NULL : strstr(line, "uuid=GPU-");
        if (at == NULL) continue;
        at += strlen("uuid=GPU-");
        for (found = 1; found <= 16; at += 2) {
            if (*at == '-') at++;
            unsigned byte;
            if (sscanf(at, "%2x", &byte) != 1) break;
            uuid[found++ - 1] = (char)byte;
        }
    }
    if (file) fclose(file);
    return found;
}

int cuInit(unsigned flags) {
    (void)flags;
    char *visible = getenv("CUDA_VISIBLE_DEVICES");
    for (char *at = visible; !started && at && *at && count < MOST_DEVICES;) {
        if (read_uuid((int)strtol(at, &at, 10), uuids[count])) count++;
        at += strspn(at, ",");
    }
    started = 1;
    return SUCCESS;
}
int cuDeviceGetCount(int *found) {
    *found = count;
    return started ? SUCCESS : NOT_INITIALIZED;
}
int cuDeviceGet(int *device, int number) {
    *device = number;
    return number < count ? SUCCESS : INVALID_VALUE;
}
int cuDeviceGetUuid_v2(char *uuid, int device) {
    memcpy(uuid, uuids[device], sizeof uuids[device]);
    return SUCCESS;
}
