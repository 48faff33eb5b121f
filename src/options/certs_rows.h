/* SPDX-License-Identifier: Apache-2.0 */
/* The options of the command "certs": rows of options[], included there. */
/* clang-format off */
    {"folder", PATH(certs_folder, "FOLDER", "gpuledger-tls"), CERTS,
     .help = "Where all of it is kept for the next time, readable by its owner only. The key of the "
             "CA is nowhere else: whoever has it may bind pods. With --folder= nothing is kept, and "
             "the next time makes another CA."},
    {"namespace", NAMESPACE(certs_namespace, "kube-system"), CERTS,
     .help = "Where the extender and its Services are."},
    {"clients", LIST(certs_clients, "NAME,...", "kube-scheduler", item_list_names), CERTS,
     .help = "Who gets a certificate to call --listen with, each in a Secret gpuledger-NAME of its "
             "own. Name the same ones in --tls-client-names of serve."},
    {"hosts", LIST(certs_hosts, "HOST,...", "", item_list_names), CERTS,
     .help = "By which further names or addresses the extender is called, beside those of its "
             "Services and of this machine."},
    {"days", INT(certs_days, "N", "365", 1, AUTHORITY_DAYS), CERTS,
     .help = "How long new certificates are good. Those of which a third of the time is left are "
             "kept. The CA lasts ten years."},
    {"renew", BOOL(certs_renew, "false"), CERTS,
     .help = "Make certificates and token anew although they are good; the CA stays."},
