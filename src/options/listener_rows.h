/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The rows of the table of options (options/rest_section.c) that say where serve listens and whom it lets
 * in; included there and nowhere else.
 */
/* clang-format off */
    {"listen", ADDRESS(listen, "127.0.0.1:39999"), IN(LISTENERS, COMMAND_SERVE),
     .alias = "PORT", .alias_help = "the port only, of all addresses", .read_alias = alias_read_port,
     .alias_base = "0.0.0.0:39999",
     .help = "Where kube-scheduler calls filter and bind: 0.0.0.0:39999 for one elsewhere. Port 0 takes any "
             "free one; the log says which."},
    {"ops-listen", ADDRESS(ops_listen, "127.0.0.1:39998"),
     IN(LISTENERS, COMMAND_SERVE), .flags = OPTION_CAN_BE_OFF,
     .help = "Where probes, metrics and the views for people are served, or off."},
    {"admission", BOOL(admission, "false"), IN(LISTENERS, COMMAND_SERVE),
     .help = "Serve POST /admission/mig, a mutating admission webhook for pods that ask for "
             "gpuledger.io/mig-memory: they get the smallest MIG profile that is enough. The API "
             "server wants TLS; see manifests/overlays/admission."},
    {"max-connections", INT(max_connections, "N", "4096", 1, 65536), IN(LISTENERS, COMMAND_SERVE),
     .help = "Connections that --listen accepts at a time. Each costs a thread while it is open, "
             "and each bind that waits keeps one. Beyond that a newcomer takes the place of a "
             "connection that only waits: of a client that holds more than a quarter of all, else "
             "of one that never made a call, else of the one that waits longest."},
    {"max-body", SIZE(max_body, "64MiB", 1 << 16, 1 << 30), IN(LISTENERS, COMMAND_SERVE),
     .help = "The largest request that is read. 5,000 node names take 0.1 MiB, 5,000 whole nodes "
             "(nodeCacheCapable: false) about 40 MiB."},
    {"transfer-timeout", DURATION(transfer_timeout_ms, "30s", 100, 10 * MINUTE_MS),
     IN(LISTENERS, COMMAND_SERVE),
     .help = "How long a request may take to arrive, first byte to last, and its answer to be "
             "taken, on either listener. A TLS handshake has the same, at most 10s."},
    {"tls-cert", PATH(tls_cert, "FILE", ""), IN(LISTENERS, COMMAND_SERVE),
     .help = "Serve --listen over TLS (1.2 or later) with this certificate, in PEM form, followed "
             "by those that signed it. The file is read again within a second of a change, and on "
             "SIGHUP; connections that are open stay."},
    {"tls-key", PATH(tls_key, "FILE", ""), IN(LISTENERS, COMMAND_SERVE),
     .help = "The private key of --tls-cert, in PEM form and not encrypted."},
    {"tls-client-ca", PATH(tls_client_ca, "FILE", ""), IN(LISTENERS, COMMAND_SERVE),
     .help = "Turn away clients of --listen without a certificate that one of these CAs signed, "
             "in PEM form. Whoever has one may bind pods: use a CA that signs for nobody else, or "
             "say which names may. The certificate must be for clients (extendedKeyUsage "
             "clientAuth)."},
    {"tls-client-names", LIST(tls_client_names, "NAME,...", "", item_list_names),
     IN(LISTENERS, COMMAND_SERVE),
     .help = "Of those certificates take only the ones with one of these names, exactly, as common "
             "name or as DNS name."},
    {"ops-tls", BOOL(ops_tls, "false"), IN(LISTENERS, COMMAND_SERVE),
     .help = "Serve --ops-listen over TLS as well, with the certificate of --tls-cert. Clients need "
             "none there: they show the token of --ops-token-file."},
    {"ops-token-file", PATH(ops_token_file, "FILE", ""), IN(LISTENERS, COMMAND_SERVE),
     .help = "Ask callers of --ops-listen for the token in this file ('Authorization: Bearer "
             "TOKEN'), except for /healthz, /livez and /readyz, which without it name no reasons. It "
             "is read again when it changes; without the file, or a token in it, nobody is let "
             "in."},
    {"ops-hosts", LIST(ops_hosts, "NAME,...", "", item_list_names), IN(LISTENERS, COMMAND_SERVE),
     .help = "Without --ops-token-file, --ops-listen answers requests that name it by address, as "
             "localhost, or by one of these names. Any other name in Host may be that of a web page "
             "that has a browser read views."},
