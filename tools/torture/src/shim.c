/*
 * Stands between this program and the system for files below one directory.
 *
 * Linked into the program, so that RocksDB and Rust's standard library both call it. Without the
 * variables below it only forwards. They are read once, when the process starts:
 *
 *   HAMDEX_IO_BELOW  prefix of the paths that are affected
 *   HAMDEX_IO_FAIL   KIND:N:ERRNO fails the Nth call of a kind, counted from 1
 *   HAMDEX_IO_STORM  interrupts and shortens calls at random, from this seed
 *   HAMDEX_IO_COUNT  file for the number of calls of each kind, written at the end of the process
 *   HAMDEX_IO_LOG    file for a record of every change and sync, in their order
 *
 * A call that fails prints "fault KIND PATH" to stdout, which the parent reads.
 */
#define _GNU_SOURCE
#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#define FILES 65536

enum kind {
    OPEN, CREATE, READ, WRITE, WRITEMANIFEST, TRUNCATE, SYNC, SYNCMANIFEST, SYNCDIR, RENAME, MKDIR, LINK, UNLINK, KINDS
};

static const char *const NAMES[KINDS] = {
    "open", "create", "read", "write", "writemanifest", "truncate", "sync", "syncmanifest", "syncdir", "rename",
    "mkdir", "link", "unlink",
};

/* What an open file is; the name is NULL for files elsewhere. */
struct file {
    char *name;
    uint64_t node;
    int append;
    int directory;
};

static struct file files[FILES];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static const char *below;
static size_t below_length;
static int fail_kind = -1;
static unsigned long fail_at;
static int fail_errno;
static int storms;
static _Atomic uint64_t storm;
static const char *count_name;
static atomic_ulong counts[KINDS];
static int log_file = -1;

__attribute__((constructor)) static void begin(void) {
    const char *fail = getenv("HAMDEX_IO_FAIL");
    const char *seed = getenv("HAMDEX_IO_STORM");
    const char *log = getenv("HAMDEX_IO_LOG");
    below = getenv("HAMDEX_IO_BELOW");
    if (below == NULL) return;
    below_length = strlen(below);
    count_name = getenv("HAMDEX_IO_COUNT");
    if (fail != NULL) {
        char name[16] = "";
        if (sscanf(fail, "%15[a-z]:%lu:%d", name, &fail_at, &fail_errno) == 3) {
            for (int kind = 0; kind < KINDS; kind++) {
                if (strcmp(name, NAMES[kind]) == 0) fail_kind = kind;
            }
        }
    }
    if (seed != NULL) {
        storms = 1;
        storm = strtoull(seed, NULL, 10) | 1;
    }
    if (log != NULL) {
        log_file = (int)syscall(SYS_openat, AT_FDCWD, log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    }
}

__attribute__((destructor)) static void end(void) {
    if (count_name == NULL) return;
    FILE *out = fopen(count_name, "w");
    if (out == NULL) return;
    for (int kind = 0; kind < KINDS; kind++) {
        fprintf(out, "%s %lu\n", NAMES[kind], atomic_load(&counts[kind]));
    }
    fclose(out);
}

static int is_below(const char *name) {
    return below != NULL && name != NULL && strncmp(name, below, below_length) == 0;
}

/* Returns the name of an open file below the directory, or NULL. */
static const char *name_of(int fd) {
    return below != NULL && fd >= 0 && fd < FILES ? files[fd].name : NULL;
}

/* A MANIFEST is written and synced rarely, but what is in doubt after a failure is the whole database. */
static int is_manifest(const char *name) {
    const char *last = strrchr(name, '/');
    return last != NULL && strncmp(last, "/MANIFEST-", 10) == 0;
}

/* Counts a call; returns 1, with errno set, if this one has to fail. */
static int fails(enum kind kind, const char *name) {
    unsigned long now = atomic_fetch_add(&counts[kind], 1) + 1;
    if ((int)kind != fail_kind || now != fail_at) return 0;
    char line[512];
    int length = snprintf(line, sizeof line, "fault %s %s\n", NAMES[kind], name + below_length);
    if (length > (int)sizeof line - 1) length = (int)sizeof line - 1;
    syscall(SYS_write, 1, line, (size_t)length);
    errno = fail_errno;
    return 1;
}

/* Draws a number below a bound; SplitMix64. */
static unsigned drawn(unsigned bound) {
    uint64_t x = atomic_fetch_add(&storm, 0x9e3779b97f4a7c15u);
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return (unsigned)((x ^ (x >> 31)) % bound);
}

/* Interrupts or shortens a transfer; returns the new length, or -1 with EINTR. */
static ssize_t disturbed(size_t length) {
    if (!storms || length == 0) return (ssize_t)length;
    switch (drawn(3)) {
        case 0:
            errno = EINTR;
            return -1;
        case 1:
            return (ssize_t)(1 + drawn((unsigned)(length < 1u << 20 ? length : 1u << 20)));
        default:
            return (ssize_t)length;
    }
}

/* Appends a record: what happened, to which file, with two names and data. */
static void record(char what, uint64_t node, uint64_t at, const char *one, const char *two,
                   const void *data, size_t length) {
    if (log_file < 0) return;
    size_t first = one ? strlen(one) : 0, second = two ? strlen(two) : 0;
    uint64_t numbers[5] = {htobe64(node), htobe64(at), htobe64(first), htobe64(second), htobe64(length)};
    struct iovec parts[] = {
        {&what, 1}, {numbers, sizeof numbers},
        {(void *)one, first}, {(void *)two, second}, {(void *)data, length},
    };
    if (syscall(SYS_writev, log_file, parts, 5L) < 0) _exit(70);
}

static void hold(void) {
    if (log_file >= 0) pthread_mutex_lock(&lock);
}

static void release(void) {
    int kept = errno;
    if (log_file >= 0) pthread_mutex_unlock(&lock);
    errno = kept;
}

static int opened(const char *name, int flags, mode_t mode) {
    int creates = (flags & O_CREAT) && syscall(SYS_faccessat, AT_FDCWD, name, F_OK) != 0;
    if (fails(creates ? CREATE : OPEN, name)) return -1;
    hold();
    int fd = (int)syscall(SYS_openat, AT_FDCWD, name, flags, mode);
    struct stat found;
    if (fd >= 0 && fd < FILES && syscall(SYS_fstat, fd, &found) == 0) {
        struct file *file = &files[fd];
        free(file->name);
        file->name = strdup(name);
        file->node = found.st_ino;
        file->append = (flags & O_APPEND) != 0;
        file->directory = S_ISDIR(found.st_mode);
        if (creates) {
            record('c', file->node, 0, name, NULL, NULL, 0);
        } else if (flags & O_TRUNC) {
            record('t', file->node, 0, NULL, NULL, NULL, 0);
        }
    }
    release();
    return fd;
}

/* Writes the full name of a file named relative to an open directory; returns 0 if elsewhere. */
static int full_name(char *full, size_t size, int directory, const char *name) {
    if (name[0] == '/' || directory == AT_FDCWD) {
        return is_below(name) && snprintf(full, size, "%s", name) < (int)size;
    }
    const char *above = name_of(directory);
    return above != NULL && snprintf(full, size, "%s/%s", above, name) < (int)size;
}

int openat(int directory, const char *name, int flags, ...) {
    mode_t mode = 0;
    if (flags & (O_CREAT | O_TMPFILE)) {
        va_list rest;
        va_start(rest, flags);
        mode = va_arg(rest, mode_t);
        va_end(rest);
    }
    char full[4096];
    if (!full_name(full, sizeof full, directory, name)) {
        return (int)syscall(SYS_openat, directory, name, flags, mode);
    }
    return opened(full, flags, mode);
}

int openat64(int directory, const char *name, int flags, ...) __attribute__((alias("openat")));

int open(const char *name, int flags, ...) {
    mode_t mode = 0;
    if (flags & (O_CREAT | O_TMPFILE)) {
        va_list rest;
        va_start(rest, flags);
        mode = va_arg(rest, mode_t);
        va_end(rest);
    }
    return openat(AT_FDCWD, name, flags, mode);
}

int open64(const char *name, int flags, ...) __attribute__((alias("open")));

int close(int fd) {
    if (name_of(fd) != NULL) {
        hold();
        free(files[fd].name);
        files[fd].name = NULL;
        release();
    }
    return (int)syscall(SYS_close, fd);
}

ssize_t pread(int fd, void *to, size_t length, off_t at) {
    const char *name = name_of(fd);
    if (name != NULL) {
        if (fails(READ, name)) return -1;
        ssize_t some = disturbed(length);
        if (some < 0) return -1;
        length = (size_t)some;
    }
    return syscall(SYS_pread64, fd, to, length, at);
}

ssize_t pread64(int fd, void *to, size_t length, off_t at) __attribute__((alias("pread")));

ssize_t read(int fd, void *to, size_t length) {
    const char *name = name_of(fd);
    if (name != NULL) {
        if (fails(READ, name)) return -1;
        ssize_t some = disturbed(length);
        if (some < 0) return -1;
        length = (size_t)some;
    }
    return syscall(SYS_read, fd, to, length);
}

/* Not interrupted: RocksDB repeats such a read only if nothing was read before the signal. */
static ssize_t cookie_read(void *cookie, char *to, size_t length) {
    ssize_t done;
    do done = read((int)(intptr_t)cookie, to, length);
    while (done < 0 && errno == EINTR);
    return done;
}

static int cookie_seek(void *cookie, off64_t *at, int whence) {
    off_t now = lseek((int)(intptr_t)cookie, *at, whence);
    if (now < 0) return -1;
    *at = now;
    return 0;
}

static int cookie_close(void *cookie) {
    return close((int)(intptr_t)cookie);
}

/* The C library reads for its streams by itself; this one reads through the functions above. */
static FILE *stream(int fd, const char *mode) {
    cookie_io_functions_t calls = {.read = cookie_read, .seek = cookie_seek, .close = cookie_close};
    return fopencookie((void *)(intptr_t)fd, mode, calls);
}

FILE *_IO_fdopen(int fd, const char *mode);

FILE *fdopen(int fd, const char *mode) {
    return name_of(fd) != NULL && strcmp(mode, "r") == 0 ? stream(fd, mode) : _IO_fdopen(fd, mode);
}

/* Writes at an offset, or where the file is if that is negative. */
static ssize_t written(int fd, const void *from, size_t length, off_t at) {
    const char *name = name_of(fd);
    if (name != NULL) {
        if (fails(is_manifest(name) ? WRITEMANIFEST : WRITE, name)) return -1;
        ssize_t some = disturbed(length);
        if (some < 0) return -1;
        length = (size_t)some;
    }
    int tracked = log_file >= 0 && (name != NULL || fd == 1);
    if (tracked) hold();
    off_t place = at;
    if (tracked && name != NULL && at < 0) {
        struct stat found;
        if (files[fd].append && syscall(SYS_fstat, fd, &found) == 0) place = found.st_size;
        else place = (off_t)syscall(SYS_lseek, fd, 0, SEEK_CUR);
    }
    ssize_t done = at < 0 ? syscall(SYS_write, fd, from, length)
                          : syscall(SYS_pwrite64, fd, from, length, at);
    if (tracked && done > 0) {
        if (name != NULL) record('w', files[fd].node, (uint64_t)place, NULL, NULL, from, (size_t)done);
        else record('k', 0, 0, NULL, NULL, from, (size_t)done);
    }
    if (tracked) release();
    return done;
}

ssize_t write(int fd, const void *from, size_t length) {
    return written(fd, from, length, -1);
}

ssize_t pwrite(int fd, const void *from, size_t length, off_t at) {
    return written(fd, from, length, at);
}

ssize_t pwrite64(int fd, const void *from, size_t length, off_t at) __attribute__((alias("pwrite")));

int ftruncate(int fd, off_t length) {
    const char *name = name_of(fd);
    if (name == NULL) return (int)syscall(SYS_ftruncate, fd, length);
    if (fails(TRUNCATE, name)) return -1;
    hold();
    int done = (int)syscall(SYS_ftruncate, fd, length);
    if (done == 0) record('t', files[fd].node, (uint64_t)length, NULL, NULL, NULL, 0);
    release();
    return done;
}

int ftruncate64(int fd, off_t length) __attribute__((alias("ftruncate")));

static int synced(int fd, long number) {
    const char *name = name_of(fd);
    if (name == NULL) return (int)syscall(number, fd);
    int directory = files[fd].directory;
    enum kind kind = directory ? SYNCDIR : is_manifest(name) ? SYNCMANIFEST : SYNC;
    if (fails(kind, name)) return -1;
    hold();
    int done = (int)syscall(number, fd);
    if (done == 0) record(directory ? 'd' : 's', files[fd].node, 0, name, NULL, NULL, 0);
    release();
    return done;
}

int fsync(int fd) {
    return synced(fd, SYS_fsync);
}

int fdatasync(int fd) {
    return synced(fd, SYS_fdatasync);
}

int rename(const char *from, const char *to) {
    if (!is_below(to)) return (int)syscall(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, 0);
    if (fails(RENAME, to)) return -1;
    hold();
    int done = (int)syscall(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, 0);
    if (done == 0) record('r', 0, 0, from, to, NULL, 0);
    release();
    return done;
}

int mkdir(const char *name, mode_t mode) {
    if (!is_below(name)) return (int)syscall(SYS_mkdirat, AT_FDCWD, name, mode);
    if (fails(MKDIR, name)) return -1;
    hold();
    int done = (int)syscall(SYS_mkdirat, AT_FDCWD, name, mode);
    if (done == 0) record('m', 0, 0, name, NULL, NULL, 0);
    release();
    return done;
}

static int linked(const char *from, const char *to, int flags) {
    if (!is_below(to)) return (int)syscall(SYS_linkat, AT_FDCWD, from, AT_FDCWD, to, flags);
    if (fails(LINK, to)) return -1;
    hold();
    int done = (int)syscall(SYS_linkat, AT_FDCWD, from, AT_FDCWD, to, flags);
    if (done == 0) record('l', 0, 0, from, to, NULL, 0);
    release();
    return done;
}

int link(const char *from, const char *to) {
    return linked(from, to, 0);
}

int linkat(int one, const char *from, int two, const char *to, int flags) {
    if (one != AT_FDCWD || two != AT_FDCWD) return (int)syscall(SYS_linkat, one, from, two, to, flags);
    return linked(from, to, flags);
}

int unlinkat(int directory, const char *name, int flags) {
    char full[4096];
    if (!full_name(full, sizeof full, directory, name)) {
        return (int)syscall(SYS_unlinkat, directory, name, flags);
    }
    if (fails(UNLINK, full)) return -1;
    hold();
    int done = (int)syscall(SYS_unlinkat, directory, name, flags);
    if (done == 0) record('u', 0, 0, full, NULL, NULL, 0);
    release();
    return done;
}

int unlink(const char *name) {
    return unlinkat(AT_FDCWD, name, 0);
}

int rmdir(const char *name) {
    return unlinkat(AT_FDCWD, name, AT_REMOVEDIR);
}

/* Not offered, so that copies are read and written through the functions above. */
ssize_t copy_file_range(int from, off64_t *at, int to, off64_t *there, size_t length, unsigned flags) {
    (void)from, (void)at, (void)to, (void)there, (void)length, (void)flags;
    errno = EXDEV;
    return -1;
}

ssize_t sendfile(int to, int from, off_t *at, size_t length) {
    (void)to, (void)from, (void)at, (void)length;
    errno = EINVAL;
    return -1;
}

ssize_t sendfile64(int to, int from, off_t *at, size_t length) __attribute__((alias("sendfile")));
