#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""usage: cage.py UID COMMAND ...

Becomes COMMAND as a container of the shipped Deployment runs it: as that user, without any
capability, with every file system read-only, and killed for a system call that the usual seccomp
profile (RuntimeDefault) refuses to who has no capabilities. Ends with 77 and says why where the
machine does not let it.
"""

import ctypes
import os
import platform
import struct
import subprocess
import sys

SKIP = 77
PR_SET_NO_NEW_PRIVS, PR_SET_SECCOMP, SECCOMP_MODE_FILTER = 38, 22, 2
ARCHITECTURE = 0xC000003E  # AUDIT_ARCH_X86_64
ALLOW, KILL = 0x7FFF0000, 0x80000000

# Numbers on x86-64. Source: "Seccomp security profiles for Docker", significant blocked calls.
REFUSED = {
    "pivot_root": 155, "chroot": 161, "acct": 163, "settimeofday": 164, "mount": 165,
    "umount2": 166, "swapon": 167, "swapoff": 168, "reboot": 169, "iopl": 172, "ioperm": 173,
    "init_module": 175, "delete_module": 176, "quotactl": 179, "clock_settime": 227, "mbind": 237,
    "set_mempolicy": 238, "kexec_load": 246, "add_key": 248, "request_key": 249, "keyctl": 250,
    "unshare": 272, "move_pages": 279, "perf_event_open": 298, "open_by_handle_at": 304,
    "clock_adjtime": 305, "setns": 308, "process_vm_readv": 310, "process_vm_writev": 311,
    "kcmp": 312, "finit_module": 313, "kexec_file_load": 320, "bpf": 321, "userfaultfd": 323,
    "io_uring_setup": 425, "io_uring_enter": 426,
}


def instruction(code, if_true, if_false, value):
    return struct.pack("HBBI", code, if_true, if_false, value)


def filter_program():
    """Loads the architecture, then the number, and compares."""
    load, equal, end = 0x20, 0x15, 0x06
    program = [instruction(load, 0, 0, 4), instruction(equal, 1, 0, ARCHITECTURE),
               instruction(end, 0, 0, KILL), instruction(load, 0, 0, 0)]
    for number in REFUSED.values():
        program += [instruction(equal, 0, 1, number), instruction(end, 0, 0, KILL)]
    return program + [instruction(end, 0, 0, ALLOW)]


def skip(why):
    print(f"cage.py: {why}", file=sys.stderr)
    sys.exit(SKIP)


def forbid_calls():
    libc = ctypes.CDLL(None, use_errno=True)
    program = filter_program()
    text = ctypes.create_string_buffer(b"".join(program))
    header = struct.pack("HxxxxxxP", len(program), ctypes.addressof(text))
    if libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0:
        skip("no_new_privs: " + os.strerror(ctypes.get_errno()))
    if libc.prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, ctypes.create_string_buffer(header)) != 0:
        skip("seccomp: " + os.strerror(ctypes.get_errno()))


def make_read_only():
    """Every mount that this namespace, made for us by unshare, can see."""
    with open("/proc/self/mounts", encoding="utf-8") as mounts:
        points = [line.split()[1].encode().decode("unicode_escape") for line in mounts]
    for point in dict.fromkeys(points):
        answer = subprocess.run(["mount", "-o", "remount,bind,ro", point], check=False,
                                stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        if answer.returncode != 0 and point == "/":
            skip("the root cannot be made read-only: " + answer.stderr.strip())


def enter(user, *command):
    """A mount namespace of our own."""
    if platform.machine() != "x86_64":
        skip("the numbers of system calls are those of x86-64")
    if os.geteuid() != 0:
        skip("only root may become another user")
    os.execvp("unshare", ["unshare", "--mount", "--propagation", "private", sys.executable,
                          __file__, "--inside", user, *command])


def become(user, *command):
    make_read_only()
    os.execvp("setpriv", ["setpriv", f"--reuid={user}", f"--regid={user}", "--clear-groups",
                          "--bounding-set=-all", "--inh-caps=-all", "--ambient-caps=-all",
                          "--no-new-privs", sys.executable, __file__, "--last", *command])


def run(*command):
    forbid_calls()
    os.execvp(command[0], command)


def main():
    stages = {"--inside": become, "--last": run}
    words = sys.argv[1:]
    if len(words) < 2:
        sys.exit(__doc__)
    if words[0] in stages:
        stages[words[0]](*words[1:])
    enter(*words)


if __name__ == "__main__":
    main()
