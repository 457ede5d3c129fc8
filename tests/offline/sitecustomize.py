"""On PYTHONPATH of a process under test: no connection leaves the machine."""

import socket

_connect = socket.socket.connect
_getaddrinfo = socket.getaddrinfo
LOCAL = ("127.", "localhost", "::1", "0.0.0.0")


def connect(self, address):
    is_unix = self.family == getattr(socket, "AF_UNIX", None)
    if not is_unix and not str(address[0]).startswith(LOCAL):
        raise OSError(f"network refused by the test: {address[0]}")
    return _connect(self, address)


def getaddrinfo(host, *args, **kwargs):
    if host and not str(host).startswith(LOCAL):
        raise socket.gaierror(f"network refused by the test: {host}")
    return _getaddrinfo(host, *args, **kwargs)


socket.socket.connect = connect
socket.getaddrinfo = getaddrinfo
