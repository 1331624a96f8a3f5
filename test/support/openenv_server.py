"""OpenEnv servers by the original's library, and its client.

openenv_server.py text <port>     actions are text
openenv_server.py board <port>    actions have two fields
openenv_server.py client <url>    plays two turns of one of our worlds, and prints what it got
"""
import asyncio
import json
import sys

import uvicorn
from openenv.core import GenericEnvClient
from openenv.core.env_server.http_server import create_fastapi_app
from openenv.core.env_server.interfaces import Environment
from openenv.core.env_server.types import Action, Observation, State


class TextAction(Action):
    message: str


class TextObservation(Observation):
    echo: str


class BoardAction(Action):
    row: int
    col: int


class BoardObservation(Observation):
    cells: list[int]
    moves: int


class Base(Environment):
    SUPPORTS_CONCURRENT_SESSIONS = True

    def __init__(self):
        super().__init__()
        self._state = State(episode_id=None, step_count=0)

    @property
    def state(self):
        return self._state


class Echo(Base):
    def reset(self, seed=None, episode_id=None, **kwargs):
        self._state = State(episode_id=episode_id, step_count=0)
        return TextObservation(echo=f"seed {seed}")

    def step(self, action, timeout_s=None, **kwargs):
        if action.message == "break":
            raise ValueError("broken on purpose")
        self._state.step_count += 1
        done = self._state.step_count == 3
        return TextObservation(echo=action.message.upper(), reward=1.0 if done else None, done=done)


class Board(Base):
    def reset(self, seed=None, episode_id=None, **kwargs):
        self._state = State(episode_id=episode_id, step_count=0)
        self.cells = [0] * 9
        return BoardObservation(cells=self.cells, moves=0)

    def step(self, action, timeout_s=None, **kwargs):
        self._state.step_count += 1
        self.cells[3 * action.row + action.col] = 1
        return BoardObservation(cells=self.cells, moves=self._state.step_count, reward=True, done=sum(self.cells) == 2)


async def play(url):
    async with GenericEnvClient(base_url=url) as env:
        results = [await env.reset(index=0, seed=7, episode_id="mine")]
        results.append(await env.step({"action": "get 1 acacia logs"}))
        results.append(await env.step({"action": results[-1].observation["actions"][-1]}))
        state = await env.state()
    print(json.dumps({"results": [[r.observation, r.reward, r.done] for r in results], "state": state}))


kind, where = sys.argv[1:3]
if kind == "client":
    asyncio.run(play(where))
else:
    made = (Echo, TextAction, TextObservation) if kind == "text" else (Board, BoardAction, BoardObservation)
    app = create_fastapi_app(*made, max_concurrent_envs=4)
    uvicorn.run(app, host="127.0.0.1", port=int(where), log_level="warning")
