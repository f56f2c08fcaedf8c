"""Who may use a server beyond this PC: a certificate that is pinned, and a token."""

from __future__ import annotations

import hmac
import os
import secrets
import subprocess
from pathlib import Path
from typing import Any

import grpc

from pynq_torch.board.remote.link import SERVER_NAME, read_access
from pynq_torch.errors import BoardError

__all__ = ["Token", "credentials", "make_access"]


def make_access(file: Path) -> None:
    """Write an access file for clients, and beside it the server's private key.

    Parameters
    ----------
    file : pathlib.Path
        Certificate and token; the key is ``FILE.key``. Only this user can read them.

    Raises
    ------
    BoardError
        The program ``openssl`` is missing or fails.
    """
    key = file.with_name(f"{file.name}.key")
    command = ["openssl", "req", "-x509", "-nodes", "-newkey", "ec", "-days", "3650"]
    command += ["-pkeyopt", "ec_paramgen_curve:prime256v1", "-subj", f"/CN={SERVER_NAME}"]
    command += ["-addext", f"subjectAltName=DNS:{SERVER_NAME}", "-keyout", "-"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    except (OSError, subprocess.SubprocessError) as error:
        raise BoardError(
            f"no certificate could be made: {error}. Install openssl, which `serve --access` uses."
        ) from error
    begin = done.stdout.index("-----BEGIN CERTIFICATE")
    token = secrets.token_urlsafe(24)
    for path, text in ((key, done.stdout[:begin]), (file, f"{done.stdout[begin:]}token {token}\n")):
        with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as out:
            out.write(text)


def credentials(file: Path) -> tuple[grpc.ServerCredentials, Token]:
    """Return a server's credentials and the check of its clients', by the files of `make_access`.

    Raises
    ------
    BoardError
        A file cannot be read, or is none.
    """
    certificate, token = read_access(file)
    try:
        key = file.with_name(f"{file.name}.key").read_bytes()
    except OSError as error:
        raise BoardError(f"the key of {file} cannot be read: {error}") from error
    return grpc.ssl_server_credentials([(key, certificate)]), Token(token)


class Token(grpc.ServerInterceptor):
    """Refuses calls without the token, before anything of theirs is looked at."""

    def __init__(self, token: str) -> None:
        self._wanted = f"Bearer {token}".encode()

    def intercept_service(self, continuation: Any, handler_call_details: Any) -> Any:
        """Return what serves the call, or what refuses it."""
        given = dict(handler_call_details.invocation_metadata).get("authorization", "")
        if hmac.compare_digest(str(given).encode(), self._wanted):
            return continuation(handler_call_details)
        return grpc.unary_unary_rpc_method_handler(_refuse)


def _refuse(request: Any, context: grpc.ServicerContext) -> Any:
    context.abort(
        grpc.StatusCode.UNAUTHENTICATED,
        "the token is not this server's; copy its access file again",
    )
