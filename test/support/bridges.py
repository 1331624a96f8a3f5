"""Checks of the Python bridges against a server, by Python alone. Usage: bridges.py <folder of the bridges> <url>"""
import json
import sys
import types

folder, url = sys.argv[1:3]
sys.path.insert(0, folder)
import longplay_gymnasium as lg  # noqa: E402
import longplay_openenv as lo  # noqa: E402
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
    seen = [(text, info["actions"])]
    text, reward, terminated, truncated, info = env.step("get 1 acacia logs")
    seen.append((text, reward, terminated, truncated))
    text, reward, terminated, truncated, info = env.step(info["actions"][-1])
    seen.append((text, reward, terminated, truncated, info["success"]))
    return seen


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
check("an unknown task is refused", raises(lg.LongplayError, lambda: env.reset(options={"index": 10**6})).code == "VALIDATION_ERROR")
env.close()
env.close()
short = lg.LongplayEnv("textcraft", url, horizon=2, render_mode="ansi")
short.reset(options={"index": 0})
check("before the horizon nothing ends", short.step("inventory")[2:4] == (False, False))
check("at the horizon it is truncated", short.step("inventory")[2:4] == (False, True))
check("ansi renders the observation", short.render() and isinstance(short.render(), str))
listed = lg.LongplayEnv("textcraft", url, listed=True, max_actions=40)
_, info = listed.reset(options={"index": 0})
check("a mask marks the actions that are there", sum(info["action_mask"]) == len(info["actions"]) and len(info["action_mask"]) == 40)
check("an index is an action", listed.step(0)[1] == 0.0)
text, reward, *ended, info = listed.step(39)
check("an index that the mask leaves out costs a turn", (reward, ended, info["turn"]) == (0.0, [False, False], 2) and len(info["actions"]) < 40)
check("an index outside is refused", raises(ValueError, lambda: listed.step(40)))
listed.close()
with lg.LongplayEnv("textcraft", url) as held:
    held.reset(seed=1)
check("leaving a with block gives the session back", held._session is None)
for wrong in ("http://127.0.0.1:9", "127.0.0.1:9"):
    errors = [raises(lg.LongplayError, lambda: lg.LongplayEnv("textcraft", wrong)),
              raises(lg.LongplayError, lambda: lo.Session(wrong, "textcraft")),
              raises(lv.LongplayError, lambda: lv.rows_of(wrong, "textcraft", "test", limit=1))]
    check(f"{wrong}: the error names the cure", all("longplay serve-env" in str(error) for error in errors))
check("an unknown world is refused", raises(lg.LongplayError, lambda: lg.LongplayEnv("nope", url)).code == "UNKNOWN_ENV")
if lg.gymnasium:
    from gymnasium.utils.env_checker import check_env
    with lg.LongplayEnv("textcraft", url, listed=True) as checked:  # the checker leaves its last episode open
        check_env(checked, skip_render_check=True)
    print("env_checker of gymnasium passed")

# Verifiers: rows and episodes, then the environment under a rollout loop like the library's own.
rows = lv.rows_of(url, "textcraft", "test", limit=2)
check("rows hold prompts and tasks", [r["prompt"][0]["role"] for r in rows] == ["system"] * 2 and rows[0]["info"]["index"] != rows[1]["info"]["index"])
check("the first message lists actions", "Available actions:\n" in rows[0]["prompt"][1]["content"])
episode = lv.Episode(url, "textcraft", 0, 7)
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
            row = {**made.dataset[0], "info": json.dumps({"env": "textcraft", "index": 0, "seed": 7})}
            check(f"a rollout of {turns} turns is scored", asyncio.run(made.rollout(row, solve)) == expected)
        del sys.modules["verifiers"], sys.modules["datasets"]


# OpenEnv's messages over the WebSocket client of the bridges.
def code_of(call):
    error = raises(lo.LongplayError, call)
    return error and error.code


session = lo.Session(url, "textcraft")
check("a step before a reset is an error", code_of(lambda: session.step("x")) == "EXECUTION_ERROR")
opened = session.reset(index=0, seed=7, episode_id="mine")
check("a reset shows the first observation", opened["reward"] is None and opened["done"] is False)
got = session.step("get 1 acacia logs")
check("a step shows text, reward, done", (got["observation"]["text"], got["reward"], got["done"]) == ("Got 1 acacia logs", 0, False))
end = session.step(got["observation"]["actions"][-1])
check("the end shows its success", end["done"] and end["reward"] == 1 and end["observation"]["success"] is True)
state = session.state()
check("the state names episode and task", (state["episode_id"], state["step_count"], state["index"]) == ("mine", 2, 0))
check("a step after the end is an error", code_of(lambda: session.step("x")) == "EXECUTION_ERROR")
check("the session goes on with a reset", session.reset(seed=5)["done"] is False)
tasks = [(session.reset(seed=5), session.state()["index"])[1] for _ in range(2)]
check("a seed draws the same task over the socket", tasks[0] == tasks[1])
for wrong, code in ((lambda: session._ask({"type": "jump"}), "UNKNOWN_TYPE"), (lambda: session.reset(seed=-1), "VALIDATION_ERROR"),
                    (lambda: session.reset(index=10**6), "VALIDATION_ERROR"), (lambda: session.step(1), "VALIDATION_ERROR"),
                    (lambda: session._ask([1]), "VALIDATION_ERROR")):
    check(f"a wrong message is {code}", code_of(wrong) == code)
check("a long action is one frame of another kind", all(session.step("x" * size)["done"] is False for size in (200, 70_000)))
session.close()
session.close()
check("a closed session is refused", code_of(lambda: session.step("x")) == "CONNECTION_LOST")
check("an unknown world has no session", code_of(lambda: lo.Session(url, "nope")) == "UNKNOWN_ENV")
described = lo.describe(url, "textcraft")
check("a world is described", described["name"] == "textcraft" and len(lo.task_indices(described, "test")) == 100)

bad = [name for name, good in checks if not good]
for name in bad:
    print(f"FAILED: {name}")
print(f"{len(checks) - len(bad)} of {len(checks)} checks")
sys.exit(1 if bad else 0)
