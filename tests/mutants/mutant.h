/* SPDX-License-Identifier: Apache-2.0 */
/* Included first in every file of the build with all mistakes. mutant("NAME") says whether the mistake of that
 * name is switched on (MUTANT=NAME). Each place asks the environment once in a process; the first time
 * that a place is passed, its name is added to the file that MUTANTS_REACHED names. */
#pragma once

#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static inline int mutant_ask(const char *name, const char *line)
{
    const char *chosen = getenv("MUTANT");
    const char *reached = getenv("MUTANTS_REACHED");

    if (reached != NULL) {
        const int file = open(reached, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0666);
        if (file >= 0) {
            /* What is not recorded counts as not reached. */
            const ssize_t written = write(file, line, strlen(line));
            (void)written;
            close(file);
        }
    }
    return chosen != NULL && strcmp(chosen, name) == 0;
}

#define mutant(name)                                                                               \
    (__extension__({                                                                               \
        static int mutant_known = -1;                                                              \
        if (mutant_known < 0)                                                                      \
            mutant_known = mutant_ask(name, name "\n");                                            \
        mutant_known;                                                                              \
    }))
