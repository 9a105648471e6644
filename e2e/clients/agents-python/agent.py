"""What the Python agents share: tasks in, outcomes out, as lines of JSON, any number at a time.

The protocol is described in ../../agents/task.go. The tools are real: they read
and run what is in the task's own folder.
"""

import asyncio
import json
import os
import sys
import time

SYSTEM = "You are a careful assistant. Work in the current folder with the tools you have."


class Workspace:
    """The tools of one task, and what was executed."""

    def __init__(self, spec):
        self.dir, self.path = spec["dir"], spec["path"]
        self.executed = []

    def ran(self, name, **arguments):
        self.executed.append({"name": name, "arguments": json.dumps(arguments, separators=(",", ":"), ensure_ascii=False)})

    def read_file(self, path):
        self.ran("read_file", path=path)
        with open(os.path.join(self.dir, path), encoding="utf-8") as f:
            return f.read()

    async def run_command(self, command):
        self.ran("run_command", command=command)
        process = await asyncio.create_subprocess_exec(
            "/bin/sh", "-c", command, cwd=self.dir, env={"PATH": self.path, "LC_ALL": "C.UTF-8"},
            stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT,
        )
        out, _ = await asyncio.wait_for(process.communicate(), 20)
        text = out.decode("utf-8", "replace")
        return text if process.returncode == 0 else f"{text}\nexit code: {process.returncode}"

    def get_forecast(self, city, days):
        self.ran("get_forecast", city=city, days=days)
        if city != "Oslo":
            raise ValueError(f"there is no station in {city}")
        return f"Forecast for {city}: rain on {days!r} days. Reference RAIN-{city}-{days!r}"


def described():
    """The tools' definitions, for loops that write them by hand."""

    def tool(name, description, **properties):
        parameters = {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}
        return {"type": "function", "function": {"name": name, "description": description, "parameters": parameters}}

    text = {"type": "string"}
    return [
        tool("read_file", "Read a text file.", path=text),
        tool("run_command", "Run a shell command and return what it prints.", command=text),
        tool("get_forecast", "The weather forecast of a city.", city=text, days={"type": "integer"}),
    ]


async def execute(work, function):
    """Runs a call as a plain loop does: a file that is not there is an answer, what is no call ends the run."""
    arguments = json.loads(function["arguments"])
    try:
        if function["name"] == "run_command":
            return await work.run_command(**arguments)
        return {"read_file": work.read_file, "get_forecast": work.get_forecast}[function["name"]](**arguments)
    except OSError as error:
        return f"Error: {error}"


async def answer(spec, run):
    """Runs one task to its end, or until it has taken too long."""
    begun = time.monotonic()
    work = Workspace(spec)
    out = {"id": spec["id"], "texts": [], "history": ""}
    try:
        await asyncio.wait_for(run(spec, work, out), spec["give_up_ms"] / 1000)
    except asyncio.TimeoutError:
        out["error"], out["error_type"] = "it took too long", "GaveUp"
    except Exception as error:  # whatever ends an agent's run
        out["error"] = str(error) or repr(error)
        out["error_type"] = type(error).__name__
    out["ok"] = "error" not in out
    out["executed"] = work.executed
    out["elapsed_ms"] = int((time.monotonic() - begun) * 1000)
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
