"""OpenEnv's own server and client (openenv-core), to be checked against ours.

    openenv_oracle.py serve            serves two environments, prints their ports, ends with its standard input
    openenv_oracle.py play <base URL>  plays TextCraft's task 0 through GenericEnvClient, prints what it saw as JSON
    openenv_oracle.py tools <base URL> plays a world of tools through MCPToolClient: lists, calls, replies in words
"""
import asyncio
import json
import socket
import sys
import threading
from typing import Optional

import uvicorn
from openenv.core.env_server.http_server import create_fastapi_app
from openenv.core.env_server.interfaces import Environment
from openenv.core.env_server.mcp_types import CallToolAction
from openenv.core.env_server.types import Action, Observation, State
from openenv.core.generic_client import GenericEnvClient
from openenv.core.mcp_client import MCPToolClient


class EchoAction(Action):
    message: str


class EchoObservation(Observation):
    text: str


class Echo(Environment):
    """Repeats a message; the reward is 1 where it is the one that the seed asks for, and the episode ends."""

    SUPPORTS_CONCURRENT_SESSIONS = True

    def __init__(self):
        super().__init__()
        self._state = State()
        self.wanted = 0

    def reset(self, seed: Optional[int] = None, episode_id: Optional[str] = None, **kwargs):
        self.wanted = seed or 0
        self._state = State(episode_id=episode_id, step_count=0)
        return EchoObservation(text=f"say {self.wanted}")

    def step(self, action, timeout_s: Optional[float] = None, **kwargs):
        if action.message == "break":
            raise RuntimeError("the echo is broken")
        self._state.step_count += 1
        won = action.message == str(self.wanted)
        return EchoObservation(text=f"you said {action.message}", reward=1.0 if won else None, done=won)

    @property
    def state(self):
        return self._state


class CellAction(Action):
    row: int
    column: int
    mark: str = "x"


class CellObservation(Observation):
    cells: list[str]
    left: int


class Cells(Environment):
    """Marks cells; each costs 0.1, and the third ends the episode."""

    SUPPORTS_CONCURRENT_SESSIONS = True

    def __init__(self):
        super().__init__()
        self.cells = []

    def reset(self, seed: Optional[int] = None, episode_id: Optional[str] = None, **kwargs):
        self.cells = []
        return CellObservation(cells=[], left=3)

    def step(self, action, timeout_s: Optional[float] = None, **kwargs):
        self.cells.append(f"{action.row},{action.column},{action.mark}")
        return CellObservation(cells=self.cells, left=3 - len(self.cells), reward=-0.1, done=len(self.cells) == 3)

    @property
    def state(self):
        return State()


def serve():
    ports = []
    for env, action, observation, most in ((Echo, EchoAction, EchoObservation, 4), (Cells, CellAction, CellObservation, 1)):
        app = create_fastapi_app(env, action, observation, max_concurrent_envs=most)
        listening = socket.socket()
        listening.bind(("127.0.0.1", 0))
        ports.append(listening.getsockname()[1])
        server = uvicorn.Server(uvicorn.Config(app, log_level="error"))
        threading.Thread(target=server.run, kwargs={"sockets": [listening]}, daemon=True).start()
    print(json.dumps(ports), flush=True)
    sys.stdin.read()


async def play(url):
    seen = []
    async with GenericEnvClient(base_url=url) as env:
        def keep(result):
            seen.append({"observation": result.observation, "reward": result.reward, "done": result.done})
        keep(await env.reset(index=0, seed=7))
        keep(await env.step({"action": "get 1 acacia logs"}))
        keep(await env.step({"action": seen[-1]["observation"]["actions"][-1]}))
        seen.append(await env.state())
        try:
            await env.step({"action": "inventory"})
        except RuntimeError as error:
            seen.append(str(error))
    print(json.dumps(seen))


async def call_tools(url):
    seen = []
    async with MCPToolClient(base_url=url) as env:
        seen.append([tool.model_dump() for tool in await env.list_tools()])
        first = await env.reset(index=0)
        seen.append(first.observation.metadata["longplay"]["messages"])
        seen.append(await env.call_tool("create_task", user_id="user_1", title="Important Meeting"))
        for name, arguments in (("no_tool", {}), ("create_task", {"user_id": 7}), ("create_task", {"user_id": "nobody", "title": "x"})):
            result = await env.step(CallToolAction(tool_name=name, arguments=arguments))
            seen.append([type(result.observation).__name__, result.observation.error.model_dump(mode="json")])
        end = await env.step(TextAction(action="All done."))
        seen.append({"reward": end.reward, "done": end.done})
        try:
            await env.call_tool("get_users")
        except RuntimeError as error:
            seen.append(str(error))
    print(json.dumps(seen))


class TextAction(Action):
    action: str


if sys.argv[1] == "serve":
    serve()
elif sys.argv[1] == "tools":
    asyncio.run(call_tools(sys.argv[2]))
else:
    asyncio.run(play(sys.argv[2]))
