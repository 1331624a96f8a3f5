"""Plays a world that a command serves, with the official Python client of the Model Context Protocol."""

import asyncio
import json
import sys

from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client


async def main(command: str, *args: str) -> None:
    async with stdio_client(StdioServerParameters(command=command, args=list(args))) as (reader, writer):
        async with ClientSession(reader, writer) as session:
            await session.initialize()
            names = [tool.name for tool in (await session.list_tools()).tools]
            first = await session.call_tool("start", {"task": 0})
            second = await session.call_tool("act", {"action": "inventory"})
            dump = [one.model_dump(by_alias=True) for one in (first, second)]
            print(json.dumps({"names": names, "steps": [one["structuredContent"] for one in dump]}))


asyncio.run(main(*sys.argv[1:]))
