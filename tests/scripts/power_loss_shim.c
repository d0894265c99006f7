/* Stands before the C library and records what a process does to the files below the folder TIDEGATE_RECORDED, in the
 * file TIDEGATE_RECORD with the process's id behind it: writes, lengths, names and syncs, in their order.
 * power_loss_images.py reads it and says what each record means. Where there is a file TIDEGATE_KILLED, the process is
 * killed when it syncs next, between two records. With TIDEGATE_SWALLOWED in the environment, the syncs that make
 * sled's log stable do nothing. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#define PATH 4096
#define DESCRIPTORS 65536
#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

struct __attribute__((packed)) record {
    char kind;
    uint16_t path, other;
    uint64_t at, bytes, time;
};

/* Held while a name or a length changes and while a record is written, so that their order is the true one. */
static pthread_mutex_t order = PTHREAD_MUTEX_INITIALIZER;
/* Shared from a write to its record: a kill, which takes it alone, leaves no write without one. */
static pthread_rwlock_t whole = PTHREAD_RWLOCK_INITIALIZER;
/* Descriptors by which sled has its log open: it alone opens it so that it is made where it is not there. */
static char is_log[DESCRIPTORS];

/* The path below the recorded folder; 0 where it is elsewhere. */
static const char *below(const char *path) {
    const char *folder = getenv("TIDEGATE_RECORDED");
    size_t length = folder ? strlen(folder) : 0;
    if (!length || strncmp(path, folder, length) || (path[length] && path[length] != '/')) return 0;
    return path[length] ? path + length + 1 : path + length;
}

/* The same of a descriptor, in `path`. */
static const char *open_at(int fd, char *path) {
    char link[64];
    int before = errno;
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t length = readlink(link, path, PATH - 1);
    errno = before;
    if (length < 0) return 0;
    path[length] = 0;
    return below(path);
}

static void record(char kind, const char *path, const char *other, uint64_t at, const void *bytes, uint64_t count) {
    static int file = -1;
    int before = errno;
    if (file < 0 && getenv("TIDEGATE_RECORD")) {
        char to[PATH];
        snprintf(to, sizeof to, "%s.%d", getenv("TIDEGATE_RECORD"), (int)getpid());
        file = REAL(open)(to, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    }
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    struct record head = {kind, strlen(path), strlen(other), at, count, now.tv_sec * 1000000000ull + now.tv_nsec};
    struct iovec parts[] = {
        {&head, sizeof head}, {(void *)path, head.path}, {(void *)other, head.other},
        {(void *)bytes, bytes ? count : 0},
    };
    size_t wanted = sizeof head + head.path + head.other + (bytes ? count : 0);
    if (file >= 0 && REAL(writev)(file, parts, 4) != (ssize_t)wanted) abort();
    errno = before;
}

static void record_write(int fd, const void *bytes, ssize_t count, off64_t at) {
    char path[PATH];
    const char *name = count > 0 ? open_at(fd, path) : 0;
    if (!name) return;
    pthread_mutex_lock(&order);
    record('w', name, "", at, bytes, count);
    pthread_mutex_unlock(&order);
}

#define WRITE_AT(name, offset)                                             \
    ssize_t name(int fd, const void *bytes, size_t count, offset at) {     \
        pthread_rwlock_rdlock(&whole);                                     \
        ssize_t done = REAL(name)(fd, bytes, count, at);                   \
        record_write(fd, bytes, done, at);                                 \
        pthread_rwlock_unlock(&whole);                                     \
        return done;                                                       \
    }

WRITE_AT(pwrite, off_t)
WRITE_AT(pwrite64, off64_t)

/* Where a write that has just been made by the descriptor's own place began. */
static off64_t began(int fd, ssize_t done) {
    int before = errno;
    off64_t at = done > 0 ? lseek64(fd, 0, SEEK_CUR) - done : 0;
    errno = before;
    return at;
}

ssize_t write(int fd, const void *bytes, size_t count) {
    char path[PATH];
    if (!open_at(fd, path)) return REAL(write)(fd, bytes, count);
    pthread_rwlock_rdlock(&whole);
    ssize_t done = REAL(write)(fd, bytes, count);
    record_write(fd, bytes, done, began(fd, done));
    pthread_rwlock_unlock(&whole);
    return done;
}

ssize_t writev(int fd, const struct iovec *parts, int count) {
    char path[PATH];
    if (!open_at(fd, path)) return REAL(writev)(fd, parts, count);
    pthread_rwlock_rdlock(&whole);
    ssize_t done = REAL(writev)(fd, parts, count);
    ssize_t left = done;
    off64_t at = began(fd, done);
    for (int part = 0; part < count && left > 0; part++) {
        ssize_t here = (ssize_t)parts[part].iov_len < left ? (ssize_t)parts[part].iov_len : left;
        record_write(fd, parts[part].iov_base, here, at);
        at += here;
        left -= here;
    }
    pthread_rwlock_unlock(&whole);
    return done;
}

/* Whoever copies by these writes instead. */
ssize_t copy_file_range(int from, off64_t *at, int to, off64_t *there, size_t count, unsigned int flags) {
    (void)from, (void)at, (void)to, (void)there, (void)count, (void)flags;
    errno = ENOSYS;
    return -1;
}

ssize_t sendfile64(int to, int from, off64_t *at, size_t count) {
    char path[PATH];
    if (!open_at(to, path)) return REAL(sendfile64)(to, from, at, count);
    errno = EINVAL;
    return -1;
}

static int sync_by(int (*real)(int), int fd, int is_swallowed) {
    static uint64_t syncs;
    char path[PATH];
    const char *name = open_at(fd, path);
    if (!name) return real(fd);
    if (getenv("TIDEGATE_KILLED") && access(getenv("TIDEGATE_KILLED"), F_OK) == 0) {
        pthread_rwlock_wrlock(&whole);
        pthread_mutex_lock(&order);
        kill(getpid(), SIGKILL);
    }
    if (is_swallowed && fd >= 0 && fd < DESCRIPTORS && is_log[fd]) return 0;
    pthread_mutex_lock(&order);
    uint64_t id = (uint64_t)getpid() << 32 | ++syncs;
    record('b', name, "", id, 0, 0);
    pthread_mutex_unlock(&order);
    int failed = real(fd);
    pthread_mutex_lock(&order);
    if (!failed) record('s', name, "", id, 0, 0);
    pthread_mutex_unlock(&order);
    return failed;
}

int fsync(int fd) { return sync_by(REAL(fsync), fd, 0); }

int fdatasync(int fd) { return sync_by(REAL(fdatasync), fd, getenv("TIDEGATE_SWALLOWED") != 0); }

#define TRUNCATE(name, offset)                                             \
    int name(int fd, offset length) {                                      \
        char path[PATH];                                                   \
        const char *below = open_at(fd, path);                             \
        pthread_mutex_lock(&order);                                        \
        int failed = REAL(name)(fd, length);                               \
        if (!failed && below) record('t', below, "", length, 0, 0);        \
        pthread_mutex_unlock(&order);                                      \
        return failed;                                                     \
    }

TRUNCATE(ftruncate, off_t)
TRUNCATE(ftruncate64, off64_t)

#define OPEN(name)                                                         \
    int name(const char *path, int flags, ...) {                           \
        va_list more;                                                      \
        va_start(more, flags);                                             \
        mode_t mode = (flags & (O_CREAT | O_TMPFILE)) ? va_arg(more, mode_t) : 0; \
        va_end(more);                                                      \
        const char *name_ = (flags & (O_CREAT | O_TRUNC)) ? below(path) : 0; \
        if (!name_) return REAL(name)(path, flags, mode);                  \
        pthread_mutex_lock(&order);                                        \
        int before = errno, was_there = access(path, F_OK) == 0;           \
        errno = before;                                                    \
        int fd = REAL(name)(path, flags, mode);                            \
        if (fd >= 0 && !was_there) record('c', name_, "", 0, 0, 0);        \
        if (fd >= 0 && was_there && (flags & O_TRUNC)) record('t', name_, "", 0, 0, 0); \
        if (fd >= 0 && fd < DESCRIPTORS) is_log[fd] = !strcmp(name_, "data/db/db"); \
        pthread_mutex_unlock(&order);                                      \
        return fd;                                                         \
    }

OPEN(open)
OPEN(open64)

int close(int fd) {
    if (fd >= 0 && fd < DESCRIPTORS) is_log[fd] = 0;
    return REAL(close)(fd);
}

int rename(const char *from, const char *to) {
    const char *old = below(from), *new = below(to);
    pthread_mutex_lock(&order);
    int failed = REAL(rename)(from, to);
    if (!failed && (old || new)) record('r', old ? old : "", new ? new : "", 0, 0, 0);
    pthread_mutex_unlock(&order);
    return failed;
}

int unlink(const char *path) {
    const char *name = below(path);
    pthread_mutex_lock(&order);
    int failed = REAL(unlink)(path);
    if (!failed && name) record('u', name, "", 0, 0, 0);
    pthread_mutex_unlock(&order);
    return failed;
}

int unlinkat(int folder, const char *path, int flags) {
    char whole[2 * PATH];
    const char *name = 0;
    if (path[0] == '/') {
        name = below(path);
    } else if (folder != AT_FDCWD && open_at(folder, whole)) {
        size_t length = strlen(whole);
        snprintf(whole + length, sizeof whole - length, "/%s", path);
        name = below(whole);
    }
    pthread_mutex_lock(&order);
    int failed = REAL(unlinkat)(folder, path, flags);
    if (!failed && name) record('u', name, "", 0, 0, 0);
    pthread_mutex_unlock(&order);
    return failed;
}

int mkdir(const char *path, mode_t mode) {
    const char *name = below(path);
    pthread_mutex_lock(&order);
    int failed = REAL(mkdir)(path, mode);
    if (!failed && name) record('d', name, "", 0, 0, 0);
    pthread_mutex_unlock(&order);
    return failed;
}

int rmdir(const char *path) {
    const char *name = below(path);
    pthread_mutex_lock(&order);
    int failed = REAL(rmdir)(path);
    if (!failed && name) record('u', name, "", 0, 0, 0);
    pthread_mutex_unlock(&order);
    return failed;
}
