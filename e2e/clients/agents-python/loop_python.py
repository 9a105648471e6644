"""A plain agent loop over openai for Python, as people write it."""

import json

import agent
from openai import AsyncOpenAI


async def run(spec, work, out):
    client = AsyncOpenAI(base_url=spec["base_url"], api_key=spec["api_key"])
    tools = agent.described()
    messages = [{"role": "system", "content": agent.SYSTEM}]
    for prompt in spec["prompts"]:
        messages.append({"role": "user", "content": prompt})
        for _ in range(spec["max_steps"]):
            message = await ask(client, spec, messages, tools)
            messages.append(message)
            out["history"] = json.dumps(messages)
            if not message.get("tool_calls"):
                out["texts"].append(message["content"] or "")
                break
            for call in message["tool_calls"]:
                messages.append({"role": "tool", "tool_call_id": call["id"], "content": await agent.execute(work, call["function"])})
        else:
            raise RuntimeError("too many steps")
    out["history"] = json.dumps(messages)


async def ask(client, spec, messages, tools):
    params = {"model": spec["model"], "messages": messages, "tools": tools}
    if not spec["stream"]:
        res = await client.chat.completions.create(**params)
        return res.choices[0].message.model_dump(exclude_none=True)
    content, calls = "", []
    stream = await client.chat.completions.create(stream=True, stream_options={"include_usage": True}, **params)
    async for chunk in stream:
        for choice in chunk.choices:
            content += choice.delta.content or ""
            for t in choice.delta.tool_calls or []:
                while t.index >= len(calls):
                    calls.append({"id": "", "type": "function", "function": {"name": "", "arguments": ""}})
                call = calls[t.index]
                call["id"] += t.id or ""
                call["function"]["name"] += t.function.name or ""
                call["function"]["arguments"] += t.function.arguments or ""
    message = {"role": "assistant", "content": content or None}
    if calls:
        message["tool_calls"] = calls
    return message


if __name__ == "__main__":
    agent.main(run)
