/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lists what the URLs name, one after the other, page by page over one kept connection with
 * compression, as every client does; throws it away and prints how many seconds that took. The
 * other side of the ratio for start-up.
 */
#include <curl/curl.h>
#include <glib.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static gchar **headers;
static gchar *cacert;
static gchar **urls;

static const GOptionEntry options[] = {
    {"header", 'H', 0, G_OPTION_ARG_STRING_ARRAY, &headers, "sent with every request", "LINE"},
    {"cacert", 0, 0, G_OPTION_ARG_FILENAME, &cacert, "PEM of the server's CA", "FILE"},
    {G_OPTION_REMAINING, 0, 0, G_OPTION_ARG_STRING_ARRAY, &urls, "with a query", "URL"},
    {0},
};

#define HEAD_MAX 65536 /* of a page, with what stands before its items */

static size_t receive(char *data, size_t size, size_t n, void *to)
{
    GString *head = to;

    if (head->len < HEAD_MAX)
        g_string_append_len(head, data, (gssize)(size * n));
    return size * n;
}

/* What asks for the next page; NULL: this was the last. */
static char *find_more(const GString *head)
{
    static const char key[] = "\"continue\":\"";
    const char *items = strstr(head->str, "\"items\":");
    const char *more = strstr(head->str, key);

    if (!items || !more || more > items)
        return NULL;
    more += strlen(key);
    return g_strndup(more, strcspn(more, "\""));
}

static void list(CURL *curl, const char *url, GString *head)
{
    g_autofree char *more = NULL;

    do {
        g_autofree char *escaped = more ? g_uri_escape_string(more, NULL, FALSE) : NULL;
        g_autofree char *page =
            more ? g_strconcat(url, "&continue=", escaped, NULL) : g_strdup(url);

        g_string_truncate(head, 0);
        curl_easy_setopt(curl, CURLOPT_URL, page);
        const CURLcode code = curl_easy_perform(curl);
        if (code != CURLE_OK) {
            fprintf(stderr, "list: %s: %s\n", page, curl_easy_strerror(code));
            exit(1);
        }
        g_free(more);
        more = find_more(head);
    } while (more);
}

int main(int argc, char **argv)
{
    g_autoptr(GOptionContext) context = g_option_context_new("URL…");
    g_autoptr(GError) failure = NULL;
    struct curl_slist *lines = NULL;
    g_autoptr(GString) head = g_string_new(NULL);

    g_option_context_add_main_entries(context, options, NULL);
    if (!g_option_context_parse(context, &argc, &argv, &failure) || !urls) {
        fprintf(stderr, "list: %s\n", failure ? failure->message : "no URL");
        return 2;
    }
    curl_global_init(CURL_GLOBAL_DEFAULT);
    CURL *curl = curl_easy_init();
    for (gchar **header = headers; header && *header; header++)
        lines = curl_slist_append(lines, *header);
    curl_easy_setopt(curl, CURLOPT_HTTPHEADER, lines);
    curl_easy_setopt(curl, CURLOPT_ACCEPT_ENCODING, "gzip");
    curl_easy_setopt(curl, CURLOPT_FAILONERROR, 1L);
    curl_easy_setopt(curl, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
    curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, receive);
    curl_easy_setopt(curl, CURLOPT_WRITEDATA, head);
    if (cacert)
        curl_easy_setopt(curl, CURLOPT_CAINFO, cacert);

    const int64_t start_us = g_get_monotonic_time();
    for (gchar **url = urls; *url; url++)
        list(curl, *url, head);
    printf("%.4f\n", (double)(g_get_monotonic_time() - start_us) / 1e6);
    curl_easy_cleanup(curl);
    curl_slist_free_all(lines);
    return 0;
}
