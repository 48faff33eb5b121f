/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sends the requests on standard input (one a line: METHOD, URL, body, separated by tabs) over a
 * number of kept connections and prints one JSON object: how many, how long, how many failed. The
 * same sender stands on both sides of every ratio.
 *
 * A request failed if its status is not 2xx, or if the answer is an extender's with an error.
 */
#include <curl/curl.h>
#include <glib.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static gint connections = 16;
static gchar **headers;
static gchar *cacert, *certificate, *key;
static gboolean save, fresh;

static const GOptionEntry options[] = {
    {"connections", 'c', 0, G_OPTION_ARG_INT, &connections, "connections at a time", "N"},
    {"header", 'H', 0, G_OPTION_ARG_STRING_ARRAY, &headers, "sent with every request", "LINE"},
    {"cacert", 0, 0, G_OPTION_ARG_FILENAME, &cacert, "PEM of the server's CA", "FILE"},
    {"cert", 0, 0, G_OPTION_ARG_FILENAME, &certificate, "PEM of a certificate to show", "FILE"},
    {"key", 0, 0, G_OPTION_ARG_FILENAME, &key, "PEM of its key", "FILE"},
    {"fresh", 0, 0, G_OPTION_ARG_NONE, &fresh, "a new connection for each request", NULL},
    {"show-failures", 0, 0, G_OPTION_ARG_NONE, &save, "print failed answers", NULL},
    {0},
};

struct line {
    char *method, *url, *body;
};

struct sender {
    GArray *lines; /* shared */
    gint *next;    /* shared, atomic */
    GArray *times_us;
    int failed;
};

static size_t collect(char *data, size_t size, size_t n, void *to)
{
    g_string_append_len(to, data, (gssize)(size * n));
    return size * n;
}

static bool send_one(CURL *curl, const struct line *line, GString *answer)
{
    long status = 0;

    g_string_truncate(answer, 0);
    curl_easy_setopt(curl, CURLOPT_URL, line->url);
    curl_easy_setopt(curl, CURLOPT_CUSTOMREQUEST, line->method);
    if (line->body && *line->body) {
        curl_easy_setopt(curl, CURLOPT_POSTFIELDS, line->body);
    } else {
        curl_easy_setopt(curl, CURLOPT_HTTPGET, 1L);
        curl_easy_setopt(curl, CURLOPT_CUSTOMREQUEST, line->method);
    }
    if (curl_easy_perform(curl) != CURLE_OK)
        return false;
    curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &status);
    return status / 100 == 2 &&
           (!strstr(answer->str, "\"Error\":") || strstr(answer->str, "\"Error\":\"\""));
}

static void *run(void *data)
{
    struct sender *sender = data;
    GString *answer = g_string_new(NULL);
    struct curl_slist *list = NULL;
    CURL *curl = curl_easy_init();

    for (gchar **header = headers; header && *header; header++)
        list = curl_slist_append(list, *header);
    list = curl_slist_append(list, "Content-Type: application/json");
    list = curl_slist_append(list, "Expect:");
    curl_easy_setopt(curl, CURLOPT_HTTPHEADER, list);
    curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, collect);
    curl_easy_setopt(curl, CURLOPT_WRITEDATA, answer);
    curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(curl, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
    if (cacert)
        curl_easy_setopt(curl, CURLOPT_CAINFO, cacert);
    if (certificate) {
        curl_easy_setopt(curl, CURLOPT_SSLCERT, certificate);
        curl_easy_setopt(curl, CURLOPT_SSLKEY, key);
    }
    if (fresh) {
        curl_easy_setopt(curl, CURLOPT_FRESH_CONNECT, 1L);
        curl_easy_setopt(curl, CURLOPT_FORBID_REUSE, 1L);
    }
    for (;;) {
        guint i = (guint)g_atomic_int_add(sender->next, 1);
        if (i >= sender->lines->len)
            break;
        int64_t start_us = g_get_monotonic_time();
        bool sent = send_one(curl, &g_array_index(sender->lines, struct line, i), answer);
        int64_t took_us = g_get_monotonic_time() - start_us;
        g_array_append_val(sender->times_us, took_us);
        sender->failed += !sent;
        if (!sent && save)
            fprintf(stderr, "%.300s\n", answer->str);
    }
    curl_easy_cleanup(curl);
    curl_slist_free_all(list);
    g_string_free(answer, TRUE);
    return NULL;
}

static GArray *read_lines(void)
{
    GArray *lines = g_array_new(FALSE, FALSE, sizeof(struct line));
    char *text = NULL;
    size_t size = 0;

    while (getline(&text, &size, stdin) > 0) {
        gchar **parts = g_strsplit(g_strchomp(text), "\t", 3);
        if (g_strv_length(parts) >= 2) {
            struct line line = {parts[0], parts[1], parts[2]};
            g_array_append_val(lines, line);
        }
        g_free(parts); /* the strings stay with the line */
    }
    free(text);
    return lines;
}

static gint compare_times(gconstpointer a, gconstpointer b)
{
    int64_t left = *(const int64_t *)a, right = *(const int64_t *)b;
    return (left > right) - (left < right);
}

int main(int argc, char **argv)
{
    g_autoptr(GOptionContext) context = g_option_context_new("< requests");
    g_autoptr(GError) failure = NULL;
    gint next = 0;
    int failed = 0;

    g_option_context_add_main_entries(context, options, NULL);
    if (!g_option_context_parse(context, &argc, &argv, &failure) || connections < 1) {
        fprintf(stderr, "load: %s\n", failure ? failure->message : "--connections must be above 0");
        return 2;
    }
    curl_global_init(CURL_GLOBAL_DEFAULT);
    GArray *lines = read_lines();
    GArray *times_us = g_array_new(FALSE, FALSE, sizeof(int64_t));
    g_autofree struct sender *senders = g_new0(struct sender, (gsize)connections);
    g_autofree pthread_t *threads = g_new0(pthread_t, (gsize)connections);

    int64_t start_us = g_get_monotonic_time();
    for (int i = 0; i < connections; i++) {
        senders[i] = (struct sender){lines, &next, g_array_new(FALSE, FALSE, sizeof(int64_t)), 0};
        pthread_create(&threads[i], NULL, run, &senders[i]);
    }
    for (int i = 0; i < connections; i++) {
        pthread_join(threads[i], NULL);
        g_array_append_vals(times_us, senders[i].times_us->data, senders[i].times_us->len);
        failed += senders[i].failed;
        g_array_unref(senders[i].times_us);
    }
    double seconds = (double)(g_get_monotonic_time() - start_us) / 1e6;

    g_array_sort(times_us, compare_times);
    guint last = times_us->len ? times_us->len - 1 : 0;
    printf("{\"requests\":%u,\"failed\":%d,\"seconds\":%.3f,\"rate\":%.1f,\"p50_us\":%" G_GINT64_FORMAT
           ",\"p99_us\":%" G_GINT64_FORMAT "}\n",
           lines->len, failed, seconds, lines->len / seconds,
           times_us->len ? g_array_index(times_us, int64_t, last / 2) : 0,
           times_us->len ? g_array_index(times_us, int64_t, last * 99 / 100) : 0);
    return 0;
}
