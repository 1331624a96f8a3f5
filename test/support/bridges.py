"""Checks of the Python bridges against a server, by Python alone. Usage: bridges.py <folder of the bridges> <url>"""
import base64
import json
import os
import socket
import struct
import sys
import types
import urllib.request

folder, url = sys.argv[1:3]
sys.path.insert(0, folder)
import longplay_gymnasium as lg  # noqa: E402
import longplay_verifiers as lv  # noqa: E402

checks = []


def check(name, good):
    checks.append((name, bool(good)))


def raises(kind, call):
    try:
        call()
    except kind as error:
        return error
    return None


def play(env, index):
    """Solves TextCraft's task by its listed actions alone is not needed here: task 0 takes two turns."""
    text, info = env.reset(seed=7, options={"index": index})
    told = [(text, info["actions"])]
    text, reward, terminated, truncated, info = env.step("get 1 acacia logs")
    told.append((text, reward, terminated, truncated))
    text, reward, terminated, truncated, info = env.step(info["actions"][-1])
    told.append((text, reward, terminated, truncated, info["success"]))
    return told


# Gymnasium's contract, as its env_checker asks it.
env = lg.LongplayEnv("textcraft", url)
first = play(env, 0)
check("an episode ends with its reward", first[2][1:] == (1.0, True, False, True))
check("the same seed and actions give the same episode", play(env, 0) == first)
check("a step after the end is refused", raises(lg.LongplayError, lambda: env.step("inventory")).code == "EPISODE_OVER")
drawn = [(env.reset(seed=3), env._index)[1] for _ in range(2)]
check("a seed draws the same task", drawn[0] == drawn[1])
check("draws go on without a seed", len({(env.reset(), env._index)[1] for _ in range(8)}) > 2)
check("an unknown option is refused", raises(ValueError, lambda: env.reset(options={"task": 1})))
check("an unknown task is told", raises(lg.LongplayError, lambda: env.reset(options={"index": 10**6})).code == "VALIDATION_ERROR")
env.close()
env.close()
short = lg.LongplayEnv("textcraft", url, horizon=2, render_mode="ansi")
short.reset(options={"index": 0})
check("before the horizon nothing ends", short.step("inventory")[2:4] == (False, False))
check("at the horizon it is truncated", short.step("inventory")[2:4] == (False, True))
check("ansi renders the observation", short.render() and isinstance(short.render(), str))
listed = lg.LongplayEnv("textcraft", url, listed=True, max_actions=40)
_, info = listed.reset(options={"index": 0})
check("a mask tells the actions that are there", sum(info["action_mask"]) == len(info["actions"]) and len(info["action_mask"]) == 40)
check("an index is an action", listed.step(0)[1] == 0.0)
text, reward, *ended, info = listed.step(39)
check("an index that the mask leaves out costs a turn", (reward, ended, info["turn"]) == (0.0, [False, False], 2) and len(info["actions"]) < 40)
check("an index outside is refused", raises(ValueError, lambda: listed.step(40)))
listed.close()
with lg.LongplayEnv("textcraft", url) as held:
    held.reset(seed=1)
check("leaving a with block gives the session back", held._session is None)
for wrong in ("http://127.0.0.1:9", "127.0.0.1:9"):
    told = [raises(lg.LongplayError, lambda: lg.LongplayEnv("textcraft", wrong)),
            raises(lv.LongplayError, lambda: lv.rows_of(lv.Server("textcraft", wrong), "test", limit=1))]
    check(f"{wrong}: no server is told, with the cure", all("longplay serve-env" in str(error) for error in told))
check("an unknown world is told", raises(lg.LongplayError, lambda: lg.LongplayEnv("nope", url)).code == "UNKNOWN_ENV")
if lg.gymnasium:
    from gymnasium.utils.env_checker import check_env
    with lg.LongplayEnv("textcraft", url, listed=True) as checked:  # the checker leaves its last episode open
        check_env(checked, skip_render_check=True)
    print("env_checker of gymnasium passed")

# Verifiers: rows and episodes, then the environment under a rollout loop like the library's own.
server = lv.Server("textcraft", url)
rows = lv.rows_of(server, "test", limit=2)
check("rows hold prompts and tasks", [r["prompt"][0]["role"] for r in rows] == ["system"] * 2 and rows[0]["info"]["index"] != rows[1]["info"]["index"])
check("the first message lists actions", "Available actions:\n" in rows[0]["prompt"][1]["content"])
episode = lv.Episode(server, 0, 7)
reply = episode.answer("<think>which?</think>\nget 1 acacia logs")
check("thought is left out", reply.startswith("Got 1 acacia logs"))
last = reply.rsplit("\n", 1)[-1]
completion = [{"role": "assistant", "content": "get 1 acacia logs"}, {"role": "user", "content": reply}, {"role": "assistant", "content": last}]
check("the last answer is played before it is scored", lv.settle(episode, completion) == 1.0 and episode.success)


def stub(returns_messages):
    """Stand-in of the two libraries: the rollout loop of either version, as their documentation describes it."""
    import asyncio

    class MultiTurnEnv:
        def __init__(self, dataset=None, eval_dataset=None, rubric=None, max_turns=-1):
            self.dataset, self.eval_dataset, self.rubric, self.max_turns = dataset, eval_dataset, rubric, max_turns

        async def is_completed(self, *args):
            return args[-1]["turn"] >= self.max_turns

        async def rollout(self, row, model):
            state = {"prompt": row["prompt"], "completion": [], "info": row["info"], "turn": 0}
            state = await self.setup_state(state)
            while not await (self.is_completed(state) if returns_messages else self.is_completed([], state)):
                state["completion"].append({"role": "assistant", "content": model(row["prompt"] + state["completion"])})
                state["turn"] += 1
                if await (self.is_completed(state) if returns_messages else self.is_completed([], state)):
                    break
                out = await self.env_response(row["prompt"] + state["completion"], state)
                state["completion"] += out if returns_messages else out[0]
            return sum([await f(completion=state["completion"], state=state, prompt=row["prompt"]) for f in self.rubric])

    vf = types.ModuleType("verifiers")
    vf.MultiTurnEnv = MultiTurnEnv
    vf.Rubric = lambda funcs: funcs
    if returns_messages:
        vf.stop = lambda f: f
    datasets = types.ModuleType("datasets")
    datasets.Dataset = type("Dataset", (), {"from_list": staticmethod(list)})
    sys.modules["verifiers"], sys.modules["datasets"] = vf, datasets
    return asyncio


def solve(messages):
    """Plays what the listed actions of TextCraft's task 0 lead to: take, then make."""
    actions = messages[-1]["content"].split("Available actions:\n")[-1].split("\n")
    return "get 1 acacia logs" if len(messages) == 2 else actions[-1]


for returns_messages in (False, True):
    try:
        import verifiers  # noqa: F401
        if not isinstance(getattr(verifiers, "__file__", None), str) and returns_messages is False:
            raise ImportError
        print("verifiers is installed: its own rollout is not driven here")
        break
    except ImportError:
        asyncio = stub(returns_messages)
        for turns, expected in ((10, 1.0), (2, 1.0), (1, 0.0)):
            made = lv.load_environment("textcraft", url, max_turns=turns, tasks=1, eval_tasks=1)
            row = {**made.dataset[0], "info": json.dumps({"index": 0, "seed": 7})}
            check(f"a rollout of {turns} turns is scored", asyncio.run(made.rollout(row, solve)) == expected)
        del sys.modules["verifiers"], sys.modules["datasets"]


# OpenEnv: a WebSocket by hand (RFC 6455), messages as its GenericEnvClient sends them.
class WebSocket:
    def __init__(self, path, headers=""):
        host, port = url.split("//")[1].split(":")
        self.socket = socket.create_connection((host, int(port)), timeout=30)
        key = base64.b64encode(os.urandom(16)).decode()
        self.socket.sendall((f"GET {path} HTTP/1.1\r\nHost: {host}:{port}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
                             f"Sec-WebSocket-Key: {key}\r\nSec-WebSocket-Version: 13\r\n{headers}\r\n").encode())
        head = b""
        while b"\r\n\r\n" not in head:
            piece = self.socket.recv(1)
            if not piece:
                break
            head += piece
        self.status = int(head.split()[1])

    def send(self, value):
        data = (value if isinstance(value, str) else json.dumps(value)).encode()
        mask = os.urandom(4)
        size = bytes([0x80 | len(data)]) if len(data) < 126 else b"\xfe" + struct.pack(">H", len(data))
        self.socket.sendall(b"\x81" + size + mask + bytes(b ^ mask[i % 4] for i, b in enumerate(data)))

    def receive(self):
        kind, size = self._read(2)
        size &= 0x7F
        if size == 126:
            size = struct.unpack(">H", self._read(2))[0]
        elif size == 127:
            size = struct.unpack(">Q", self._read(8))[0]
        data = self._read(size)
        return json.loads(data) if kind & 0xF == 1 else ("close", data)

    def ask(self, value):
        self.send(value)
        return self.receive()

    def _read(self, n):
        data = b""
        while len(data) < n:
            piece = self.socket.recv(n - len(data))
            if not piece:
                raise EOFError
            data += piece
        return data


ws = WebSocket("/openenv/textcraft/ws")
check("the connection is upgraded", ws.status == 101)
check("a step before a reset is an error", ws.ask({"type": "step", "data": {"action": "x"}})["data"]["code"] == "EXECUTION_ERROR")
opened = ws.ask({"type": "reset", "data": {"index": 0, "seed": 7, "episode_id": "mine"}})
check("a reset tells the first observation", opened["type"] == "observation" and opened["data"]["reward"] is None and opened["data"]["done"] is False)
got = ws.ask({"type": "step", "data": {"action": "get 1 acacia logs"}})["data"]
check("a step tells text, reward, done", (got["observation"]["text"], got["reward"], got["done"]) == ("Got 1 acacia logs", 0, False))
end = ws.ask({"type": "step", "data": {"action": got["observation"]["actions"][-1]}})["data"]
check("the end tells its success", end["done"] and end["reward"] == 1 and end["observation"]["success"] is True)
told = ws.ask({"type": "state"})["data"]
check("the state names episode and task", (told["episode_id"], told["step_count"], told["index"]) == ("mine", 2, 0))
check("a step after the end is an error", ws.ask({"type": "step", "data": {"action": "x"}})["data"]["code"] == "EXECUTION_ERROR")
check("the session goes on with a reset", ws.ask({"type": "reset", "data": {"seed": 5}})["type"] == "observation")
tasks = [(ws.ask({"type": "reset", "data": {"seed": 5}}), ws.ask({"type": "state"})["data"]["index"])[1] for _ in range(2)]
check("a seed draws the same task over the socket", tasks[0] == tasks[1])
for wrong, code in (("{", "INVALID_JSON"), ({"type": "jump"}, "UNKNOWN_TYPE"), ({"type": "reset", "data": {"seed": -1}}, "VALIDATION_ERROR"),
                    ({"type": "reset", "data": {"index": 10**6}}, "VALIDATION_ERROR"), ({"type": "step", "data": {"action": 1}}, "VALIDATION_ERROR"),
                    ([1], "VALIDATION_ERROR")):
    check(f"{json.dumps(wrong)} is {code}", ws.ask(wrong)["data"]["code"] == code)
check("close closes", ws.ask({"type": "close"})[0] == "close")
check("another page's origin is refused", WebSocket("/openenv/textcraft/ws", "Origin: http://evil.example\r\n").status == 403)
check("an unknown world has no socket", WebSocket("/openenv/nope/ws").status == 404)
check("health, metadata and schema are told", [bool(urllib.request.urlopen(f"{url}/openenv/textcraft/{p}").read()) for p in ("health", "metadata", "schema")] == [True] * 3)

bad = [name for name, good in checks if not good]
for name in bad:
    print(f"FAILED: {name}")
print(f"{len(checks) - len(bad)} of {len(checks)} checks")
sys.exit(1 if bad else 0)
