/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs a fuzz target over every file of a directory, each whole and cut short at many places.
 * Every input ends where its heap block does, so that a sanitizer sees a read past it.
 */
#include "target.h"

#include <glib.h>
#include <string.h>

#define CUTS_MAX 512 /* per file */

static void run(const char *bytes, size_t size)
{
    uint8_t *copy = malloc(size ? size : 1);

    if (!copy)
        abort();
    memcpy(copy, bytes, size);
    LLVMFuzzerTestOneInput(copy, size);
    free(copy);
}

int main(int argc, char **argv)
{
    g_autoptr(GError) error = NULL;
    unsigned n = 0;

    if (argc != 2) {
        fprintf(stderr, "usage: %s DIRECTORY\n", argv[0]);
        return 2;
    }
    g_autoptr(GDir) directory = g_dir_open(argv[1], 0, &error);
    for (const char *name; directory && (name = g_dir_read_name(directory)); n++) {
        g_autofree char *path = g_build_filename(argv[1], name, NULL);
        g_autofree char *bytes = NULL;
        gsize size;

        if (!g_file_get_contents(path, &bytes, &size, &error))
            break;
        const size_t step = size / CUTS_MAX + 1;
        for (size_t length = 0; length < size; length += step)
            run(bytes, length);
        run(bytes, size);
    }
    if (error || n == 0) {
        fprintf(stderr, "%s: %s\n", argv[1], error ? error->message : "no inputs");
        return 1;
    }
    printf("%u inputs\n", n);
    return 0;
}
