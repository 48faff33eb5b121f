/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * What can go wrong on the way to the API server: one table, and chance.
 */
#include <stdbool.h>
#include <stdint.h>

/* What a fault does, in this order of a request's way. */
enum act {
    ACT_NONE,
    ACT_REFUSE,    /* no connection */
    ACT_LOSE,      /* sent, and never heard of again */
    ACT_STATUS,    /* refused by the server, or something before it: nothing is done */
    ACT_SLOW,      /* arrives after a while */
    ACT_LATE,      /* given up by us, carried out later */
    ACT_OPEN,      /* refused; a Binding is carried out later */
    ACT_DONE_500,  /* done, and answered as if not */
    ACT_DONE_CUT,  /* done, the reply is lost */
    ACT_DONE_LOST, /* done, and no reply ever */
    ACT_CUT,       /* the reply ends in the middle */
    ACT_REPEAT,    /* of a watch: the last change again */
    ACT_ERROR,     /* of a watch: an ERROR event */
    ACT_SILENCE,   /* of a watch: nothing more comes */
    ACT_END,       /* of a watch: ends well */
};

enum way { WAY_READ = 1, WAY_WRITE = 2, WAY_LIST = 4, WAY_WATCH = 8 };

struct fault {
    const char *name;
    enum act act;
    unsigned ways, weight;
    long status;
    int retry_after_s;
    const char *reason;
};

/* Of a hundred requests that many go wrong; 0 also ends all dawdling. Some faults come often for a
 * while and others not at all: so those meet that seldom would. */
void faults_set_trouble(unsigned percent);
bool faults_possible(void);

/* What befalls a request; never NULL. */
const struct fault *faults_draw(enum way way);
/* What befalls a watch with its next change, NULL: nothing. */
const struct fault *faults_draw_midway(void);
/* How long something takes that mostly takes little. */
int64_t faults_draw_lag_us(void);

/* How often what befell a request; NULL at the end. */
const char *faults_count(unsigned i, uint64_t *ret_count);
