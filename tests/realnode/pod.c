/* SPDX-License-Identifier: Apache-2.0
 * What runs in the test's containers, and in the sandboxes: prints the environment, then waits and
 * collects orphans until it is told to end. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

static void end(int number)
{
    (void)number;
    _exit(0);
}

int main(void)
{
    signal(SIGTERM, end);
    signal(SIGINT, end);
    for (char **each = environ; *each; each++)
        puts(*each);
    puts("END");
    fflush(stdout);
    for (;;) {
        while (waitpid(-1, NULL, WNOHANG) > 0)
            ;
        sleep(60);
    }
}
