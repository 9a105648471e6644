"""openai-agents: with its default model, or, with the argument chat, the one for chat completions."""

import json
import sys

import agent
from agents import Agent, OpenAIChatCompletionsModel, OpenAIResponsesModel, Runner, function_tool, set_tracing_disabled
from openai import AsyncOpenAI


def tools(work):
    # By default the framework hides what went wrong from the model, as for
    # get_forecast here.
    @function_tool(failure_error_function=lambda _, error: f"Error: {error}")
    def read_file(path: str) -> str:
        """Read a text file."""
        return work.read_file(path)

    @function_tool
    async def run_command(command: str) -> str:
        """Run a shell command and return what it prints."""
        return await work.run_command(command)

    @function_tool
    def get_forecast(city: str, days: int) -> str:
        """The weather forecast of a city."""
        return work.get_forecast(city, days)

    return [read_file, run_command, get_forecast]


async def run(spec, work, out):
    client = AsyncOpenAI(base_url=spec["base_url"], api_key=spec["api_key"])
    kind = OpenAIChatCompletionsModel if "chat" in sys.argv else OpenAIResponsesModel
    model = kind(model=spec["model"], openai_client=client)
    who = Agent(name="assistant", instructions=agent.SYSTEM, model=model, tools=tools(work))
    history = []
    for prompt in spec["prompts"]:
        asked = history + [{"role": "user", "content": prompt}]
        if spec["stream"]:
            result = Runner.run_streamed(who, asked, max_turns=spec["max_steps"])
            async for _ in result.stream_events():
                pass
        else:
            result = await Runner.run(who, asked, max_turns=spec["max_steps"])
        out["texts"].append(result.final_output)
        history = result.to_input_list()
        out["history"] = json.dumps(history, default=str)


if __name__ == "__main__":
    set_tracing_disabled(True)
    agent.main(run)
