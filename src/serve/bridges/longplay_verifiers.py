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
import json
import os
import urllib.error
import urllib.request


class LongplayError(RuntimeError):
    """Refusal or failure that the server told; `code` is its name, e.g. ENV_FAILED."""

    def __init__(self, code, message):
        super().__init__(f"{code}: {message}")
        self.code = code


class Server:
    """The uniform protocol of `longplay serve-env`."""

    def __init__(self, url="http://127.0.0.1:36001", timeout=60.0):
        self.url, self.timeout = url.rstrip("/"), timeout

    def call(self, method, path, body=None):
        headers = {"content-type": "application/json"}
        token = os.environ.get("LONGPLAY_SERVER_TOKEN")
        if token:
            headers["authorization"] = f"Bearer {token}"
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.url + path, data=data, method=method, headers=headers)
        try:
            with urllib.request.urlopen(request, timeout=self.timeout) as response:
                text = response.read()
        except urllib.error.HTTPError as error:
            try:
                told = json.loads(error.read())["error"]
            except (ValueError, KeyError, TypeError):
                told = {"message": f"HTTP {error.code}"}
            raise LongplayError(str(told.get("code", error.code)), told.get("message", "")) from None
        except urllib.error.URLError as error:
            cure = "is it running (npx longplay serve-env <world>), and the URL as http://127.0.0.1:36001?"
            raise LongplayError("NO_SERVER", f"{self.url} does not answer: {error.reason}; {cure}") from None
        return json.loads(text) if text else None


def message_of(observation, actions):
    """What the model reads of a turn."""
    return observation + ("\n\nAvailable actions:\n" + "\n".join(actions) if actions else "")


def action_of(answer):
    """Action in a model's answer: its text without what was thought before."""
    return answer.rsplit("</think>", 1)[-1].strip()


class Episode:
    """One episode, told in messages."""

    def __init__(self, server, env, index, seed=0):
        self.server = server
        told = server.call("POST", "/v1/sessions", {"env": env, "index": int(index), "seed": int(seed)})
        self.session, self.turn, self.reward, self.done, self.success = told["session"], 0, 0.0, False, None
        self.first = message_of(told["step"]["observation"], told["actions"])

    def answer(self, text):
        """Takes the action in a model's answer. Returns the message that the model reads next."""
        if self.done:
            raise LongplayError("EPISODE_OVER", "the episode has ended")
        self.turn += 1
        told = self.server.call("POST", f"/v1/sessions/{self.session}/step",
                                {"turn": self.turn, "action": action_of(text)})
        step = told["step"]
        self.reward += step["reward"]
        if step["kind"] == "terminated":
            self.done, self.success = True, step["success"]
        return message_of(step["observation"], told["actions"])

    def close(self):
        try:
            self.server.call("DELETE", f"/v1/sessions/{self.session}")
        except (LongplayError, OSError):
            pass  # it has expired, or the server is gone


def settle(episode, completion):
    """Reward of a finished rollout. An answer that came in the last turn is played first: nobody asked for its reply."""
    if episode is None:
        return 0.0
    answers = [message for message in completion if message["role"] == "assistant"]
    if not episode.done and len(answers) > episode.turn:
        episode.answer(answers[-1]["content"] or "")
    episode.close()
    return episode.reward


def rows_of(server, env, split, limit=None, seed=0):
    """Dataset rows of a split's tasks; each is opened once for its first observation."""
    instructions = server.call("GET", f"/v1/envs/{env}")["instructions"]
    indices = server.call("GET", f"/v1/envs/{env}/splits/{split}")["indices"][:limit]
    rows = []
    for index in indices:
        episode = Episode(server, env, index, seed)
        prompt = [{"role": "system", "content": instructions}, {"role": "user", "content": episode.first}]
        episode.close()
        rows.append({"prompt": prompt, "answer": "", "info": {"env": env, "index": index, "seed": seed}})
    return rows


def load_environment(env="textcraft", url="http://127.0.0.1:36001", max_turns=30, tasks=None, eval_tasks=None, **kwargs):
    """Verifiers environment: `tasks` and `eval_tasks` bound the numbers of training and test tasks."""
    import verifiers as vf
    from datasets import Dataset

    server = Server(url)

    class LongplayMultiTurnEnv(vf.MultiTurnEnv):
        async def setup_state(self, state, **_):
            info = state["info"]
            info = json.loads(info) if isinstance(info, str) else info
            state["episode"] = await asyncio.to_thread(Episode, server, info["env"], info["index"], info["seed"])
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
        dataset=Dataset.from_list(rows_of(server, env, "train", tasks)),
        eval_dataset=Dataset.from_list(rows_of(server, env, "test", eval_tasks)),
        rubric=vf.Rubric(funcs=[world_reward]),
        max_turns=max_turns,
        **kwargs,
    )
