/* sled 0.34 writes a portion of its log, calls this, and may then overwrite what that portion takes the place of. The
 * function of the C library writes no length of a file and flushes no cache of a disk (sync_file_range(2), "Warning"):
 * after a loss of power the disk could have what is overwritten and not what takes its place. This one, which the
 * linker finds first, makes the portion durable. It is also an error of sled's own where that fails. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <unistd.h>

int sync_file_range(int file, off64_t offset, off64_t bytes, unsigned int flags) {
    (void)offset, (void)bytes, (void)flags;
    return fdatasync(file);
}
