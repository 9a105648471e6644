"""Drives the Anthropic SDK for Python with its default settings."""

import functools
import json

import driver
from anthropic import AsyncAnthropic


@functools.cache
def client(base_url, api_key):
    return AsyncAnthropic(base_url=base_url.removesuffix("/v1"), api_key=api_key)  # the library adds /v1 itself


async def run(call):
    spec = call.spec
    params = {"model": spec["model"], "max_tokens": 1024, "messages": [m for m in spec["messages"] if m["role"] != "system"]}
    # With system=None it would send null.
    if system := "\n".join(m["content"] for m in spec["messages"] if m["role"] == "system"):
        params["system"] = system
    if spec.get("max_tokens"):
        params["max_tokens"] = spec["max_tokens"]
    if spec.get("temperature") is not None:
        params["extra_body"] = {"temperature": spec["temperature"]}  # no parameter of the library any more
    if spec.get("tools"):
        params["tools"] = [
            {"name": t["name"], "description": t["description"], "input_schema": t["parameters"]} for t in spec["tools"]
        ]
    if spec.get("timeout_ms"):
        params["timeout"] = spec["timeout_ms"] / 1000
    messages = client(spec["base_url"], spec["api_key"]).messages
    if spec["stream"]:
        await streamed(await messages.create(stream=True, **params), call)
        return
    res = await messages.create(**params)
    out = call.answer
    ended(out, res.model, res.stop_reason, res.usage.input_tokens, res.usage.output_tokens)
    out["text"] = "".join(b.text for b in res.content if b.type == "text")
    out["tool_calls"] = [called(b, json.dumps(b.input, separators=(",", ":"), ensure_ascii=False)) for b in res.content if b.type == "tool_use"]


async def streamed(stream, call):
    out, blocks, prompt = call.answer, [], 0
    out["tool_calls"] = []
    async for event in stream:
        if event.type == "message_start":
            prompt = event.message.usage.input_tokens
            ended(out, event.message.model, event.message.stop_reason, prompt, event.message.usage.output_tokens)
        elif event.type == "content_block_start":
            blocks.append([event.content_block, ""])  # as the SDK's helper does, whatever the index
        elif event.type == "content_block_delta" and event.delta.type == "text_delta":
            out["text"] += event.delta.text
            call.token()
        elif event.type == "content_block_delta" and event.delta.type == "input_json_delta":
            blocks[event.index][1] += event.delta.partial_json
            call.token()
        elif event.type == "content_block_stop" and blocks[event.index][0].type == "tool_use":
            out["tool_calls"].append(called(*blocks[event.index]))
        elif event.type == "message_delta":
            ended(out, out["model"], event.delta.stop_reason, prompt, event.usage.output_tokens)


def called(block, arguments):
    return {"id": block.id, "name": block.name, "arguments": arguments or "{}"}


def ended(out, model, stop, prompt, completion):
    out["model"], out["finish_reason"] = model, reason(stop)
    out["usage"] = {"prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": prompt + completion}


def reason(stop):
    return {"end_turn": "stop", "tool_use": "tool_calls", "max_tokens": "length"}.get(stop, stop or "")


if __name__ == "__main__":
    driver.main(run)
