"""Gymnasium environment of a longplay world, played through `longplay serve-env`.

    npx longplay serve-env textcraft              # in one terminal

    from longplay_gymnasium import LongplayEnv    # copy this file beside your script
    env = LongplayEnv("textcraft")
    text, info = env.reset(seed=7)
    text, reward, terminated, truncated, info = env.step(info["actions"][0])

Observations and actions are texts. With `listed=True` an action is an index into `info["actions"]` instead, of a fixed
number, and `info["action_mask"]` tells which of them are there; any other costs a turn in which the world is asked for
something that it does not know. Needs nothing but Python 3.9; where `gymnasium` is installed the class is a
`gymnasium.Env` with spaces. An episode that breaks in the server raises `LongplayError`: it never ends as a reward.
"""
import base64
import json
import os
import random
import socket
import ssl
import urllib.error
import urllib.parse
import urllib.request

try:
    import gymnasium
    import numpy
    Base = gymnasium.Env
except ImportError:
    gymnasium = None
    Base = object


class LongplayError(RuntimeError):
    """Refusal or failure that the server reports; `code` is its name, e.g. EXECUTION_ERROR."""

    def __init__(self, code, message):
        super().__init__(f"{code}: {message}")
        self.code = code


class WebSocket:
    """The client's side of a WebSocket (RFC 6455), as far as OpenEnv's protocol needs it: texts, one answer for one message."""

    def __init__(self, url, timeout):
        parts = urllib.parse.urlsplit(url)
        secure = parts.scheme in ("https", "wss")
        address = (parts.hostname, parts.port or (443 if secure else 80))
        self.socket = socket.create_connection(address, timeout=timeout)
        try:
            if secure:
                self.socket = ssl.create_default_context().wrap_socket(self.socket, server_hostname=parts.hostname)
            self._upgrade(parts)
        except BaseException:
            self.socket.close()
            raise

    def _upgrade(self, parts):
        key = base64.b64encode(os.urandom(16)).decode()
        token = os.environ.get("LONGPLAY_SERVER_TOKEN")
        head = [f"GET {parts.path} HTTP/1.1", f"Host: {parts.netloc}", "Upgrade: websocket", "Connection: Upgrade",
                f"Sec-WebSocket-Key: {key}", "Sec-WebSocket-Version: 13"]
        self.socket.sendall("\r\n".join(head + ([f"Authorization: Bearer {token}"] if token else []) + ["", ""]).encode())
        answer = b""
        while b"\r\n\r\n" not in answer:
            answer += self._read(1)
        status = int(answer.split()[1])
        if status != 101:
            raise LongplayError(str(status), f"{parts.geturl()}: no WebSocket")

    def ask(self, value):
        """Sends JSON and waits for the answer's."""
        self._send(0x81, json.dumps(value).encode())
        whole = b""
        while True:
            head, size = self._read(2)
            size &= 0x7F
            if size > 125:
                size = int.from_bytes(self._read(2 if size == 126 else 8), "big")
            kind, data = head & 0x0F, self._read(size)
            if kind == 8:
                raise ConnectionError("the server closed the connection")
            if kind == 9:
                self._send(0x8A, data)  # a ping
            elif kind in (0, 1):
                whole += data
                if head & 0x80:
                    return json.loads(whole)

    def close(self):
        try:
            self._send(0x88, b"\x03\xe8")
        except OSError:
            pass  # it is gone already
        self.socket.close()

    def _send(self, head, data):
        size = len(data)
        length = bytes([0x80 | size]) if size < 126 else (
            b"\xfe" + size.to_bytes(2, "big") if size < 2**16 else b"\xff" + size.to_bytes(8, "big"))
        mask = os.urandom(4)
        masked = (int.from_bytes(data, "big") ^ int.from_bytes((mask * (size // 4 + 1))[:size], "big")).to_bytes(size, "big")
        self.socket.sendall(bytes([head]) + length + mask + masked)

    def _read(self, size):
        data = bytearray()
        while len(data) < size:
            piece = self.socket.recv(size - len(data))
            if not piece:
                raise ConnectionError("the server closed the connection")
            data += piece
        return bytes(data)


class Server:
    """A world of `longplay serve-env`, by OpenEnv's protocol."""

    def __init__(self, env, url="http://127.0.0.1:36001", timeout=60.0):
        self.env, self.url, self.timeout = env, url.rstrip("/"), timeout
        self._metadata = None

    @property
    def metadata(self):
        """What the server says of the world: name, description, instructions and, under `longplay`, its tasks."""
        if self._metadata is None:
            token = os.environ.get("LONGPLAY_SERVER_TOKEN")
            headers = {"authorization": f"Bearer {token}"} if token else {}
            request = urllib.request.Request(f"{self.url}/openenv/{self.env}/metadata", headers=headers)
            try:
                with urllib.request.urlopen(request, timeout=self.timeout) as response:
                    self._metadata = json.load(response)
            except urllib.error.HTTPError as error:
                if error.code == 404:
                    raise LongplayError("UNKNOWN_ENV", f"{self.url} has no world '{self.env}'") from None
                raise LongplayError(str(error.code), error.read().decode(errors="replace")[:500]) from None
            except (OSError, ValueError) as error:
                raise self._absent(error) from None
        return self._metadata

    def tasks(self, split):
        """Task indices of a split."""
        return [index for first, last in self.metadata["longplay"]["tasks"][split] for index in range(first, last + 1)]

    def connect(self):
        try:
            return WebSocket(f"{self.url}/openenv/{self.env}/ws", self.timeout)
        except (OSError, ValueError, TypeError) as error:
            raise self._absent(error) from None

    def _absent(self, error):
        cure = f"is it running (npx longplay serve-env {self.env}), and the URL as http://127.0.0.1:36001?"
        return LongplayError("NO_SERVER", f"{self.url} does not answer: {error}; {cure}")


def ask(connection, kind, data):
    """Answer to a reset or step: `observation`, `reward`, `done`. An error of the server's raises `LongplayError`."""
    answer = connection.ask({"type": kind, "data": data})
    if answer["type"] == "error":
        raise LongplayError(answer["data"]["code"], answer["data"]["message"])
    return answer["data"]


class LongplayEnv(Base):
    """One session at a time of one world.

    url       of the server; `LONGPLAY_SERVER_TOKEN` is sent where it is set
    horizon   turns until `truncated`; None for as many as one likes
    split     "train" or "test": where tasks come from when `reset` names none
    listed    actions are indices into the listed ones, `max_actions` at most
    timeout   seconds for one answer
    """

    metadata = {"render_modes": ["ansi"]}

    def __init__(self, env, url="http://127.0.0.1:36001", *, horizon=None, split="train", listed=False,
                 max_actions=256, render_mode=None, timeout=60.0):
        if render_mode not in (None, "ansi"):
            raise ValueError(f"render_mode: expected None or 'ansi', got {render_mode!r}")
        if horizon is not None and horizon < 1:
            raise ValueError(f"horizon: expected at least 1, got {horizon}")
        self.env, self.horizon, self.split = env, horizon, split
        self.listed, self.max_actions, self.render_mode = listed, max_actions, render_mode
        self._server = Server(env, url, timeout)
        facts = self._server.metadata["longplay"]
        self._tasks = self._server.tasks(split)
        self._session, self._turn, self._actions, self._text = None, 0, [], ""
        self._draw = random.Random()
        self.reward_range = tuple(facts["rewardRange"])
        if gymnasium:
            longest = facts["maxObservationChars"]
            self.observation_space = AnyText(longest)
            self.action_space = gymnasium.spaces.Discrete(max_actions) if listed else AnyText(10_000)

    def reset(self, *, seed=None, options=None):
        """Opens an episode: of task `options["index"]`, else of one that the seed draws from the split."""
        if Base is not object:
            super().reset(seed=seed)
        options = options or {}
        unknown = set(options) - {"index"}
        if unknown:
            raise ValueError(f"options: expected 'index', got {sorted(unknown)}")
        if seed is not None:
            self._draw.seed(seed)
        index = options["index"] if "index" in options else self._draw.choice(self._tasks)
        self.close()
        self._session = self._server.connect()
        try:
            answer = ask(self._session, "reset", {"index": int(index), "seed": int(seed or 0) & 0xFFFFFFFF})
        except BaseException:
            self.close()
            raise
        self._index = int(index)
        return self._keep(answer), self._info()

    def step(self, action):
        """Takes an action; `truncated` after `horizon` turns."""
        if self._session is None:
            raise LongplayError("EPISODE_OVER", "call reset() first")
        if self.listed:
            if not 0 <= int(action) < self.max_actions:
                raise ValueError(f"action: expected 0 to {self.max_actions - 1}, got {action}")
            there = int(action) < len(self._actions)
            action = self._actions[int(action)] if there else f"no action {action}"
        try:
            answer = ask(self._session, "step", {"action": str(action)})
        except (LongplayError, OSError, ValueError) as error:
            self.close()
            if isinstance(error, LongplayError):
                raise
            raise LongplayError("LOST", f"the episode is lost: {error}") from None
        text = self._keep(answer)
        terminated = answer["done"]
        truncated = not terminated and self.horizon is not None and self._turn >= self.horizon
        info = self._info()
        if terminated:
            info["success"] = answer["observation"]["success"]
        if terminated or truncated:
            self.close()
        return text, float(answer["reward"]), terminated, truncated, info

    def render(self):
        """The last observation's text."""
        return self._text if self.render_mode == "ansi" else None

    def close(self):
        """Gives the session back; called by itself at the end of an episode."""
        session, self._session = self._session, None
        if session is not None:
            session.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def _keep(self, answer):
        observation = answer["observation"]
        self._turn, self._actions, self._text = observation["turn"], observation["actions"], observation["text"]
        if self.listed:
            self._actions = self._actions[: self.max_actions]
        return self._text

    def _info(self):
        info = {"actions": list(self._actions), "turn": self._turn, "index": self._index}
        if self.listed:
            mask = [i < len(self._actions) for i in range(self.max_actions)]
            info["action_mask"] = numpy.array(mask, dtype=numpy.int8) if gymnasium else mask
        return info


if gymnasium:
    class AnyText(gymnasium.spaces.Space):
        """Any string of at most `max_length` characters; gymnasium's own Text allows a given set of characters only."""

        def __init__(self, max_length):
            super().__init__(shape=None, dtype=str)
            self.max_length = max_length

        def contains(self, x):
            return isinstance(x, str) and len(x) <= self.max_length

        def sample(self, mask=None, probability=None):
            return "".join(self.np_random.choice(list("abcdefghij 0123456789"), size=12))

        def __eq__(self, other):
            return isinstance(other, AnyText) and other.max_length == self.max_length
