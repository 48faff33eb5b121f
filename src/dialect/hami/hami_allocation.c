/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a bound pod holds, as text: per container and card "UUID,NVIDIA,MiB,percent:", and ';' after
 * every container or between two.
 *
 * Source: Project-HAMi/HAMi@v2.10.0:pkg/device/devices.go, also v2.4.1 to v2.9.0;
 * 4paradigm/k8s-vgpu-scheduler@da7d4ed:pkg/util/util.go;
 * volcano-sh/volcano@ed72c7c8:pkg/scheduler/api/devices/nvidia/vgpu/utils.go. The second field is
 * the vendor's word, never the model: the plugins look for it to learn whether anything is left to
 * hand out. HAMi puts init containers first; before v2.9 it left them out, and empty places too, so
 * a place means nothing unless there is one for every container.
 */
#include "core/allocation.h"
#include "dialect/amounts.h"
#include "dialect/hami/hami_mig.h"
#include "dialect/hold.h"
#include "dialect/warning.h"

#include <gpuledger/error.h>
#include <string.h>

/* Source: Project-HAMi/HAMi@v2.10.0:pkg/device/nvidia/device.go */
#define VENDOR "NVIDIA"
#define NS_PER_S INT64_C(1000000000)
/* Year 2116, as elsewhere; later ones are the plugins' "never". */
#define TIME_MAX_S (G_MAXINT64 / 2 / NS_PER_S)

/* --- writing ---------------------------------------------------------------------------------- */

/* The container that has the n-th place in the text; positions as in pod_view.containers. */
static int32_t container_at(const struct vgpu *vgpu, int32_t n_containers, int32_t n_init,
                            int32_t place)
{
    if (!vgpu->init_first)
        return place;
    return place < n_init ? n_containers - n_init + place : place - n_init;
}

static int32_t count_places(const struct vgpu *vgpu, int32_t n_containers, int32_t n_init)
{
    return vgpu->init_first ? n_containers : n_containers - n_init;
}

/* What the plugin reads of an allocation. */
struct words {
    GString *devices, *instances;
    struct json_writer writer; /* of the instances */
    const char *group;         /* as in struct vgpu */
};

static void write_instance(const struct node *node, const struct share *share,
                           const struct card *card, int32_t place, int32_t device,
                           struct words *words)
{
    const struct hami_mig_entry entry = {place, device, card->key, share->place};
    const struct mig_profile *profile =
        mig_find(card->mig, share->place, card_bytes(node, card, share->memory), share->core);

    /* No profile: the plugin will fail the pod, as it will without a card. */
    if (profile)
        hami_mig_write(&words->writer, &entry, card->uuid, profile->name);
}

static void write_container(const struct allocation *allocation, const struct node *node,
                            int32_t container, int32_t place, struct words *words)
{
    const int64_t told_mib = allocation->terms ? MAX(allocation->terms->told_mib, 1) : 1;
    int32_t device = 0;

    for (uint32_t i = 0; i < allocation->n_shares; i++) {
        const struct share *share = &allocation->shares[i];
        const struct card *card = node_share_card(node, share);
        /* No card: the node has changed since it was chosen, and the plugin will fail the pod. */
        if (share->container != container || !card || !card->uuid)
            continue;
        g_string_append(words->devices, card->uuid);
        hami_mig_write_index(words->group, share->place, words->devices);
        g_string_append_printf(words->devices, "," VENDOR ",%" G_GINT64_FORMAT ",%d:",
                               card_bytes(node, card, share->memory) / MIB / told_mib,
                               share->core / (CORE_WHOLE / 100));
        if (card->mig && share->place.layout == 0)
            write_instance(node, share, card, place, device, words);
        device++;
    }
}

static void write_words(const struct vgpu *vgpu, const struct allocation *allocation,
                        const struct node *node, struct words *words)
{
    const struct terms *terms = allocation->terms;
    const int32_t n = terms && terms->containers ? (int32_t)g_strv_length(terms->containers) : 0;
    const int32_t n_init = terms ? terms->n_init : 0, places = count_places(vgpu, n, n_init);

    json_writer_init(&words->writer, words->instances);
    json_begin_array(&words->writer);
    for (int32_t place = 0; place < places; place++) {
        write_container(allocation, node, container_at(vgpu, n, n_init, place), place, words);
        if (vgpu->ends_each || place + 1 < places)
            g_string_append_c(words->devices, ';');
    }
    json_end_array(&words->writer);
}

/* The plugin serves the pod with the least time: that of the new pod, then, beside stray promises. */
static int64_t time_to_write(const struct allocation *allocation, const struct node *node)
{
    const int64_t outranked = dialect_outranked(node, allocation->dialect);
    const int64_t seconds =
        allocation->turn ? allocation->turn : allocation->assume_time_ns / NS_PER_S;

    return outranked == INT64_MAX ? seconds : MIN(seconds, outranked - 1);
}

void vgpu_write_annotations(const struct vgpu *vgpu, const struct allocation *allocation,
                            const struct node *node, struct annotations *annotations)
{
    const int64_t seconds = allocation->assume_time_ns / NS_PER_S;
    g_autoptr(GString) devices = g_string_new(NULL), instances = g_string_new(NULL);
    struct words words = {.devices = devices, .instances = instances, .group = vgpu->mig_group};

    write_words(vgpu, allocation, node, &words);
    for (int i = 0; i < VGPU_KEYS_MAX && vgpu->allocated[i]; i++) {
        annotations_add(annotations, vgpu->allocated[i], g_strdup(devices->str));
        annotations_add(annotations, vgpu->promised[i], g_strdup(devices->str));
    }
    if (vgpu->instances && instances->len > strlen("[]"))
        annotations_add(annotations, vgpu->instances, g_strdup(instances->str));
    annotations_add(annotations, vgpu->node, g_strdup(node->name));
    annotations_add(annotations, vgpu->time,
                    g_strdup_printf("%" G_GINT64_FORMAT, time_to_write(allocation, node)));
    annotations_add(annotations, vgpu->phase, g_strdup(VGPU_PHASE_ALLOCATING));
    annotations_add(annotations, vgpu->bind_time, g_strdup_printf("%" G_GINT64_FORMAT, seconds));
}

void vgpu_write_assigned(const struct vgpu *vgpu, const struct allocation *allocation,
                         struct annotations *annotations)
{
    for (int i = 0; i < VGPU_KEYS_MAX && vgpu->promised[i]; i++)
        annotations_add(annotations, vgpu->promised[i], g_strdup(";"));
    annotations_add(annotations, vgpu->phase, g_strdup(VGPU_PHASE_SUCCESS));
}

/* --- promises ------------------------------------------------------------------------------- */

/* What each plugin looks for, in pods of any phase, bound or not:
 * Project-HAMi/volcano-vgpu-device-plugin 4fb76ba pkg/util/util.go:58-118, v1.9.4 to v1.11.0
 * pkg/plugin/vgpu/util/util.go:67-105; 4paradigm/k8s-vgpu-scheduler da7d4ed pkg/util/util.go:51. */
bool vgpu_read_promise(const struct vgpu *vgpu, const struct pod_view *view,
                       struct device_promise *ret_promise)
{
    const char *node = string_pairs_get(&view->annotations, vgpu->node);
    const char *phase = string_pairs_get(&view->annotations, vgpu->phase);
    const char *time = string_pairs_get(&view->annotations, vgpu->time);
    guint64 seconds = 0;
    bool stands = false;

    if (!node || !*node)
        return false;
    for (int i = 0; i < VGPU_KEYS_MAX && vgpu->promised[i]; i++) {
        const char *text = string_pairs_get(&view->annotations, vgpu->promised[i]);
        stands |= text && strchr(text, ',');
    }
    if (vgpu->needs_phase)
        stands = g_strcmp0(phase, VGPU_PHASE_ALLOCATING) == 0 &&
                 string_pairs_get(&view->annotations, vgpu->bind_time);
    if (!stands)
        return false;
    if (!time || !g_ascii_string_to_unsigned(time, 10, 0, G_MAXUINT64, &seconds, NULL))
        seconds = 0;
    *ret_promise = (struct device_promise){.node = node, .time = (int64_t)MIN(seconds, G_MAXINT64)};
    return true;
}

/* The last time of all is what Volcano's plugin writes when it has served a pod. */
void vgpu_write_revoked(const struct vgpu *vgpu, struct annotations *annotations)
{
    for (int i = 0; i < VGPU_KEYS_MAX && vgpu->promised[i]; i++)
        annotations_add(annotations, vgpu->promised[i], g_strdup(""));
    annotations_add(annotations, vgpu->phase, g_strdup(VGPU_PHASE_FAILED));
    if (!vgpu->needs_phase)
        annotations_add(annotations, vgpu->time,
                        g_strdup_printf("%" G_GUINT64_FORMAT, G_MAXUINT64));
}

/* --- reading ---------------------------------------------------------------------------------- */

static bool parse_number(const char *text, int64_t max, int64_t *ret_value)
{
    return g_ascii_string_to_signed(text, 10, 0, max, ret_value, NULL);
}

static const char *find_text(const struct vgpu *vgpu, const struct pod_view *view)
{
    const char *text = NULL;

    for (int i = 0; !text && i < VGPU_KEYS_MAX && vgpu->allocated[i]; i++)
        text = string_pairs_get(&view->annotations, vgpu->allocated[i]);
    return text;
}

/* One "UUID,vendor,MiB,percent"; of a MIG instance the UUID is the card's with "[…]" behind it. */
static bool read_piece(const struct vgpu *vgpu, char *piece, struct share *ret_share)
{
    g_auto(GStrv) fields = g_strsplit(piece, ",", 8);
    int64_t mib, percent;

    if (g_strv_length(fields) < 4 || !parse_number(fields[2], AMOUNT_BYTES_MAX / MIB, &mib) ||
        !parse_number(fields[3], 100, &percent))
        return false;
    char *brackets = fields[0] + strcspn(fields[0], "[");
    const struct mig_place place = hami_mig_read_index(vgpu->mig_group, brackets);
    *brackets = '\0';
    if (!*fields[0])
        return false;
    *ret_share = (struct share){
        .memory = {mib * MIB, AMOUNT_BYTES},
        .container = CONTAINER_POD,
        .card = CARD_UNKNOWN,
        .core = (int32_t)percent * (CORE_WHOLE / 100),
        .place = place,
        .key = card_key(fields[0]),
    };
    return true;
}

/* One container's devices; `container` is where it stands in the pod, `place` where in the text. */
static bool read_place(const struct vgpu *vgpu, char *text, int32_t container, int32_t place,
                       const GArray *instances, GArray *pieces)
{
    g_auto(GStrv) items = g_strsplit(text, ":", -1);
    struct hami_mig_entry wanted = {.container = place};

    for (char **item = items; *item; item++) {
        struct share share;
        if (!strchr(*item, ',') || **item == ',') /* the oldest wrote ",,0,0" for nothing */
            continue;
        if (pieces->len == REQUEST_ASKS_MAX || !read_piece(vgpu, *item, &share))
            return false;
        share.container = container;
        wanted.key = share.key;
        if (share.place.size == 0)
            share.place = hami_mig_lookup(instances, &wanted);
        wanted.device++;
        g_array_append_val(pieces, share);
    }
    return true;
}

/* The n-th container that asks for cards and is no init container, or CONTAINER_POD. */
static int32_t nth_asker(const struct request *request, int32_t n)
{
    for (uint32_t i = 0; i < request->n_asks; i++) {
        if (!request->asks[i].init && n-- == 0)
            return request->asks[i].container;
    }
    return CONTAINER_POD;
}

static void count_in_mib(const struct request *request, guint from, GArray *pieces)
{
    const int64_t told_mib = MAX(request->terms->told_mib, 1);

    for (guint i = from; i < pieces->len; i++) {
        struct amount *memory = &g_array_index(pieces, struct share, i).memory;
        memory->value = MIN(memory->value, AMOUNT_BYTES_MAX / told_mib) * told_mib;
    }
}

enum text {
    TEXT_UNREADABLE,
    TEXT_OF_ASKERS, /* those that ask for cards have a place each, but for init containers */
    TEXT_OF_ALL,    /* every container has one */
};

/* The devices that the text names, in order. */
static enum text read_text(const struct vgpu *vgpu, const struct pod_view *view,
                           const struct request *request, const char *text, const GArray *instances,
                           GArray *pieces)
{
    g_auto(GStrv) places = g_strsplit(text, ";", -1);
    int32_t n = (int32_t)g_strv_length(places), n_init = 0;

    if (n > 0 && vgpu->ends_each && !*places[n - 1])
        n--;
    for (size_t i = 0; i < view->n_containers; i++)
        n_init += view->containers[i].init;
    const int32_t n_containers = (int32_t)view->n_containers;
    const bool placed = n == count_places(vgpu, n_containers, n_init);
    for (int32_t place = 0, n_askers = 0; place < n; place++) {
        const guint before = pieces->len;
        const int32_t container =
            placed ? container_at(vgpu, n_containers, n_init, place) : nth_asker(request, n_askers);
        if (!read_place(vgpu, places[place], container, place, instances, pieces))
            return TEXT_UNREADABLE;
        count_in_mib(request, before, pieces);
        if (!placed && pieces->len > before) {
            if (container == CONTAINER_POD)
                return TEXT_UNREADABLE;
            n_askers++;
        }
    }
    return pieces->len == 0 ? TEXT_UNREADABLE : placed ? TEXT_OF_ALL : TEXT_OF_ASKERS;
}

/* The card is the text's, and the instance, which may be larger. Of the amounts the larger counts: the
 * container runs with the text's, which says more than the limits under factors and scales of the node
 * side that have changed since, and which its author may have lowered. Returns whether they differ. */
static bool take_piece(const struct share *piece, struct share *share)
{
    const bool known = share->memory.kind == AMOUNT_BYTES, instance = piece->place.size > 0;
    const bool differs = (known && !instance && piece->memory.value != share->memory.value) ||
                         (known && piece->memory.value < share->memory.value) ||
                         (!instance && piece->core != share->core) || piece->core < share->core;

    share->key = piece->key;
    share->place = piece->place;
    /* At most what its place has, which the node knows. */
    if (instance && (!known || piece->memory.value > share->memory.value))
        share->memory = piece->memory;
    else if (!instance && (!known || piece->memory.value > share->memory.value))
        share->memory.at_least = piece->memory.value;
    if (piece->core > share->core) {
        share->core = piece->core;
        share->exclusive = piece->core == CORE_WHOLE;
    }
    return differs;
}

/* Whether the text names more cards than a container asks for, so that nobody can say which it is on. */
static bool names_too_many(const struct request *request, const GArray *pieces)
{
    for (uint32_t i = 0; i < request->n_asks; i++) {
        int32_t n = 0;
        for (guint j = 0; j < pieces->len; j++)
            n += g_array_index(pieces, struct share, j).container == request->asks[i].container;
        if (n > request->asks[i].count)
            return true;
    }
    return false;
}

/* Deals the cards that the text names out to what the containers ask for. A card that nobody asks for
 * is nobody's; who is left without one may be on any. Returns whether both are the same. */
static bool deal(const struct request *request, const GArray *pieces, bool placed, GArray *shares)
{
    g_autofree bool *dealt = g_new0(bool, pieces->len + 1);
    guint n_dealt = 0;
    bool same = true;

    for (uint32_t i = 0; i < request->n_asks; i++) {
        const struct card_ask *ask = &request->asks[i];
        guint at = 0;
        for (int32_t k = 0; k < ask->count && shares->len < REQUEST_ASKS_MAX; k++) {
            struct share share = share_of_ask(ask);
            const struct share *piece = NULL;
            for (; !piece && at < pieces->len; at++) {
                const struct share *next = &g_array_index(pieces, struct share, at);
                /* Before v2.9 init containers had no place, and were given what came first. */
                if (next->container == ask->container || (!placed && ask->init)) {
                    piece = next;
                    n_dealt += !dealt[at];
                    dealt[at] = true;
                }
            }
            same &= piece && !take_piece(piece, &share);
            g_array_append_val(shares, share);
        }
    }
    return same && n_dealt == pieces->len;
}

/* Shares of cards that nobody knows; one for each ask is enough, since it counts on every card. */
static void take_asks(const struct request *request, enum share_basis basis, GArray *shares)
{
    g_array_set_size(shares, 0);
    for (uint32_t i = 0; i < request->n_asks; i++) {
        struct share share = share_of_ask(&request->asks[i]);
        share.basis = basis;
        g_array_append_val(shares, share);
    }
}

static bool is_pending(const struct pod_view *view)
{
    return !view->phase || g_str_equal(view->phase, "Pending");
}

/* The plugin serves whom kubelet admits, and does not look how far the pod says that this has come. */
static bool may_be_served(const struct pod_view *view)
{
    return is_pending(view) && !view->started;
}

static const struct card_ask *find_ask(const struct request *request, int32_t container)
{
    for (uint32_t i = 0; i < request->n_asks; i++) {
        if (request->asks[i].container == container)
            return &request->asks[i];
    }
    return NULL;
}

static bool is_among(const GArray *shares, const struct share *piece)
{
    for (guint i = 0; i < shares->len; i++) {
        const struct share *share = &g_array_index(shares, struct share, i);
        if (share->container == piece->container && share->key == piece->key &&
            memcmp(&share->place, &piece->place, sizeof share->place) == 0)
            return true;
    }
    return false;
}

/* The plugin gives a container what its pod is promised, whatever the other words say. So as long as it may
 * still do so, a card that only the promise names counts, too. It refuses a promise of more cards than the
 * container asks for. */
static void add_promised(const struct vgpu *vgpu, const struct pod_view *view,
                         const struct request *request, const GArray *instances, GArray *shares)
{
    for (int i = 0; i < VGPU_KEYS_MAX && vgpu->promised[i]; i++) {
        g_autoptr(GArray) pieces = g_array_new(FALSE, TRUE, sizeof(struct share));
        const char *text = string_pairs_get(&view->annotations, vgpu->promised[i]);

        if (!text || read_text(vgpu, view, request, text, instances, pieces) == TEXT_UNREADABLE ||
            names_too_many(request, pieces))
            continue;
        for (guint j = 0; j < pieces->len && shares->len < REQUEST_ASKS_MAX; j++) {
            const struct share *piece = &g_array_index(pieces, struct share, j);
            const struct card_ask *ask = find_ask(request, piece->container);
            if (!ask || is_among(shares, piece))
                continue;
            struct share share = share_of_ask(ask);
            take_piece(piece, &share);
            g_array_append_val(shares, share);
        }
    }
}

/* Whether a container says what only a vGPU plugin understands: more than a number of cards that are
 * NVIDIA's own plugin's, too. */
static bool is_ours(const struct vgpu *vgpu, const struct pod_view *view)
{
    for (size_t i = 0; i < view->n_containers; i++) {
        const struct container_view *container = &view->containers[i];
        if (amount_asks(container_view_amount(container, vgpu->memory)) ||
            amount_asks(container_view_amount(container, vgpu->percentage)) ||
            amount_asks(container_view_amount(container, vgpu->cores)) ||
            (vgpu->own_count && amount_asks(container_view_amount(container, vgpu->count))))
            return true;
    }
    return false;
}

static bool runs(const struct pod_view *view)
{
    return view->started || g_strcmp0(view->phase, "Running") == 0;
}

/* Its containers were given something, and not what it was promised: that stands, or was revoked. */
static bool is_mistaken(const struct vgpu *vgpu, const struct pod_view *view)
{
    const char *phase = string_pairs_get(&view->annotations, vgpu->phase);
    struct device_promise promise;

    return vgpu->dialect->any_phase && runs(view) &&
           (vgpu_read_promise(vgpu, view, &promise) || g_strcmp0(phase, VGPU_PHASE_FAILED) == 0);
}

static enum distrust read_shares(const struct vgpu *vgpu, const struct pod_view *view,
                              const struct dialect_options *options,
                              const struct request *request, GArray *shares, char **ret_warning)
{
    const char *text = find_text(vgpu, view);
    g_autoptr(GArray) instances = hami_mig_read(vgpu->instances, view, ret_warning);
    g_autoptr(GArray) pieces = g_array_new(FALSE, TRUE, sizeof(struct share));

    enum text read = TEXT_UNREADABLE;

    if (is_mistaken(vgpu, view)) {
        take_asks(request, SHARE_HELD, shares);
        warn(ret_warning, g_strdup_printf("runs, and annotation '%s' was not handed out to it: it "
                                          "has what another pod was promised",
                                          vgpu->promised[0]));
        return DISTRUST_MISTAKEN;
    }
    if (text)
        read = read_text(vgpu, view, request, text, instances, pieces);
    if (read != TEXT_UNREADABLE && !names_too_many(request, pieces)) {
        const bool same = deal(request, pieces, read == TEXT_OF_ALL, shares);
        const guint n = shares->len;
        if (may_be_served(view))
            add_promised(vgpu, view, request, instances, shares);
        if (shares->len > n)
            warn(ret_warning,
                 g_strdup_printf("annotation '%s' names another card than '%s', and the "
                                 "plugin goes by it",
                                 vgpu->promised[0], vgpu->allocated[0]));
        if (same)
            return shares->len > n ? DISTRUST_EDITED : DISTRUST_NONE;
        warn(ret_warning, g_strdup_printf("annotation '%s' promises something else than the "
                                          "containers' limits: the larger counts",
                                          vgpu->allocated[0]));
        return DISTRUST_EDITED;
    }
    const bool marked = string_pairs_get(&view->annotations, vgpu->node) != NULL;
    /* The plugin fails whom no annotation promises anything: who runs was given some card before the
     * annotations were lost, or another pod's. */
    take_asks(request,
              text || marked || runs(view) || options->unplaced_everywhere ? SHARE_HELD
                                                                           : SHARE_NOT_GIVEN,
              shares);
    if (text) {
        warn(ret_warning,
             g_strdup_printf("annotation '%s' cannot be read", vgpu->allocated[0]));
        return DISTRUST_MALFORMED;
    }
    warn(ret_warning,
         marked ? g_strdup_printf("has lost the annotation '%s'", vgpu->allocated[0])
                : g_strdup_printf("holds '%s' without '%s': bound by another scheduler?",
                                  vgpu->count, vgpu->allocated[0]));
    return marked ? DISTRUST_LOST : DISTRUST_UNMARKED;
}

static void read_progress(const struct vgpu *vgpu, const struct pod_view *view,
                          struct allocation *allocation)
{
    const char *phase = string_pairs_get(&view->annotations, vgpu->phase);
    /* vgpu-time may be less, see time_to_write. */
    const char *bind_time = string_pairs_get(&view->annotations, vgpu->bind_time);
    const char *time = vgpu->dialect->outranks && bind_time
                           ? bind_time
                           : string_pairs_get(&view->annotations, vgpu->time);
    const bool pending = is_pending(view);
    struct device_promise promise;
    /* Volcano's plugin does not read the phase while a promise stands; 4paradigm's goes by it. */
    const bool stands = vgpu->dialect->any_phase && vgpu_read_promise(vgpu, view, &promise);
    const bool over = !stands && (g_strcmp0(phase, VGPU_PHASE_SUCCESS) == 0 ||
                                  g_strcmp0(phase, VGPU_PHASE_FAILED) == 0);
    int64_t seconds;

    allocation->assigned = g_strcmp0(phase, VGPU_PHASE_SUCCESS) == 0;
    /* A pod that nobody has promised anything may take another's promise until it was admitted. */
    allocation->waiting =
        pending && !over && (phase || !view->started) && allocation->distrust != DISTRUST_MISTAKEN;
    allocation->heeded = may_be_served(view);
    if (time && parse_number(time, TIME_MAX_S, &seconds))
        allocation->assume_time_ns = seconds * NS_PER_S;
}

struct allocation *vgpu_read_allocation(const struct vgpu *vgpu, const struct pod_view *view,
                                        const struct dialect_options *options, char **ret_warning)
{
    const bool marked = find_text(vgpu, view) || string_pairs_get(&view->annotations, vgpu->node);
    g_autoptr(GError) failure = NULL;

    if (!marked && !(vgpu->claims_unmarked && is_ours(vgpu, view)))
        return NULL;
    g_autoptr(request) request = vgpu_read_asks(vgpu, view, options, &failure);
    bool many = false;
    if (failure)
        request = vgpu_take_asks(vgpu, view, options, &many);
    if (!request && !many)
        return NULL;
    int64_t n_cards = 0;
    for (uint32_t i = 0; !many && i < request->n_asks; i++)
        n_cards += request->asks[i].count;
    if (many || n_cards > REQUEST_ASKS_MAX)
        return dialect_hold_many(vgpu->dialect, view, ret_warning);

    g_autoptr(GArray) shares = g_array_new(FALSE, TRUE, sizeof(struct share));
    enum distrust distrust = read_shares(vgpu, view, options, request, shares, ret_warning);
    if (failure) {
        warn(ret_warning, g_strdup(failure->message));
        distrust = distrust == DISTRUST_NONE ? DISTRUST_UNREAD : distrust;
    }
    struct allocation *allocation = allocation_new(view->uid, view->ns, view->name, shares->len);

    allocation->dialect = vgpu->dialect;
    allocation->distrust = distrust;
    allocation->match_amount = request->match_amount;
    allocation->terms = terms_ref(request->terms);
    read_progress(vgpu, view, allocation);
    memcpy(allocation->shares, shares->data, shares->len * sizeof(struct share));
    return allocation;
}
