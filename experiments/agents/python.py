"""Agent in Python on OpenAI's client, with a small library of facts behind three tools. A line of JSON is a task."""
import json
import random
import sys

from openai import OpenAI

MATERIALS = ["copper", "glass", "wood", "silver", "gold", "iron", "paper", "stone"]
THINGS = ["lamp", "book", "box", "knife", "bottle", "cup", "ball", "bowl", "mirror", "table", "hammer", "stove"]
FACTS = {"color": ["red", "blue", "green", "black", "white"], "place": ["kitchen", "hall", "garden", "office", "shop"]}

TOOLS = [
    {"type": "function", "function": {"name": name, "description": text, "parameters": {
        "type": "object", "properties": {argument: {"type": "string"}}, "required": [argument]}}}
    for name, text, argument in [
        ("search", "Finds pages by words of their title.", "query"),
        ("read", "Reads the page with this title.", "title"),
        ("answer", "Gives the answer, one word. The task ends.", "text"),
    ]
]


def play(index: int, model: dict) -> float:
    has_read = False
    rng = random.Random(index)
    titles = rng.sample([f"{m} {t}" for m in MATERIALS for t in THINGS], 24)
    pages = {title: {fact: rng.choice(values) for fact, values in FACTS.items()} for title in titles}
    fact = rng.choice(list(FACTS))
    client = OpenAI(base_url=model["baseURL"], api_key=model["apiKey"])
    messages = [{"role": "user", "content": f'What is the {fact} of the "{titles[0]}"?'}]
    for _ in range(12):
        reply = client.chat.completions.create(model=model["name"], messages=messages, tools=TOOLS)
        message = reply.choices[0].message
        messages.append(message.model_dump(exclude_none=True))
        if not message.tool_calls:
            return 0.3 * has_read
        for call in message.tool_calls:
            value = next(iter(json.loads(call.function.arguments).values()), "")
            if call.function.name == "answer":
                return 1.0 if value == pages[titles[0]][fact] else 0.3 * has_read
            has_read = has_read or (call.function.name == "read" and value == titles[0])
            found = [title for title in titles if set(title.split()) & set(value.split())][:6]
            result = found if call.function.name == "search" else pages.get(value, {"error": "there is no such page"})
            messages.append({"role": "tool", "tool_call_id": call.id, "content": json.dumps(result)})
    return 0.3 * has_read


for line in sys.stdin:
    run = json.loads(line)
    try:
        reward = play(run["index"], run["model"])
        print(json.dumps({"reward": reward, "success": reward == 1.0}), flush=True)
    except Exception as error:
        print(json.dumps({"error": str(error)}), flush=True)
