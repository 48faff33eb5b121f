# SPDX-License-Identifier: Apache-2.0
"""Certificates for tests, made with the openssl command."""

import pathlib
import subprocess


class Authority:
    """A CA in a folder, and what it signs."""

    def __init__(self, directory, name="ca"):
        self.directory = pathlib.Path(directory)
        self.name = name
        self.certificate, self.key = self._make(name, "-addext", "basicConstraints=critical,CA:TRUE")

    def sign(self, name, *, usage="serverAuth", days=30, names="IP:127.0.0.1,DNS:localhost"):
        """Paths of a certificate, for 127.0.0.1 unless `names` says otherwise, and its key."""
        return self._make(
            name,
            "-CA", self.certificate, "-CAkey", self.key,
            "-addext", "basicConstraints=critical,CA:FALSE",
            *(("-addext", f"subjectAltName={names}") if names else ()),
            *(("-addext", f"extendedKeyUsage={usage}") if usage else ()),
            days=days,
        )

    def _make(self, name, *extra, days=30):
        certificate = self.directory / f"{self.name}-{name}.crt"
        key = self.directory / f"{self.name}-{name}.key"
        subprocess.run(
            ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1",
             "-nodes", "-days", str(days), "-subj", f"/CN={name}", "-keyout", key, "-out",
             certificate, *extra],
            check=True, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
        )
        return certificate, key
