/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * What befalls one of the program's writes, counted from the first: it is carried out, and whoever sent it is
 * killed before he hears of it; or he is killed before it is carried out; or it goes wrong; or it is the last one
 * for which he serves. In place of ../faults/faults.c.
 */
#include "../faults/faults.h"

struct strike {
    struct fault fault;
    bool kills;   /* the program ends there */
    bool deposes; /* from then on another replica serves */
    bool refuses; /* the answer says no, and nobody may be sure that it comes to the same */
};

/* Ends with one without a name. */
extern const struct strike strikes[];

/* NULL: nothing befalls any. */
void strikes_set(const struct strike *strike, unsigned at);
unsigned strikes_n(void); /* writes so far */
/* The write has come to the server. */
void strikes_served(void);
/* The blow has fallen; true once. */
bool strikes_has_fallen(void);
