/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/local.h"

#include "app/log.h"
#include "cmd/command.h"

#include <signal.h>

static bool is_on_command_line(const struct config *config, const char *name)
{
    const struct option *option = option_find(name, COMMAND_ANY);
    return config->origins[option_position(option)].source == SOURCE_FLAG;
}

bool local_choose(const struct config *config, bool *ret_local)
{
    *ret_local = is_on_command_line(config, "snapshot") ||
                 is_on_command_line(config, "kubeconfig") || is_on_command_line(config, "context");
    if (!*ret_local || !is_on_command_line(config, "server"))
        return true;
    complain("option '--server': a cluster is given as well; keep one of them");
    return false;
}

bool local_open(const struct config *config, struct local *ret_local, GError **error)
{
    struct store_options options = backend_store_options(config);

    options.silent = true;
    options.all_ask = true;
    *ret_local = (struct local){.store = store_new(&options)};
    log_configure(LOG_LEVEL_ERROR, LOG_FORMAT_LOGFMT);
    signal(SIGPIPE, SIG_IGN);
    ret_local->backend = backend_open(config, ret_local->store, error);
    if (ret_local->backend && backend_read(ret_local->backend, ret_local->store, error))
        return true;
    local_close(ret_local);
    return false;
}

void local_close(struct local *local)
{
    g_clear_pointer(&local->backend, backend_free);
    g_clear_pointer(&local->store, store_free);
}
