"""Gymnasium environment of a longplay world, played through `longplay serve-env`.

    npx longplay serve-env textcraft              # in one terminal

    # copy this file and longplay_openenv.py beside your script
    from longplay_gymnasium import LongplayEnv
    env = LongplayEnv("textcraft")
    text, info = env.reset(seed=7)
    text, reward, terminated, truncated, info = env.step(info["actions"][0])

Observations and actions are texts. With `listed=True` an action is an index into `info["actions"]` instead, of a fixed
number, and `info["action_mask"]` marks those that exist now; any other costs a turn in which the world is asked for
something that it does not know. Needs nothing but Python 3.9; where `gymnasium` is installed the class is a
`gymnasium.Env` with spaces. An episode that breaks in the server raises `LongplayError`: it never ends as a reward.
"""
import random

from longplay_openenv import LongplayError, Session, describe, task_indices

try:
    import gymnasium
    import numpy
    Base = gymnasium.Env
except ImportError:
    gymnasium = None
    Base = object


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
        self.env, self.url, self.horizon, self.split = env, url.rstrip("/"), horizon, split
        self.listed, self.max_actions, self.render_mode, self.timeout = listed, max_actions, render_mode, timeout
        self.description = describe(self.url, env, timeout)
        self._tasks = task_indices(self.description, split)
        self._session, self._turn, self._actions, self._text = None, 0, [], ""
        self._draw = random.Random()
        facts = self.description["metadata"]["longplay"]
        self.reward_range = tuple(facts["rewardRange"])
        if gymnasium:
            self.observation_space = AnyText(facts["maxObservationChars"])
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
        self._session = Session(self.url, self.env, self.timeout)
        try:
            result = self._session.reset(index=int(index), seed=int(seed or 0) & 0xFFFFFFFF)
        except LongplayError:
            self.close()
            raise
        self._index = int(index)
        return self._keep(result), self._info()

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
            result = self._session.step(str(action))
        except LongplayError:
            self.close()  # the episode is over
            raise
        text, terminated = self._keep(result), result["done"]
        truncated = not terminated and self.horizon is not None and self._turn >= self.horizon
        info = self._info()
        if terminated:
            info["success"] = result["observation"]["success"]
        if terminated or truncated:
            self.close()
        return text, float(result["reward"]), terminated, truncated, info

    def render(self):
        """The last observation's text."""
        return self._text if self.render_mode == "ansi" else None

    def close(self):
        """Ends the session; called by itself at the end of an episode."""
        session, self._session = self._session, None
        if session is not None:
            session.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def _keep(self, result):
        observation = result["observation"]
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
