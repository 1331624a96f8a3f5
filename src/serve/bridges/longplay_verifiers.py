"""Verifiers environment of a longplay world, played through `longplay serve-env`.

    npx longplay serve-env textcraft              # in one terminal

    from longplay_verifiers import load_environment   # copy this file beside your script
    env = load_environment("textcraft", max_turns=30)

A dataset row is a task: system instructions and the first observation as its prompt, `info` with its index and seed.
Every answer of the model is taken as the action (what a reasoning model thinks before `</think>` is left out); the
world's answer follows as a user message, with the actions that are possible. The reward is the sum of the world's
rewards. For `verifiers.MultiTurnEnv` (0.1.x): `setup_state`, `env_response`, `is_completed`. `Episode` and `settle`, which do
the work, need nothing but Python 3.9.
"""
import asyncio
import base64
import json
import os
import socket
import ssl
import urllib.error
import urllib.parse
import urllib.request


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


def message_of(observation, actions):
    """What the model reads of a turn."""
    return observation + ("\n\nAvailable actions:\n" + "\n".join(actions) if actions else "")


def action_of(answer):
    """Action in a model's answer: its text without what was thought before."""
    return answer.rsplit("</think>", 1)[-1].strip()


class Episode:
    """One episode, as messages. `connection` is one whose earlier episode, if any, is given up."""

    def __init__(self, server, index, seed=0, connection=None):
        self.connection = connection or server.connect()
        try:
            answer = ask(self.connection, "reset", {"index": int(index), "seed": int(seed)})
        except BaseException:
            self.close()
            raise
        self.turn, self.reward, self.done, self.success = 0, 0.0, False, None
        self.first = self._message(answer)

    def answer(self, text):
        """Takes the action in a model's answer. Returns the message that the model reads next."""
        if self.done:
            raise LongplayError("EPISODE_OVER", "the episode has ended")
        try:
            answer = ask(self.connection, "step", {"action": action_of(text)})
        except (OSError, ValueError) as error:
            raise LongplayError("LOST", f"the episode is lost: {error}") from None
        self.turn += 1
        self.reward += answer["reward"]
        self.done, self.success = answer["done"], answer["observation"]["success"]
        return self._message(answer)

    def close(self):
        self.connection.close()

    @staticmethod
    def _message(answer):
        observation = answer["observation"]
        return message_of(observation["text"], observation["actions"])


def settle(episode, completion):
    """Reward of a finished rollout. An answer that came in the last turn is played first: nobody asked for its reply."""
    if episode is None:
        return 0.0
    answers = [message for message in completion if message["role"] == "assistant"]
    if not episode.done and len(answers) > episode.turn:
        episode.answer(answers[-1]["content"] or "")
    episode.close()
    return episode.reward


def rows_of(server, split, limit=None, seed=0):
    """Dataset rows of a split's tasks; each is opened once for its first observation."""
    instructions = server.metadata["readme_content"]
    rows, connection = [], server.connect()
    for index in server.tasks(split)[:limit]:
        episode = Episode(server, index, seed, connection)
        prompt = [{"role": "system", "content": instructions}, {"role": "user", "content": episode.first}]
        rows.append({"prompt": prompt, "answer": "", "info": {"index": index, "seed": seed}})
    connection.close()
    return rows


def load_environment(env="textcraft", url="http://127.0.0.1:36001", max_turns=30, tasks=None, eval_tasks=None, **kwargs):
    """Verifiers environment: `tasks` and `eval_tasks` bound the numbers of training and test tasks."""
    import verifiers as vf
    from datasets import Dataset

    server = Server(env, url)

    class LongplayMultiTurnEnv(vf.MultiTurnEnv):
        async def setup_state(self, state, **_):
            info = state["info"]
            info = json.loads(info) if isinstance(info, str) else info
            state["episode"] = await asyncio.to_thread(Episode, server, info["index"], info["seed"])
            return state

        async def env_response(self, messages, state, **_):
            text = await asyncio.to_thread(state["episode"].answer, messages[-1]["content"] or "")
            reply = [{"role": "user", "content": text}]
            return reply if returns_messages else (reply, state)

        async def is_completed(self, *args, **more):
            episode = args[-1].get("episode")  # (messages, state), or the state alone in newer versions
            return bool(episode and episode.done) or await super().is_completed(*args, **more)

    # Newer versions name stop conditions by decorator and take the messages alone from `env_response`.
    returns_messages = hasattr(vf, "stop")

    async def world_reward(completion, state, **_):
        return await asyncio.to_thread(settle, state.get("episode"), completion)

    return LongplayMultiTurnEnv(
        dataset=Dataset.from_list(rows_of(server, "train", tasks)),
        eval_dataset=Dataset.from_list(rows_of(server, "test", eval_tasks)),
        rubric=vf.Rubric(funcs=[world_reward]),
        max_turns=max_turns,
        **kwargs,
    )
