"""Client of `longplay serve-env` for Python 3.9 and newer, without dependencies: OpenEnv's protocol over a WebSocket.

    from longplay_openenv import Session, describe   # copy this file beside your script
    facts = describe("http://127.0.0.1:36001", "textcraft")
    session = Session("http://127.0.0.1:36001", "textcraft")
    result = session.reset(index=0)                   # {"observation": {"text", "actions", ...}, "reward", "done"}
    result = session.step("inventory")
    session.close()

The bridges to gymnasium and verifiers import it. OpenEnv's own `GenericEnvClient(base_url=".../openenv/textcraft")` plays
the same worlds.
"""
import base64
import hashlib
import json
import os
import socket
import ssl
import struct
import urllib.error
import urllib.parse
import urllib.request

GUID = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
MAX_BYTES = 16 * 2**20


class LongplayError(RuntimeError):
    """Refusal or failure. `code` is OpenEnv's, e.g. EXECUTION_ERROR, or NO_SERVER, UNKNOWN_ENV, CONNECTION_LOST.

    cause   how the environment broke, e.g. timeout; None where it did not
    """

    def __init__(self, code, message, cause=None):
        super().__init__(f"{code}: {message}")
        self.code, self.cause = code, cause


def describe(url, env, timeout=60.0):
    """Description of a world: `name`, `description`, `readme_content`, and longplay's facts in `metadata`."""
    request = urllib.request.Request(f"{url.rstrip('/')}/openenv/{env}/metadata", headers=_authorization())
    try:
        with urllib.request.urlopen(request, timeout=timeout) as response:
            return json.loads(response.read(MAX_BYTES))
    except urllib.error.HTTPError as error:
        if error.code == 404:
            raise LongplayError("UNKNOWN_ENV", f"{url} does not serve {env}") from None
        raise LongplayError(f"HTTP_{error.code}", f"{url} refuses: {error.reason}") from None
    except (urllib.error.URLError, OSError) as error:
        raise _no_server(url, env, getattr(error, "reason", error)) from None


def task_indices(description, split):
    """Indices of a split's tasks, "train" or "test", ascending."""
    ranges = description["metadata"]["longplay"]["tasks"][split]
    return [index for first, last in ranges for index in range(first, last + 1)]


class Session:
    """One connection to a world. It plays one episode at a time; `reset` begins the next.

    url       of the server; `LONGPLAY_SERVER_TOKEN` is sent where it is set
    timeout   seconds for one answer
    """

    def __init__(self, url, env, timeout=60.0):
        try:
            at = urllib.parse.urlsplit(url.rstrip("/"))
            secure = {"http": False, "https": True}[at.scheme]
            self._socket = socket.create_connection((at.hostname, at.port or (443 if secure else 80)), timeout)
            if secure:
                self._socket = ssl.create_default_context().wrap_socket(self._socket, server_hostname=at.hostname)
        except (OSError, KeyError, ValueError) as error:
            raise _no_server(url, env, error) from None
        self._unread = b""
        try:
            status = self._upgrade(f"{at.path}/openenv/{env}/ws", at.netloc)
        except LongplayError:
            self._socket.close()
            raise
        if status != 101:
            self._socket.close()
            raise LongplayError("UNKNOWN_ENV" if status == 404 else f"HTTP_{status}", f"{url} refuses a session of {env}")

    def reset(self, **data):
        """Begins an episode: of task `index`, else of one of `split` that `seed` draws. Returns the first result."""
        return self._ask({"type": "reset", "data": data})

    def step(self, action):
        """Takes an action. Returns `{"observation": {"text", "actions", "turn", "success"}, "reward", "done"}`."""
        return self._ask({"type": "step", "data": {"action": action}})

    def state(self):
        """State of the episode: its id, its task, the number of steps."""
        return self._ask({"type": "state"})

    def close(self):
        """Ends the session; twice does no harm."""
        try:
            self._send(0x8, struct.pack(">H", 1000))
        except (LongplayError, OSError):
            pass  # it has expired, or the server is gone
        self._socket.close()

    def _ask(self, message):
        try:
            self._send(0x1, json.dumps(message).encode())
            answer = json.loads(self._receive())
        except BaseException:
            self._socket.close()  # a late answer must not be taken for the next one's
            raise
        data = answer["data"]
        if answer["type"] == "error":
            cause = data.get("metadata", {}).get("longplay", {}).get("cause")
            raise LongplayError(data["code"], data["message"], cause)
        return data

    # WebSocket (RFC 6455): frames of a client are masked; those of the server may come in parts.
    def _upgrade(self, path, host):
        key = base64.b64encode(os.urandom(16))
        headers = {"Host": host, "Upgrade": "websocket", "Connection": "Upgrade", "Sec-WebSocket-Version": "13",
                   "Sec-WebSocket-Key": key.decode(), **_authorization()}
        lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
        self._write(f"GET {path} HTTP/1.1\r\n{lines}\r\n".encode())
        while b"\r\n\r\n" not in self._unread and len(self._unread) < 2**16:
            self._unread += self._more()
        head, _, self._unread = self._unread.partition(b"\r\n\r\n")
        status = int(head.split(None, 2)[1]) if head.startswith(b"HTTP/1.1 ") else 0
        accepted = base64.b64encode(hashlib.sha1(key + GUID).digest())
        return 0 if status == 101 and accepted not in head else status

    def _send(self, kind, data):
        size = len(data)
        if size < 126:
            head = struct.pack(">BB", 0x80 | kind, 0x80 | size)
        elif size < 2**16:
            head = struct.pack(">BBH", 0x80 | kind, 0x80 | 126, size)
        else:
            head = struct.pack(">BBQ", 0x80 | kind, 0x80 | 127, size)
        mask = os.urandom(4)
        self._write(head + mask + bytes(byte ^ mask[at & 3] for at, byte in enumerate(data)))

    def _receive(self):
        message = b""
        while True:
            first, size = self._read(2)
            kind, size = first & 0xF, size & 0x7F
            if size == 126:
                size = struct.unpack(">H", self._read(2))[0]
            elif size == 127:
                size = struct.unpack(">Q", self._read(8))[0]
            if size + len(message) > MAX_BYTES:
                raise LongplayError("CONNECTION_LOST", "an answer of more than 16 MiB")
            data = self._read(size)
            if kind == 0x8:
                raise LongplayError("CONNECTION_LOST", f"the server ended the session: {data[2:].decode(errors='replace')}")
            if kind == 0x9:
                self._send(0xA, data)
            elif kind in (0x0, 0x1):
                message += data
                if first & 0x80:
                    return message

    def _write(self, data):
        try:
            self._socket.sendall(data)
        except OSError as error:
            raise LongplayError("CONNECTION_LOST", str(error)) from None

    def _read(self, size):
        while len(self._unread) < size:
            self._unread += self._more()
        data, self._unread = self._unread[:size], self._unread[size:]
        return data

    def _more(self):
        try:
            piece = self._socket.recv(2**16)
        except OSError as error:
            raise LongplayError("CONNECTION_LOST", str(error)) from None
        if not piece:
            raise LongplayError("CONNECTION_LOST", "the server closed the connection")
        return piece


def _authorization():
    token = os.environ.get("LONGPLAY_SERVER_TOKEN")
    return {"Authorization": f"Bearer {token}"} if token else {}


def _no_server(url, env, reason):
    cure = f"is it running (npx longplay serve-env {env}), and the URL like http://127.0.0.1:36001?"
    return LongplayError("NO_SERVER", f"{url} does not answer: {reason}; {cure}")
