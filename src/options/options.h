/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The one table of options. Command line, environment, configuration file, --help, the manual
 * page, shell completion and --print-config are all made from its rows: a new row is complete.
 *
 * The environment variable of a row is GPULEDGER_ and its name in capitals, the key in the
 * configuration file is its name. Constant data and pure functions: any thread.
 */
#include "options/config.h"
#include "core/item_list.h"

enum option_kind {
    OPTION_TEXT,      /* char * */
    OPTION_LIST,      /* char *, a text that the row's list can read */
    OPTION_NAMESPACE, /* char *, of Kubernetes; "" only where that is the default */
    OPTION_PATH,      /* char *, completed as a file name */
    OPTION_INT,       /* int64_t */
    OPTION_BOOL,      /* bool */
    OPTION_DURATION,  /* int64_t, milliseconds */
    OPTION_SIZE,      /* int64_t, bytes */
    OPTION_CHOICE,    /* int64_t: the value of one of the row's choices */
    OPTION_ADDRESS,   /* struct address */
    OPTION_CLASSES, /* struct classes *, of dialect/classes/classes.h: a mapping, as YAML or JSON */
};

enum option_flag {
    OPTION_FLAG_ONLY = 1 << 0,  /* on the command line only */
    OPTION_NO_FILE = 1 << 1,    /* not in the configuration file */
    OPTION_LIVE = 1 << 2,       /* a changed value takes effect on SIGHUP */
    OPTION_MANY = 1 << 4,       /* on the command line several times: joined with commas */
    OPTION_CAN_BE_OFF = 1 << 3, /* OPTION_ADDRESS: accepts "off" */
    OPTION_REQUIRED = 1 << 5,   /* has to be said, so that no default is told */
};

/* Which subcommands take the option. */
enum command_bit {
    COMMAND_SERVE = 1 << 0,
    COMMAND_NODES = 1 << 1,
    COMMAND_INSPECT = 1 << 2,
    COMMAND_AUDIT = 1 << 3,
    COMMAND_DIALECTS = 1 << 4,
    COMMAND_COMPLETION = 1 << 5,
    COMMAND_MAN = 1 << 6,
    COMMAND_VERSION = 1 << 7,
    COMMAND_HELP = 1 << 8,
    COMMAND_SIMULATE = 1 << 9,
    COMMAND_EXPLAIN = 1 << 10,
    COMMAND_REPLAY = 1 << 11,
    COMMAND_FIT = 1 << 12,
    COMMAND_CERTS = 1 << 13,
    COMMAND_GUARD = 1 << 14,
    COMMAND_RESUME = 1 << 15,
    COMMAND_PODS = 1 << 16,
    COMMAND_CORDON = 1 << 17,
    COMMAND_UNCORDON = 1 << 18,
    COMMAND_DRAIN = 1 << 19,
    COMMAND_QUOTAS = 1 << 20,
    COMMAND_PLAN = 1 << 21,
    COMMAND_TOP = 1 << 22,
    COMMAND_MIGRATE = 1 << 23,
    COMMAND_SWITCH = 1 << 24,
    COMMAND_ANY = (1 << 25) - 1,
};

enum option_group {
    GROUP_CLUSTER,
    GROUP_SIMULATION,
    GROUP_LISTENERS,
    GROUP_PLACEMENT,
    GROUP_REPLICAS,
    GROUP_RUNNING,
    GROUP_CLIENT,
    GROUP_CERTIFICATES,
    GROUP_MAINTENANCE,
    GROUP_GENERAL,
    GROUP_N
};
extern const char *const option_groups[GROUP_N];

struct choice {
    const char *name;
    const char *help; /* NULL where the name says it */
    int64_t value;
    bool open; /* any text may follow the name, which ends with '=' */
};

struct option {
    const char *name;
    const char *metavar;  /* NULL for OPTION_BOOL */
    const char *fallback; /* the default, as text */
    const char *help;     /* sentences for people */
    enum option_kind kind;
    enum option_group group;
    unsigned commands; /* enum command_bit */
    unsigned flags;    /* enum option_flag */
    char letter;       /* short form, or 0 */
    size_t offset;     /* in struct config */
    int64_t min, max;  /* OPTION_INT, _DURATION, _SIZE: both included */
    bool (*choice)(size_t i, struct choice *ret_choice); /* OPTION_CHOICE: false past the last */
    size_t rest; /* in struct config, a char *: what follows an open choice; 0: there is none */
    const struct item_list *list;                        /* OPTION_LIST */

    /* A variable that other programs use for the same thing; asked when the own one is not set.
     * `read_alias` NULL: its text is what the option takes. */
    const char *alias;
    const char *alias_help;
    const char *alias_base; /* what `read_alias` changes if no file has a value; NULL: `fallback` */
    bool (*read_alias)(const struct option *option, const char *text, struct config *config,
                       GError **error);
};

/* Ends with a row whose name is NULL. */
extern const struct option options[];

/* NULL if the commands have none of that name. */
const struct option *option_find(const char *name, unsigned commands);

/* The position in options[], which is also that of its origin in struct config. */
size_t option_position(const struct option *option);

/* The environment variable, or NULL if it has none. Free with g_free. */
char *option_variable(const struct option *option);

/* Sets the option's member; the error quotes the text and says what is accepted, and leaves it to
 * the caller to say where the text stood. */
bool option_parse(const struct option *option, const char *text, struct config *config,
                  GError **error);

/* The value as option_parse reads it. Free with g_free. */
char *option_format(const struct option *option, const struct config *config);

/* What option_parse accepts, to follow "expected ". Free with g_free. */
char *option_accepts(const struct option *option);

/* The same as a regular expression (ECMA 262), bounds aside; NULL where the kind says it all. Free
 * with g_free. */
char *option_pattern(const struct option *option);

/* A name that is still met, and what to say of it. */
struct note {
    const char *name;
    const char *why;
};

/* Variables of the replaced extender that are understood but change nothing; ends with NULL. */
extern const struct note ignored_variables[];

/* Options that there were once, and what to do instead; ends with NULL. */
extern const struct note gone_options[];

/* What to do instead of the option of that name; NULL: there never was one. */
const char *option_gone(const char *name);
