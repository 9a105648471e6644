"""Drives ChatOpenAI of langchain-openai with its default settings, or, with the argument
anthropic, ChatAnthropic of langchain-anthropic.
"""

import json
import sys

import driver
from messages_driver import reason
from langchain_anthropic import ChatAnthropic
from langchain_openai import ChatOpenAI

anthropic = sys.argv[1:] == ["anthropic"]


async def run(call):
    spec = call.spec
    options = driver.settings(spec)
    if spec.get("timeout_ms"):
        options["timeout"] = spec["timeout_ms"] / 1000
    if anthropic:  # adds /v1 itself
        model = ChatAnthropic(model=spec["model"], base_url=spec["base_url"].removesuffix("/v1"), api_key=spec["api_key"], **options)
    else:
        model = ChatOpenAI(model=spec["model"], base_url=spec["base_url"], api_key=spec["api_key"], **options)
    if spec.get("tools"):
        model = model.bind_tools(driver.function_tools(spec))
    messages = [(m["role"], m["content"]) for m in spec["messages"]]
    if not spec["stream"]:
        finish(await model.ainvoke(messages), call)
        return
    usage = {"stream_usage": True} if spec.get("include_usage") and not anthropic else {}
    message = None
    async for chunk in model.astream(messages, **usage):
        if chunk.text or chunk.tool_call_chunks:
            call.token()
        message = chunk if message is None else message + chunk
        call.answer["text"] = message.text
    if message is not None:
        finish(message, call)


def finish(message, call):
    out, meta = call.answer, message.response_metadata
    out["text"] = message.text
    out["finish_reason"] = meta.get("finish_reason") or reason(meta.get("stop_reason"))
    out["model"] = meta.get("model_name") or meta.get("model") or ""
    out["tool_calls"] = [
        {"id": t["id"], "name": t["name"], "arguments": json.dumps(t["args"], separators=(",", ":"), ensure_ascii=False)}
        for t in message.tool_calls
    ]
    if u := message.usage_metadata:
        out["usage"] = {"prompt_tokens": u["input_tokens"], "completion_tokens": u["output_tokens"], "total_tokens": u["total_tokens"]}


if __name__ == "__main__":
    driver.main(run)
