/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * An input as a file that has a name, for readers that take names.
 */
#include "target.h"

#include <glib.h>
#include <sys/mman.h>
#include <unistd.h>

struct memory_file {
    int fd;
    char path[32];
};

static inline struct memory_file memory_file_new(const void *data, size_t size)
{
    struct memory_file file = {.fd = memfd_create("fuzz", MFD_CLOEXEC)};

    FUZZ_CHECK(file.fd >= 0 && write(file.fd, data, size) == (ssize_t)size);
    g_snprintf(file.path, sizeof file.path, "/proc/self/fd/%d", file.fd);
    return file;
}

static inline void memory_file_close(struct memory_file *file)
{
    close(file->fd);
}
