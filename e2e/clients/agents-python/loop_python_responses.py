"""A plain agent loop over responses of openai for Python, as people write it."""

import json

import agent
from openai import AsyncOpenAI


class Failed(Exception):
    """A response that did not come to its end."""


async def run(spec, work, out):
    client = AsyncOpenAI(base_url=spec["base_url"], api_key=spec["api_key"])
    tools = [{"type": "function", "strict": False, **t["function"]} for t in agent.described()]
    items = []
    for prompt in spec["prompts"]:
        items.append({"role": "user", "content": prompt})
        for _ in range(spec["max_steps"]):
            output = await ask(client, spec, items, tools)
            items += output
            out["history"] = json.dumps(items)
            calls = [item for item in output if item["type"] == "function_call"]
            if not calls:
                parts = [p for item in output if item["type"] == "message" for p in item["content"]]
                out["texts"].append("".join(p.get("text", "") for p in parts))
                break
            for call in calls:
                items.append({"type": "function_call_output", "call_id": call["call_id"], "output": await agent.execute(work, call)})
        else:
            raise RuntimeError("too many steps")
    out["history"] = json.dumps(items)


async def ask(client, spec, items, tools):
    params = {
        "model": spec["model"], "instructions": agent.SYSTEM, "input": items, "tools": tools,
        "store": False, "include": ["reasoning.encrypted_content"],
    }
    if not spec["stream"]:
        res = await client.responses.create(**params)
    else:
        res = None
        async for event in await client.responses.create(stream=True, **params):
            if event.type in ("response.completed", "response.incomplete", "response.failed"):
                res = event.response
            elif event.type == "error":
                raise Failed(event.message)
        if res is None:
            raise Failed("the stream ended without its last event")
    if res.status == "failed":
        raise Failed(res.error and res.error.message)
    return [item.model_dump(exclude_none=True) for item in res.output]


if __name__ == "__main__":
    agent.main(run)
