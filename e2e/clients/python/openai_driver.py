"""Drives openai for Python with its default settings."""

import functools

import driver
from openai import AsyncOpenAI


@functools.cache
def client(base_url, api_key):
    return AsyncOpenAI(base_url=base_url, api_key=api_key)


def usage(u):
    return u and {"prompt_tokens": u.prompt_tokens, "completion_tokens": u.completion_tokens, "total_tokens": u.total_tokens}


async def run(call):
    spec, out = call.spec, call.answer
    params = {"model": spec["model"], "messages": spec["messages"], **driver.settings(spec)}
    if spec.get("tools"):
        params["tools"] = driver.function_tools(spec)
    if spec.get("timeout_ms"):
        params["timeout"] = spec["timeout_ms"] / 1000
    completions = client(spec["base_url"], spec["api_key"]).chat.completions
    if spec["stream"]:
        if spec.get("include_usage"):
            params["stream_options"] = {"include_usage": True}
        await streamed(await completions.create(stream=True, **params), call)
        return
    res = await completions.create(**params)
    out["model"], out["usage"] = res.model, usage(res.usage)
    choice = res.choices[0]
    out["text"], out["finish_reason"] = choice.message.content or "", choice.finish_reason or ""
    out["tool_calls"] = [
        {"id": t.id, "name": t.function.name, "arguments": t.function.arguments} for t in choice.message.tool_calls or []
    ]


async def streamed(stream, call):
    out = call.answer
    tools = out["tool_calls"] = []
    async for chunk in stream:
        out["model"] = chunk.model
        out["usage"] = usage(chunk.usage) or out.get("usage")
        for choice in chunk.choices:
            delta = choice.delta
            if delta.content or delta.tool_calls:
                call.token()
            out["text"] += delta.content or ""
            out["finish_reason"] = choice.finish_reason or out["finish_reason"]
            for t in delta.tool_calls or []:
                while t.index >= len(tools):
                    tools.append({"id": "", "name": "", "arguments": ""})
                to = tools[t.index]
                to["id"] += t.id or ""
                to["name"] += t.function.name or ""
                to["arguments"] += t.function.arguments or ""


if __name__ == "__main__":
    driver.main(run)
