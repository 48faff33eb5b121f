/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/local.h"

#include "base/log.h"
#include "options/command.h"

#include <signal.h>

bool local_choose(const struct config *config, bool *ret_local)
{
    const char *asked = config_on_command_line(config, "server")    ? "server"
                        : config_on_command_line(config, "service") ? "service"
                                                                    : NULL;

    const bool saved = config_on_command_line(config, "snapshot");
    const char *live = config_on_command_line(config, "kubeconfig") ? "kubeconfig"
                       : config_on_command_line(config, "context")  ? "context"
                                                                    : NULL;

    *ret_local = saved || live;
    if (saved && live) {
        complain("option '--%s': a saved cluster (--snapshot) is given as well; keep one of them",
                 live);
        return false;
    }
    if (!*ret_local || !asked)
        return true;
    complain("option '--%s': a cluster is given as well; keep one of them", asked);
    return false;
}

static bool read_cluster(struct local *local, const struct config *config, GError **error)
{
    if (!keys_read(local->keys, config, NULL, error))
        return false;
    local->backend = backend_open(config, local->store, error);
    return local->backend && keys_read(local->keys, config, local->backend, error) &&
           backend_read(local->backend, local->store, error);
}

bool local_open(const struct config *config, struct local *ret_local, GError **error)
{
    struct store_options options = backend_store_options(config);

    options.silent = true;
    options.all_ask = true;
    *ret_local = (struct local){.keys = keys_new_checking()};
    options.seals = keys_seals(ret_local->keys);
    ret_local->store = store_new(&options);
    log_configure(LOG_LEVEL_ERROR, LOG_FORMAT_LOGFMT);
    signal(SIGPIPE, SIG_IGN);
    if (!read_cluster(ret_local, config, error)) {
        local_close(ret_local);
        return false;
    }
    keys_say_unchecked(ret_local->keys);
    return true;
}

void local_close(struct local *local)
{
    g_clear_pointer(&local->backend, backend_free);
    g_clear_pointer(&local->store, store_free);
    g_clear_pointer(&local->keys, keys_free);
}
