/* Stands before the C library and lets writes to the store's file fail, as a disk does. What fails is
 * said by files in the folder TIDEGATE_FAULTS:
 *   write  pwrite fails with ENOSPC
 *   sync   fdatasync and fsync fail with EIO
 *   lose   what is written is lost without a word; the next sync of each file descriptor that was open
 *          then fails once with EIO, as Linux has it, and later ones succeed */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define DESCRIPTORS 65536

/* How often something was lost, and how much of that was told to anybody. */
static unsigned long lost, told;
/* How much of it a descriptor has been told. */
static unsigned long seen[DESCRIPTORS];

static int is_set(const char *fault) {
    char path[4096];
    const char *folder = getenv("TIDEGATE_FAULTS");
    if (!folder) return 0;
    snprintf(path, sizeof path, "%s/%s", folder, fault);
    int before = errno, found = access(path, F_OK) == 0;
    errno = before;
    return found;
}

static int is_store(int fd) {
    char link[64], path[4096];
    int before = errno;
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t length = readlink(link, path, sizeof path - 1);
    errno = before;
    if (length < 0) return 0;
    path[length] = 0;
    return strstr(path, "/data/db/") != NULL;
}

static void opened(int fd) {
    if (fd >= 0 && fd < DESCRIPTORS) seen[fd] = told;
}

static ssize_t write_at(const char *name, int fd, const void *bytes, size_t count, off64_t offset) {
    ssize_t (*real)(int, const void *, size_t, off64_t) = dlsym(RTLD_NEXT, name);
    if (is_set("write") && is_store(fd)) {
        errno = ENOSPC;
        return -1;
    }
    if (is_set("lose") && is_store(fd)) {
        __sync_fetch_and_add(&lost, 1);
        return (ssize_t)count;
    }
    return real(fd, bytes, count, offset);
}

ssize_t pwrite64(int fd, const void *bytes, size_t count, off64_t offset) {
    return write_at("pwrite64", fd, bytes, count, offset);
}

ssize_t pwrite(int fd, const void *bytes, size_t count, off_t offset) {
    return write_at("pwrite", fd, bytes, count, offset);
}

static int sync_by(const char *name, int fd) {
    int (*real)(int) = dlsym(RTLD_NEXT, name);
    int is_told = fd >= 0 && fd < DESCRIPTORS && seen[fd] < lost && is_store(fd);
    if (is_told) seen[fd] = told = lost;
    if (is_told || (is_set("sync") && is_store(fd))) {
        errno = EIO;
        return -1;
    }
    return real(fd);
}

int fdatasync(int fd) { return sync_by("fdatasync", fd); }

int fsync(int fd) { return sync_by("fsync", fd); }

#define OPEN(name)                                                                                     \
    int name(const char *path, int flags, ...) {                                                       \
        va_list more;                                                                                  \
        va_start(more, flags);                                                                         \
        mode_t mode = (flags & (O_CREAT | O_TMPFILE)) ? va_arg(more, mode_t) : 0;                      \
        va_end(more);                                                                                  \
        int (*real)(const char *, int, ...) = dlsym(RTLD_NEXT, #name);                                 \
        int fd = real(path, flags, mode);                                                              \
        opened(fd);                                                                                    \
        return fd;                                                                                     \
    }

OPEN(open)
OPEN(open64)
