/* SPDX-License-Identifier: Apache-2.0 */
#include "kubelets.h"

#include "../prop/chance.h"
#include "sim.h"

#include <string.h>

static bool is_marked(const struct played_pod *pod, const char *key, const char *value)
{
    return g_strcmp0(words_get(&pod->annotations, key), value) == 0;
}

static void mark_gpushare(struct played_pod *pod)
{
    if (!is_marked(pod, "ALIYUN_COM_GPU_MEM_ASSIGNED", "false") ||
        !words_get(&pod->annotations, "ALIYUN_COM_GPU_MEM_ASSUME_TIME"))
        return;
    words_set(&pod->annotations, "ALIYUN_COM_GPU_MEM_ASSIGNED", "true");
    words_setf(&pod->annotations, "ALIYUN_COM_GPU_MEM_ASSUME_TIME", "%" G_GINT64_FORMAT,
               g_get_real_time() * 1000);
}

static void mark_tencent(struct played_pod *pod)
{
    words_set(&pod->annotations, "tencent.com/gpu-assigned", "true");
}

static void mark_volcano(struct played_pod *pod)
{
    if (words_get(&pod->annotations, "volcano.sh/predicate-time"))
        words_set(&pod->annotations, "volcano.sh/gpu-assigned", "true");
}

/* The lock goes with the last container's devices, or when that fails. */
static void unlock(const struct played_pod *pod, const char *key)
{
    struct played_node *node = &played.nodes[pod->node];
    const char *lock = words_get(&node->annotations, key);
    g_autofree char *holder = g_strdup_printf(",%s,%s", pod->ns, pod->name);

    if (!lock || !g_str_has_suffix(lock, holder))
        return;
    words_set(&node->annotations, key, NULL);
    played_node_changed(pod->node);
}

static void mark_slices(struct played_pod *pod, const char *prefix, const char *to_allocate,
                        const char *lock)
{
    g_autofree char *phase = g_strconcat(prefix, "/bind-phase", NULL);
    const char *devices = words_get(&pod->annotations, to_allocate);

    if (lock)
        unlock(pod, lock);
    if (!pod->ours)
        return;
    /* It gives what is promised, whoever wrote that. */
    if (is_marked(pod, phase, "allocating") && devices && strchr(devices, ',')) {
        words_set(&pod->annotations, phase, "success");
        words_set(&pod->annotations, to_allocate, ";");
    } else { /* UnexpectedAdmissionError */
        words_set(&pod->annotations, phase, "failed");
        pod->phase = FAILED;
    }
}

void kubelets_admit(struct played_pod *pod)
{
    const struct played_node *node = &played.nodes[pod->node];
    unsigned named = holders_named(pod) & node->serves;

    pod->started = pod->taken_up = true;
    pod->started_us = sim_now_us();
    pod->started_real_us = g_get_real_time();
    if (named >> GPUSHARE & 1)
        mark_gpushare(pod);
    if (named >> TENCENT & 1)
        mark_tencent(pod);
    if (named >> VOLCANO & 1)
        mark_volcano(pod);
    if (named >> HAMI & 1)
        mark_slices(pod, "hami.io", "hami.io/vgpu-devices-to-allocate", "hami.io/mutex.lock");
    if (named >> PARADIGM & 1)
        mark_slices(pod, "4pd.io", "hami.sh/vgpu-devices-to-allocate", "4pd.io/mutex.lock");
    if (named >> VVGPU & 1)
        mark_slices(pod, "volcano.sh", "volcano.sh/devices-to-allocate", NULL);
    played_touch(pod);
}

static bool is_due(const struct played_pod *pod)
{
    return played_lives(pod) && pod->node >= 0 &&
           (!pod->started || pod->terminating || (pod->phase == PENDING && !pod->image_missing));
}

bool kubelets_act(void)
{
    unsigned n = played_n(), from = n > 0 ? chance_below(n) : 0;

    for (unsigned i = 0; i < n; i++) {
        struct played_pod *pod = played_at((from + i) % n);
        if (!is_due(pod))
            continue;
        if (pod->terminating) { /* its containers stop within the grace period */
            pod->phase = FAILED;
            played_touch(pod);
        } else if (!pod->started) {
            kubelets_admit(pod);
        } else {
            pod->phase = RUNNING;
            played_touch(pod);
        }
        return true;
    }
    return false;
}
