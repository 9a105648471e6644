"""create_agent of LangChain, which is LangGraph's ReAct agent, with ChatOpenAI."""

import json

import agent
from langchain.agents import create_agent
from langchain.tools import tool
from langchain_core.messages import messages_to_dict
from langchain_openai import ChatOpenAI


def tools(work):
    @tool
    def read_file(path: str) -> str:
        """Read a text file."""
        try:
            return work.read_file(path)
        except OSError as error:
            return f"Error: {error}"

    @tool
    async def run_command(command: str) -> str:
        """Run a shell command and return what it prints."""
        return await work.run_command(command)

    @tool
    def get_forecast(city: str, days: int) -> str:
        """The weather forecast of a city."""
        return work.get_forecast(city, days)

    return [read_file, run_command, get_forecast]


async def run(spec, work, out):
    model = ChatOpenAI(model=spec["model"], base_url=spec["base_url"], api_key=spec["api_key"], streaming=spec["stream"])
    who = create_agent(model, tools(work), system_prompt=agent.SYSTEM)
    messages = []
    for prompt in spec["prompts"]:
        messages = messages + [("user", prompt)]
        state = await who.ainvoke({"messages": messages}, {"recursion_limit": 3 * spec["max_steps"]})
        messages = state["messages"]
        out["texts"].append(messages[-1].text)
        out["history"] = json.dumps(messages_to_dict(messages), default=str)


if __name__ == "__main__":
    agent.main(run)
