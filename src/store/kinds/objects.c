/* SPDX-License-Identifier: Apache-2.0 */
/* Objects of the table's kinds come, change and go; what may be said of kinds by their rows. */
#include "base/metrics.h"
#include "store/kinds/kind.h"
#include "store/store_state.h"

const char *kind_cell_name(unsigned cell)
{
    static const char *const watched[] = {"admissionchecks", "workloads"};

    if (cell >= FEEDS_MAX)
        return watched[cell - FEEDS_MAX];
    return cell < (unsigned)kinds_n ? kinds[cell]->feed : NULL;
}

static void write_fault(enum feed feed, const struct object_fault *fault)
{
    static struct log_limit limits[FEEDS_MAX] = {[0 ... FEEDS_MAX - 1] = LOG_LIMIT_INIT};
    uint64_t suppressed = 0;

    if (fault->counted)
        metrics_count(COUNTER_OBJECTS_BAD, feed);
    if (!log_enabled(LOG_LEVEL_WARN) ||
        (fault->limited &&
         !log_limit_pass(&limits[feed], g_get_monotonic_time() / 1000, &suppressed)))
        return;
    if (suppressed > 0)
        log_event(LOG_LEVEL_WARN, fault->message, LOG_NUMBER("suppressed", suppressed));
    log_write(LOG_LEVEL_WARN, fault->message, fault->fields, fault->fields[1].key ? 2 : 1);
}

static void write_faults(const struct store *store, enum feed feed, struct object_faults *faults)
{
    for (size_t i = 0; i < faults->n; i++) {
        if (!store->options.silent)
            write_fault(feed, &faults->faults[i]);
        g_free(faults->faults[i].text);
    }
}

bool store_wants(const struct store *store, enum feed feed)
{
    return !kinds[feed]->wanted || kinds[feed]->wanted(&store->options);
}

static bool concerns(const struct store *store, enum feed feed, const struct object_name *name)
{
    return store_wants(store, feed) &&
           (!kinds[feed]->concerns || kinds[feed]->concerns(&store->options, name));
}

/* Not under the lock. */
static void *read_object(const struct store *store, enum feed feed, const struct object_name *name,
                         const void *view)
{
    return kinds[feed]->read ? kinds[feed]->read(store, name, view) : NULL;
}

static void free_read(enum feed feed, void *read)
{
    if (read)
        kinds[feed]->free_read(read);
}

/* Under the lock. */
static struct kind_call call_of(struct store *store, enum feed feed, struct object_faults *faults)
{
    store->kept[feed].free = kinds[feed]->free;
    return (struct kind_call){store, &store->kept[feed].own, store->generation[feed], faults, NULL};
}

void store_sweep_objects(struct store *store, enum feed feed)
{
    const struct kind_call call = call_of(store, feed, NULL);

    if (kinds[feed]->sweep)
        kinds[feed]->sweep(&call);
}

void store_apply_object(struct store *store, enum feed feed, const void *view)
{
    struct object_faults faults = {.n = 0};

    if (!concerns(store, feed, view))
        return;
    void *read = read_object(store, feed, view, view);
    store_lock(store);
    const uint64_t number = observer_number(store->observer);
    struct kind_call call = call_of(store, feed, &faults);
    call.read = read;
    kinds[feed]->apply(&call, view);
    store_unlock(store);
    free_read(feed, read);
    observer_tell(store->observer,
                  &(struct observation){OBSERVED_OBJECT, number, .feed = feed, .view = view});
    write_faults(store, feed, &faults);
}

void store_remove_object(struct store *store, enum feed feed, const struct object_name *name)
{
    g_autofree struct object_name *view = g_malloc0(kinds[feed]->size);

    *view = *name;
    if (!concerns(store, feed, name))
        return;
    void *read = read_object(store, feed, name, NULL);
    store_lock(store);
    const uint64_t number = observer_number(store->observer);
    struct kind_call call = call_of(store, feed, NULL);
    call.read = read;
    kinds[feed]->remove(&call, name);
    store_unlock(store);
    free_read(feed, read);
    observer_tell(store->observer,
                  &(struct observation){OBSERVED_OBJECT_GONE, number, .feed = feed, .view = view});
}
