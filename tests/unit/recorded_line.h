/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include "record/record.h"

#include <check.h>

/* As the recorder ends a line. */
static inline void end_line(struct record *record)
{
    struct json_writer writer = {record->text, true};

    if (record->body) {
        json_key(&writer, "body");
        ck_assert(record_body_encode(&writer, record->verb, record->body));
        writer.comma = true;
        json_key(&writer, "reply");
        ck_assert(record_reply_encode(&writer, record->verb, record->reply));
        json_end_object(&writer);
    }
    g_string_append_c(record->text, '\n');
}
