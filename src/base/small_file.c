/* SPDX-License-Identifier: Apache-2.0 */
#include "base/small_file.h"

#include <errno.h>
#include <fcntl.h>
#include <gpuledger/error.h>
#include <unistd.h>

#define READ_STEP 16384

static char *refuse(const char *path, int number, GError **error)
{
    g_set_error(error, GPULEDGER_ERROR, GPULEDGER_ERROR_IO, "cannot read \"%s\": %s", path,
                g_strerror(number));
    return NULL;
}

char *small_file_read(const char *path, size_t max, size_t *ret_length, GError **error)
{
    g_autoptr(GString) text = g_string_new(NULL);
    char piece[READ_STEP];
    int number = 0;

    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
    if (fd < 0)
        return refuse(path, errno, error);
    while (text->len <= max) {
        const ssize_t n = read(fd, piece, sizeof(piece));

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            number = errno;
        if (n <= 0)
            break;
        g_string_append_len(text, piece, n);
    }
    close(fd);
    if (number)
        return refuse(path, number, error);
    if (text->len > max) {
        g_set_error(error, GPULEDGER_ERROR, GPULEDGER_ERROR_LIMIT,
                    "\"%s\" is larger than the %zu bytes that are accepted", path, max);
        return NULL;
    }
    if (ret_length)
        *ret_length = text->len;
    return g_string_free(g_steal_pointer(&text), FALSE);
}
