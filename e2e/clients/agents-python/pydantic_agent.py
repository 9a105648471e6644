"""pydantic-ai with its OpenAI chat model."""

import agent
from pydantic_ai import Agent, UsageLimits
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider


def agent_for(spec, work):
    provider = OpenAIProvider(base_url=spec["base_url"], api_key=spec["api_key"])
    who = Agent(OpenAIChatModel(spec["model"], provider=provider), instructions=agent.SYSTEM)

    @who.tool_plain
    def read_file(path: str) -> str:
        """Read a text file."""
        try:
            return work.read_file(path)
        except OSError as error:
            return f"Error: {error}"

    @who.tool_plain
    async def run_command(command: str) -> str:
        """Run a shell command and return what it prints."""
        return await work.run_command(command)

    @who.tool_plain
    def get_forecast(city: str, days: int) -> str:
        """The weather forecast of a city."""
        return work.get_forecast(city, days)

    return who


async def drain(_, events):
    """A handler of events is what makes the run stream."""
    async for _ in events:
        pass


async def run(spec, work, out):
    who = agent_for(spec, work)
    history = None
    for prompt in spec["prompts"]:
        result = await who.run(
            prompt, message_history=history, usage_limits=UsageLimits(request_limit=spec["max_steps"]),
            event_stream_handler=drain if spec["stream"] else None,
        )
        out["texts"].append(result.output)
        history = result.all_messages()
        out["history"] = result.all_messages_json().decode()


if __name__ == "__main__":
    agent.main(run)
