# SPDX-License-Identifier: Apache-2.0
"""How long files and functions of C are, how many parameters and fields they have."""

import re

FILE_MAX = 600        # lines
FUNCTION_MAX = 60     # lines, from its name to its brace
PARAMETERS_MAX = 6
FIELDS_MAX = 25

COMMENT = re.compile(r"/\*.*?\*/", re.S)
FUNCTION = re.compile(r"^[A-Za-z_][^;{}#=]*?\b(\w+)\(([^;{}]*?)\)(?:\s+G_GNUC_\w+(?:\([^)]*\))?)*\n\{\n.*?^\}", re.M | re.S)
STRUCT = re.compile(r"^(?:static )?(?:const )?struct (\w+) \{\n(.*?)^\}", re.M | re.S)
FIELD = re.compile(r"[^;{}]+;")


def split_parameters(listed):
    """Commas within parentheses (a pointer to a function) part none."""
    depth, count = 0, 1
    for character in listed:
        depth += (character == "(") - (character == ")")
        count += character == "," and depth == 0
    return count if listed.strip() not in ("", "void") else 0


def count_fields(body):
    return sum(split_parameters(field) for field in FIELD.findall(body) if field.strip(" ;\n"))


def shapes(name, source):
    """("file NAME", lines, limit) of what is above its limit, and so on."""
    lines = source.count("\n")
    if lines > FILE_MAX:
        yield f"{name}: lines", lines
    code = COMMENT.sub(lambda match: "\n" * match[0].count("\n"), source)
    for match in FUNCTION.finditer(code):
        length, parameters = match[0].count("\n") + 1, split_parameters(match[2])
        if length > FUNCTION_MAX:
            yield f"{name} {match[1]}: lines", length
        if parameters > PARAMETERS_MAX:
            yield f"{name} {match[1]}: parameters", parameters
    for match in STRUCT.finditer(code):
        fields = count_fields(match[2])
        if fields > FIELDS_MAX:
            yield f"{name} struct {match[1]}: fields", fields


# What is above a limit, and by how much. A number here may only fall; a row goes once it is within its limit.
ABOVE = {
    "include/gpuledger/dialect.h struct dialect: fields": 44,
    "include/gpuledger/ledger.h struct card: fields": 29,
    "include/gpuledger/ledger.h struct allocation: fields": 35,
    "include/gpuledger/ledger.h struct node: fields": 45,
    "include/gpuledger/object.h struct pod_view: fields": 38,
    "include/gpuledger/terms.h struct terms: fields": 31,
    "src/dialect/hami/hami.h struct vgpu: fields": 35,
    "src/explain/explain.c explain_read_pod: parameters": 7,
    "src/gang/gangs_state.h struct gang: fields": 39,
    "src/gang/gangs_told.c decode_member: parameters": 7,
    "src/gang/gangs_told.c gangs_decode: parameters": 7,
    "src/http/server.c step: parameters": 8,            # libmicrohttpd's
    "src/http/server.c no_certificate: parameters": 8,  # likewise
    "src/json/span.c json_parse_strings: parameters": 7,
    "src/kube/api_client.c api_client_call: lines": 64,
    "src/kube/api_cluster.c get: parameters": 7,
    "src/kube/api_cluster.c api_get_pod: parameters": 7,
    "src/kube/api_cluster.c api_list_pods_on: parameters": 7,
    "src/kube/kubeconfig_entry.c take_pem: parameters": 7,
    "src/kube/reflector.c struct reflector: fields": 28,
    "src/quota/elastic/elastic_state.h struct elastic_quotas: fields": 26,
    "src/record/record.c write_fields: lines": 114,
    "src/record/record_line.h struct record_line: fields": 42,
    "src/record/record_state.c record_state_note: lines": 67,
    "src/simulate/memory_cluster.c memory_get_pod: parameters": 7,
    "src/snapshot/snapshot.c snapshot_get_pod: parameters": 7,
    "src/snapshot/snapshot.c snapshot_list_pods_on: parameters": 7,
    "src/store/feasibility.h struct feasibility: fields": 33,
    "src/store/limited_cluster.c limited_get_pod: parameters": 7,
    "src/store/limited_cluster.c limited_list_pods_on: parameters": 7,
    "src/store/observer.h struct observation: fields": 31,
    "src/store/store.h struct store_options: fields": 26,
    "src/store/store_objects.c store_apply_node: lines": 73,
    "src/store/store_state.h struct store: fields": 55,
    "src/dialect: lines": 11592,
}
FOLDER_MAX = 10000  # lines


def folder_shapes(lines):
    """Of lines by folder, likewise."""
    return [(f"{folder}: lines", count) for folder, count in lines.items() if count > FOLDER_MAX]


def shape_faults(found, above):
    """What is larger than its row says, and rows of what is within its limit."""
    found = dict(found)
    return ([f"{what}: {count}, not {above.get(what, 'above its limit')}" for what, count in found.items()
             if count > above.get(what, 0)]
            + [f"{what}: is within its limit; remove its row" for what in above if what not in found])


def check_shapes(tap, sources):
    """Of texts of C by name."""
    many = "".join(f"    int a{i}, *b{i};\n" for i in range(13))
    long = "".join("    f();\n" for _ in range(58))
    for source, wanted in (
        ("\n" * 601, [("src/a/x.c: lines", 601)]),
        ("\n" * 600, []),
        (f"static int f(void)\n{{\n{long}}}\n", [("src/a/x.c f: lines", 61)]),
        (f"static int f(void)\n{{\n{long[9:]}}}\n", []),
        ("int f(int a, int b, int c,\n      void (*d)(int, int), int e, int g, int h)\n{\n}\n",
         [("src/a/x.c f: parameters", 7)]),
        ("int f(int a, int b, int c, void (*d)(int, int), int e, int g)\n{\n}\n", []),
        (f"struct s {{\n{many}}};\n", [("src/a/x.c struct s: fields", 26)]),
        (f"struct s {{\n{many.replace(', *b0', '')}}};\n", []),
    ):
        tap.equal(list(shapes("src/a/x.c", source)), wanted, f"shapes: {source[:24]!r} ...")
    tap.equal(folder_shapes({"src/a": 10001, "src/b": 10000}), [("src/a: lines", 10001)], "a large folder is found")
    tap.equal(shape_faults([("a", 9), ("b", 9), ("c", 9)], {"a": 9, "b": 8, "d": 9}),
              ["b: 9, not 8", "c: 9, not above its limit", "d: is within its limit; remove its row"],
              "what grows is found")

    found, lines = [], {}
    for name, source in sources.items():
        found += shapes(name, source)
        folder = "/".join(name.split("/")[:2])
        lines[folder] = lines.get(folder, 0) + source.count("\n")
    faults = shape_faults(found + folder_shapes(lines), ABOVE)
    tap.ok(not faults, "files, functions, structs and folders are of a size that one can read", "\n".join(faults))
