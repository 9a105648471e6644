"""Drives responses of openai for Python with its default settings."""

import functools

import driver
from openai import AsyncOpenAI


@functools.cache
def client(base_url, api_key):
    return AsyncOpenAI(base_url=base_url, api_key=api_key)


class Failed(Exception):
    """A response that says that it failed; the library does not raise for it."""

    def __init__(self, error):
        super().__init__(error.message if error else "the response failed")
        self.code = error and error.code


async def run(call):
    spec = call.spec
    params = {"model": spec["model"], "input": spec["messages"]}
    params.update({n: spec[n] for n in ("temperature", "store", "include") if spec.get(n) is not None})
    if spec.get("max_tokens"):
        params["max_output_tokens"] = spec["max_tokens"]
    if spec.get("tools"):
        params["tools"] = [{"type": "function", "strict": False, **t} for t in spec["tools"]]
    if spec.get("timeout_ms"):
        params["timeout"] = spec["timeout_ms"] / 1000
    responses = client(spec["base_url"], spec["api_key"]).responses
    if spec["stream"]:
        await streamed(await responses.create(stream=True, **params), call)
    else:
        res = await responses.create(**params)
        call.answer["text"] = res.output_text
        ended(call.answer, res)


async def streamed(stream, call):
    out = call.answer
    async for event in stream:
        if event.type == "response.output_text.delta":
            out["text"] += event.delta
            call.token()
        elif event.type == "response.function_call_arguments.delta":
            call.token()
        elif event.type in ("response.completed", "response.incomplete", "response.failed"):
            ended(out, event.response)


def ended(out, res):
    out["model"] = res.model
    calls = [item for item in res.output if item.type == "function_call"]
    out["tool_calls"] = [{"id": c.call_id, "name": c.name, "arguments": c.arguments} for c in calls]
    out["finish_reason"] = {"completed": "tool_calls" if calls else "stop", "incomplete": "length"}.get(res.status, "")
    if u := res.usage:
        out["usage"] = {"prompt_tokens": u.input_tokens, "completion_tokens": u.output_tokens, "total_tokens": u.total_tokens}
    if res.status == "failed":
        raise Failed(res.error)


if __name__ == "__main__":
    driver.main(run)
