/* Runs for 5 ms and appends the times of its first and last instruction, in
   nanoseconds of the monotonic clock, to the file it is given. */
#include <fcntl.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

static long long now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000000000LL + t.tv_nsec;
}

int main(int words, char **word)
{
    long long first = now();
    struct timespec pause = {0, 5000000};
    char line[64];
    int file, length;

    if (words != 2 || (file = open(word[1], O_WRONLY | O_APPEND)) < 0)
        return 1;
    nanosleep(&pause, NULL);
    length = snprintf(line, sizeof line, "%lld ", first);
    length += snprintf(line + length, sizeof line - length, "%lld\n", now());
    _exit(write(file, line, length) != length);
}
