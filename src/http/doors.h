/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Requests that a web page may make in the name of somebody who looks at it. A page of any other site can have a
 * browser send a GET, and a POST of a form's type; it cannot see the answers, unless the name of its own site
 * leads to this machine meanwhile (DNS rebinding). Any thread.
 */
#include "http/server.h"

enum door_flag {
    DOOR_NO_ORIGIN = 1 << 0, /* no browser calls here: a request with an Origin is refused */
    DOOR_YAML = 1 << 1,      /* a POST may be of the type application/yaml, too */
};

/* Whether a request may pass. `hosts`: names that a Host may have beside localhost and addresses, with commas
 * between them; NULL: any may be. Otherwise the response says why not. */
bool door_passes(const struct http_request *request, const char *hosts, unsigned flags,
                 struct http_response *response);

/* Whether the type of a POST's body is one that no form of a web page has. Other methods have no type. */
bool door_takes_body(const struct http_request *request, unsigned flags,
                     struct http_response *response);
