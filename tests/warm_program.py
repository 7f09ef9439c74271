"""What stands for a program that runs in a warm Python: gives away its streams, folder and environment, and waits.

Loads next to nothing: it is started for every program.
"""

from __future__ import annotations

import os
import signal
import socket
import sys

__all__ = ["run"]


def run(path: str, arguments: list[str]) -> int:
    """Have the server at `path` run a program in this one's place; return its exit code, or end as it was ended."""
    variables = [key + b"=" + value for key, value in os.environb.items()]
    here = os.getcwdb()  # noqa: PTH109 -- pathlib takes longer to load than all else here
    fields = [here, b"%d" % len(arguments), *map(os.fsencode, arguments), *variables]
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as server:
        server.connect(path)
        socket.send_fds(server, [b"streams"], [0, 1, 2])
        server.sendall(b"\0".join(fields))
        server.shutdown(socket.SHUT_WR)
        for stream in (0, 1, 2):  # a pipe that the program closes would stay open here
            os.close(stream)
        code = int(server.recv(16))
    if code < 0:
        if -code != signal.SIGKILL:
            signal.signal(-code, signal.SIG_DFL)
        os.kill(os.getpid(), -code)
    return code


if __name__ == "__main__":
    os._exit(run(sys.argv[1], sys.argv[2:]))
