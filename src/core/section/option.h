/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * What a section (core/section/section.h) is made of: its rows, one for each option. rows.h has the words to
 * write them with.
 *
 * The environment variable of a row is GPULEDGER_ and its name in capitals, the key in the configuration
 * file is its name. Constant data and pure functions: any thread.
 */
#include "core/item_list.h"
#include "core/section/section.h"

enum option_kind {
    OPTION_TEXT,      /* const char * */
    OPTION_LIST,      /* const char *, a text that the row's list can read */
    OPTION_NAMESPACE, /* const char *, of Kubernetes; "" only where that is the default */
    OPTION_PATH,      /* const char *, completed as a file name */
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
    OPTION_CAN_BE_OFF = 1 << 3, /* OPTION_ADDRESS: accepts "off" */
    OPTION_MANY = 1 << 4,       /* on the command line several times: joined with commas */
    OPTION_REQUIRED = 1 << 5,   /* has to be given: help shows no default */
    OPTION_NEEDS_API = 1 << 6,  /* does nothing with --snapshot */
    OPTION_INPUT = 1 << 7,      /* OPTION_PATH: '-' is standard input */
    OPTION_COMMON = 1 << 8,     /* serve --help shows it, and not only --help-all */
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
    unsigned commands; /* enum command_bit */
    unsigned flags;    /* enum option_flag */
    char letter;       /* short form, or 0 */
    size_t offset;     /* in the section's struct */
    int64_t min, max;  /* OPTION_INT, _DURATION, _SIZE: both included */
    bool (*choice)(size_t i, struct choice *ret_choice); /* OPTION_CHOICE: false past the last */
    size_t
        rest; /* in the section's struct, a const char *: what follows an open choice; 0: there is none */
    const struct item_list *list; /* OPTION_LIST */
    const char *needs; /* the option of serve without which this one does nothing, or NULL */

    /* A variable that other programs use for the same thing; asked when the own one is not set.
     * `read_alias` NULL: its text is what the option takes. */
    const char *alias;
    const char *alias_help;
    const char *alias_base; /* what `read_alias` changes if no file has a value; NULL: `fallback` */
    bool (*read_alias)(const struct option *option, const char *text, void *value, GError **error);
};

/* For a row's `choice`: that of a list. */
bool choice_at(const struct choice *choices, size_t n, size_t i, struct choice *ret_choice);

/* OPTION_CHOICE: the value of the choice of that name; false: there is none. */
bool option_choose(const struct option *option, const char *name, int64_t *ret_value);

struct section {
    const char *name;  /* of its struct, too: NAME_settings */
    const char *title; /* above its options in help */
    const struct option *rows;
    size_t n_rows;
    size_t size; /* of its struct */
    bool
        recorded; /* decisions depend on the options of serve among them: a record has their values */
    /* Of serve's configuration: what no option can say alone. NULL: nothing. */
    bool (*check)(const struct settings *settings, GError **error);
};
