"""A hook's process: it passes the document on its input to the session's socket, and prints the answer.

It is run as a file, by `python -I -S`, and imports little, since it starts before and after each tool call. Whatever
fails, it prints nothing and exits with 0, and the call goes on.
"""

import socket
import sys

__all__ = ["main"]

_TIMEOUT_S = 2.0
_MAX_BYTES = 16 << 20


def main() -> None:
    """Exchange one document for one answer."""
    try:
        document = sys.stdin.buffer.read(_MAX_BYTES)
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
            connection.settimeout(_TIMEOUT_S)
            connection.connect(sys.argv[1])
            connection.sendall(document)
            connection.shutdown(socket.SHUT_WR)
            answer = b""
            while part := connection.recv(65536):
                answer += part
        sys.stdout.buffer.write(answer)
        sys.stdout.buffer.flush()
    except Exception:  # noqa: S110, an assistant must not stop because its memory does
        pass


if __name__ == "__main__":
    main()
