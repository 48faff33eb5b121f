/* SPDX-License-Identifier: Apache-2.0 */
#include "easy.h"

#include <string.h>

static char *authorization(const struct easy *easy)
{
    static const char key[] = "Authorization: ";

    for (const struct curl_slist *header = easy->headers; header; header = header->next) {
        if (g_str_has_prefix(header->data, key))
            return header->data + strlen(key);
    }
    return NULL;
}

const char *easy_path(const struct easy *easy)
{
    return strstr(easy->url, "://") ? strchr(strstr(easy->url, "://") + 3, '/') : easy->url;
}

struct server_request easy_request(const struct easy *easy)
{
    return (struct server_request){easy->method, easy_path(easy), easy->body, authorization(easy)};
}

void easy_refuse(struct server_reply *reply, const struct fault *fault)
{
    server_refuse(reply, fault->status, fault->reason, fault->name);
}

bool easy_deliver(struct easy *easy, const char *bytes, gsize length)
{
    return length == 0 || easy->write((char *)bytes, 1, length, easy->write_data) == length;
}

/* --- what the program calls ----------------------------------------------------------------- */

CURL *__wrap_curl_easy_init(void);
void __wrap_curl_easy_cleanup(CURL *handle);
void __wrap_curl_easy_reset(CURL *handle);
CURLcode __wrap_curl_easy_setopt(CURL *handle, CURLoption option, ...);
CURLcode __wrap_curl_easy_getinfo(CURL *handle, CURLINFO info, ...);

CURL *__wrap_curl_easy_init(void)
{
    return g_new0(struct easy, 1);
}

void __wrap_curl_easy_reset(CURL *handle)
{
    struct easy *easy = handle;

    g_free(easy->url);
    g_free(easy->method);
    g_free(easy->body);
    *easy = (struct easy){.stage = STAGE_NEW};
}

void __wrap_curl_easy_cleanup(CURL *handle)
{
    if (handle)
        __wrap_curl_easy_reset(handle);
    g_free(handle);
}

CURLcode __wrap_curl_easy_setopt(CURL *handle, CURLoption option, ...)
{
    struct easy *easy = handle;
    va_list values;

    va_start(values, option);
    switch ((int)option) {
    case CURLOPT_URL:
        easy->url = g_strdup(va_arg(values, char *));
        break;
    case CURLOPT_CUSTOMREQUEST:
        easy->method = g_strdup(va_arg(values, char *));
        break;
    case CURLOPT_POSTFIELDS:
        easy->body = g_strdup(va_arg(values, char *));
        break;
    case CURLOPT_HTTPHEADER:
        easy->headers = va_arg(values, struct curl_slist *);
        break;
    case CURLOPT_WRITEFUNCTION:
        easy->write = va_arg(values, curl_write_callback);
        break;
    case CURLOPT_WRITEDATA:
        easy->write_data = va_arg(values, void *);
        break;
    case CURLOPT_PREREQFUNCTION:
        easy->before = va_arg(values, curl_prereq_callback);
        break;
    case CURLOPT_PREREQDATA:
        easy->before_data = va_arg(values, void *);
        break;
    case CURLOPT_PRIVATE:
        easy->private = va_arg(values, void *);
        break;
    case CURLOPT_TIMEOUT_MS:
        easy->timeout_ms = va_arg(values, long);
        break;
    default:
        break; /* about connections, of which there are none */
    }
    va_end(values);
    return CURLE_OK;
}

CURLcode __wrap_curl_easy_getinfo(CURL *handle, CURLINFO info, ...)
{
    const struct easy *easy = handle;
    va_list values;

    va_start(values, info);
    if (info == CURLINFO_RESPONSE_CODE)
        *va_arg(values, long *) = easy->status;
    else if (info == CURLINFO_PRIVATE)
        *va_arg(values, void **) = easy->private;
    else if (info == CURLINFO_RETRY_AFTER)
        *va_arg(values, curl_off_t *) = easy->retry_after_s;
    va_end(values);
    return CURLE_OK;
}
