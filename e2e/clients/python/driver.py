"""What the Python drivers share: JSON lines in, JSON lines out, any number at a time.

The protocol is described in ../../driver.go.
"""

import asyncio
import json
import sys
import time


class Call:
    """One request of the harness, and what is known of its answer."""

    def __init__(self, spec):
        self.spec = spec
        self.begun = time.monotonic()
        self.answer = {"id": spec["id"], "text": "", "finish_reason": "", "model": "", "first_token_ms": -1, "chunks": 0}
        self.answer["begun_ms"] = int(time.time() * 1000)

    def since(self):
        return int((time.monotonic() - self.begun) * 1000)

    def token(self):
        """Notes a chunk that carries a part of the answer."""
        self.answer["chunks"] += 1
        if self.answer["first_token_ms"] < 0:
            self.answer["first_token_ms"] = self.since()


def settings(spec):
    """The request's own parameters, as far as the harness gives them."""
    names = ("max_tokens", "max_completion_tokens", "temperature")
    return {n: spec[n] for n in names if spec.get(n) is not None}


def function_tools(spec):
    return [{"type": "function", "function": t} for t in spec.get("tools") or []]


def code(error):
    """What Anthropic's SDK has of the error: its envelope."""
    body = getattr(error, "body", None)
    inner = body.get("error") if isinstance(body, dict) else None
    return inner and (inner.get("code") or inner.get("type")) or ""


async def answer(spec, run):
    """Runs one call until it ends, is cancelled or has taken too long."""
    call = Call(spec)
    waits = [(spec.get("cancel_after_ms"), "cancelled"), (spec.get("give_up_ms"), "gave_up")]
    wait, ended = min([w for w in waits if w[0]], default=(None, ""))
    task = asyncio.ensure_future(run(call))
    done, _ = await asyncio.wait([task], timeout=wait and wait / 1000)
    out = call.answer
    if not done:
        task.cancel()
        out["ended"] = ended
        await asyncio.wait([task])
    out["elapsed_ms"] = call.since()
    error = asyncio.CancelledError("broken off") if task.cancelled() else task.exception()
    out["ok"] = error is None
    if error is not None:
        out["error"] = str(error) or repr(error)
        out["error_type"] = type(error).__name__
        out["status"] = getattr(error, "status_code", None) or 0
        out["code"] = str(getattr(error, "code", None) or code(error))
    print(json.dumps(out), flush=True)


async def serve(run):
    reader = asyncio.StreamReader(limit=64 << 20)
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    tasks = set()
    while line := await reader.readline():
        task = asyncio.ensure_future(answer(json.loads(line), run))
        tasks.add(task)
        task.add_done_callback(tasks.discard)
    if tasks:
        await asyncio.wait(tasks)


def main(run):
    asyncio.run(serve(run))
