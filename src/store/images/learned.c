/* SPDX-License-Identifier: Apache-2.0 */
#include "store/images/learned.h"

#include "core/bytes.h"
#include "core/fail.h"

#include <math.h>

/* --- writing -------------------------------------------------------------------------------- */

static void write_fraction(struct json_writer *writer, const char *key, double value)
{
    char text[G_ASCII_DTOSTR_BUF_SIZE];

    json_key_string(writer, key, g_ascii_dtostr(text, sizeof text, value));
}

static void write_models(struct json_writer *writer, const char *key, char *const *models)
{
    json_key_array(writer, key);
    for (char *const *model = models; model && *model; model++)
        json_string(writer, *model);
    json_end_array(writer);
}

static void write_shape(struct json_writer *writer, const struct shape *shape)
{
    json_begin_object(writer);
    json_key_int(writer, "memory", shape->memory.value);
    json_key_int(writer, "memoryKind", shape->memory.kind);
    json_key_int(writer, "core", shape->core);
    json_key_int(writer, "cards", shape->cards);
    json_key_bool(writer, "exclusive", shape->exclusive);
    if (shape->device)
        json_key_string(writer, "device", shape->device);
    json_key_int(writer, "cpu", shape->cpu);
    if (shape->terms && shape->terms->models)
        write_models(writer, "models", shape->terms->models);
    if (shape->terms && shape->terms->models_not)
        write_models(writer, "modelsNot", shape->terms->models_not);
    write_fraction(writer, "count", shape->count);
    write_fraction(writer, "gib", shape->gib);
    write_fraction(writer, "gibSquares", shape->gib_squares);
    json_end_object(writer);
}

void learned_encode(struct json_writer *writer, const struct demand *demand, bool bare)
{
    const struct learned_demand learned = demand_tell(demand);

    json_begin_object(writer);
    write_fraction(writer, "gain", learned.gain);
    write_fraction(writer, "total", learned.total);
    json_key_int(writer, "gpuPods", (int64_t)learned.n_gpu);
    json_key_array(writer, "shapes");
    for (size_t i = 0; i < learned.n; i++)
        write_shape(writer, &learned.shapes[i]);
    json_end_array(writer);
    if (bare)
        json_key_bool(writer, "withoutModel", true);
    json_end_object(writer);
}

/* --- reading -------------------------------------------------------------------------------- */

#define PODS_MAX (INT64_C(1) << 50) /* more than ever come */
#define FRACTION_MAX 1e12           /* counts are brought back to size long before */
/* Of these, each of as much memory as a pod can ask for. */
#define GIB_MAX (FRACTION_MAX * (double)(HOST_AMOUNT_MAX / GIB))
#define GIB_SQUARES_MAX (GIB_MAX * (double)(HOST_AMOUNT_MAX / GIB))

struct shape_object {
    int64_t memory, memory_kind, core, cards, cpu;
    bool exclusive;
    const cJSON *models, *models_not;
    const char *device, *count, *gib, *gib_squares;
};

#define SHAPE(KIND, member, path, flags) JSON_FIELD_##KIND(struct shape_object, member, path, flags)
static const struct json_field shape_fields[] = {
    SHAPE(INT64, memory, "memory", 0),
    SHAPE(INT64, memory_kind, "memoryKind", 0),
    SHAPE(INT64, core, "core", 0),
    SHAPE(INT64, cards, "cards", 0),
    SHAPE(INT64, cpu, "cpu", 0),
    SHAPE(BOOL, exclusive, "exclusive", 0),
    SHAPE(ARRAY, models, "models", 0),
    SHAPE(ARRAY, models_not, "modelsNot", 0),
    SHAPE(STRING, device, "device", 0),
    SHAPE(STRING, count, "count", JSON_REQUIRED),
    SHAPE(STRING, gib, "gib", 0), /* older versions did not know it */
    SHAPE(STRING, gib_squares, "gibSquares", 0),
    JSON_FIELD_END,
};

struct learned_object {
    const char *gain, *total;
    int64_t n_gpu;
    const cJSON *shapes;
    bool bare;
};

static const struct json_field learned_fields[] = {
    JSON_FIELD_STRING(struct learned_object, gain, "gain", JSON_REQUIRED),
    JSON_FIELD_STRING(struct learned_object, total, "total", JSON_REQUIRED),
    JSON_FIELD_INT64(struct learned_object, n_gpu, "gpuPods", JSON_REQUIRED),
    JSON_FIELD_ARRAY(struct learned_object, shapes, "shapes", JSON_REQUIRED),
    JSON_FIELD_BOOL(struct learned_object, bare, "withoutModel", 0), /* older versions never */
    JSON_FIELD_END,
};

static bool refuse(GError **error, const char *field)
{
    return fail_with(error, GPULEDGER_ERROR_INVALID, "field '%s': not what policies learn", field);
}

static bool read_fraction(const char *text, const char *field, double most, double *ret_value,
                          GError **error)
{
    char *end;
    const double value = g_ascii_strtod(text, &end);

    if (*end || !isfinite(value) || value < 0 || value > most)
        return refuse(error, field);
    *ret_value = value;
    return true;
}

/* NULL: nothing is said, or, with an error, it cannot be understood. */
static char **read_models(const cJSON *list, GError **error)
{
    g_autoptr(GStrvBuilder) models = g_strv_builder_new();
    const cJSON *item;

    if (!list)
        return NULL;
    cJSON_ArrayForEach (item, list) {
        if (!cJSON_IsString(item)) {
            refuse(error, "models");
            return NULL;
        }
        g_strv_builder_add(models, item->valuestring);
    }
    return g_strv_builder_end(models);
}

/* The terms are the shape's. */
static bool read_shape(struct json_arena *arena, const cJSON *item, struct shape *ret_shape,
                       GError **error)
{
    struct shape_object object = {0};
    GError *failure = NULL;

    if (!json_decode(arena, item, shape_fields, &object, error) ||
        !read_fraction(object.count, "count", FRACTION_MAX, &ret_shape->count, error) ||
        (object.gib && !read_fraction(object.gib, "gib", GIB_MAX, &ret_shape->gib, error)) ||
        (object.gib_squares && !read_fraction(object.gib_squares, "gibSquares", GIB_SQUARES_MAX,
                                              &ret_shape->gib_squares, error)))
        return false;
    if (object.memory < 0 || object.memory > AMOUNT_BYTES_MAX || object.core < 0 ||
        object.core > INT32_MAX || object.cards < 0 || object.cards > SHAPE_CARDS_MAX ||
        object.memory_kind < 0 || object.memory_kind > AMOUNT_THOUSANDTHS || object.cpu < 0)
        return refuse(error, "shapes");
    ret_shape->memory = (struct amount){object.memory, (enum amount_kind)object.memory_kind};
    ret_shape->core = (int32_t)object.core;
    ret_shape->cards = (int32_t)object.cards;
    ret_shape->exclusive = object.exclusive;
    ret_shape->device = (char *)object.device; /* demand_learn takes a copy */
    ret_shape->cpu = object.cpu;
    if (!object.models && !object.models_not)
        return true;
    ret_shape->terms = terms_new();
    ret_shape->terms->models = read_models(object.models, &failure);
    if (!failure)
        ret_shape->terms->models_not = read_models(object.models_not, &failure);
    if (failure)
        g_propagate_error(error, failure);
    return !failure;
}

static bool read_shapes(struct json_arena *arena, const cJSON *list, struct shape *shapes,
                        GError **error)
{
    const cJSON *item;

    cJSON_ArrayForEach (item, list) {
        if (!read_shape(arena, item, shapes++, error))
            return false;
    }
    return true;
}

struct demand *learned_decode(struct json_arena *arena, const cJSON *object, bool *ret_bare,
                              GError **error)
{
    struct learned_object fields = {0};
    struct learned_demand learned = {0};
    struct demand *demand = NULL;

    if (!json_decode(arena, object, learned_fields, &fields, error) ||
        !read_fraction(fields.gain, "gain", FRACTION_MAX, &learned.gain, error) ||
        !read_fraction(fields.total, "total", FRACTION_MAX, &learned.total, error))
        return NULL;
    learned.n = (size_t)cJSON_GetArraySize(fields.shapes);
    if (learned.gain < 1 || fields.n_gpu < 0 || fields.n_gpu > PODS_MAX ||
        learned.n > DEMAND_SHAPES_MAX) {
        refuse(error, "shapes");
        return NULL;
    }
    learned.n_gpu = (uint64_t)fields.n_gpu;
    struct shape *shapes = json_arena_alloc(arena, (learned.n + 1) * sizeof *shapes);
    learned.shapes = shapes;
    if (read_shapes(arena, fields.shapes, shapes, error)) {
        demand = demand_new();
        demand_learn(demand, &learned);
        *ret_bare = fields.bare;
    }
    for (size_t i = 0; i < learned.n; i++)
        terms_unref(shapes[i].terms);
    return demand;
}
