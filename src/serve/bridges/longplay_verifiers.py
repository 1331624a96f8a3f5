"""Verifiers environment of a longplay world, played through `longplay serve-env`.

    npx longplay serve-env textcraft              # in one terminal

    # copy this file and longplay_openenv.py beside your script
    from longplay_verifiers import load_environment
    env = load_environment("textcraft", max_turns=30)

A dataset row is a task: system instructions and the first observation as its prompt, `info` with its index and seed.
Every answer of the model is taken as the action (what a reasoning model thinks before `</think>` is left out); the
world's answer follows as a user message, with the actions that are possible. The reward is the sum of the world's
rewards. For `verifiers.MultiTurnEnv` (0.1.x): `setup_state`, `env_response`, `is_completed`. `Episode` and `settle`, which do
the work, need nothing but Python 3.9.
"""
import asyncio
import json

from longplay_openenv import LongplayError, Session, describe, task_indices


def message_of(observation, actions):
    """What the model reads of a turn."""
    return observation + ("\n\nAvailable actions:\n" + "\n".join(actions) if actions else "")


def action_of(answer):
    """Action in a model's answer: its text without what was thought before."""
    return answer.rsplit("</think>", 1)[-1].strip()


class Episode:
    """One episode in messages."""

    def __init__(self, url, env, index, seed=0):
        self.session, self.turn, self.reward, self.done, self.success = Session(url, env), 0, 0.0, False, None
        try:
            result = self.session.reset(index=int(index), seed=int(seed))
        except LongplayError:
            self.close()
            raise
        self.first = message_of(result["observation"]["text"], result["observation"]["actions"])

    def answer(self, text):
        """Takes the action in a model's answer. Returns the message that the model reads next."""
        if self.done:
            raise LongplayError("EPISODE_OVER", "the episode has ended")
        self.turn += 1
        result = self.session.step(action_of(text))
        observation = result["observation"]
        self.reward += result["reward"]
        self.done, self.success = result["done"], observation["success"]
        return message_of(observation["text"], observation["actions"])

    def close(self):
        self.session.close()


def settle(episode, completion):
    """Reward of a finished rollout. An answer that came in the last turn is played first: nobody asked for its reply."""
    if episode is None:
        return 0.0
    answers = [message for message in completion if message["role"] == "assistant"]
    if not episode.done and len(answers) > episode.turn:
        episode.answer(answers[-1]["content"] or "")
    episode.close()
    return episode.reward


def rows_of(url, env, split, limit=None, seed=0):
    """Dataset rows of a split's tasks; each is opened once for its first observation."""
    description = describe(url, env)
    rows = []
    for index in task_indices(description, split)[:limit]:
        episode = Episode(url, env, index, seed)
        prompt = [{"role": "system", "content": description["readme_content"]},
                  {"role": "user", "content": episode.first}]
        episode.close()
        rows.append({"prompt": prompt, "answer": "", "info": {"env": env, "index": index, "seed": seed}})
    return rows


def load_environment(env="textcraft", url="http://127.0.0.1:36001", max_turns=30, tasks=None, eval_tasks=None, **kwargs):
    """Verifiers environment: `tasks` and `eval_tasks` bound the numbers of training and test tasks."""
    import verifiers as vf
    from datasets import Dataset

    class LongplayMultiTurnEnv(vf.MultiTurnEnv):
        async def setup_state(self, state, **_):
            info = state["info"]
            info = json.loads(info) if isinstance(info, str) else info
            state["episode"] = await asyncio.to_thread(Episode, url, info["env"], info["index"], info["seed"])
            return state

        async def env_response(self, messages, state, **_):
            text = await asyncio.to_thread(state["episode"].answer, messages[-1]["content"] or "")
            reply = [{"role": "user", "content": text}]
            return reply if returns_messages else (reply, state)

        async def is_completed(self, *args, **more):
            episode = args[-1].get("episode")  # (messages, state), or the state alone in newer versions
            return bool(episode and episode.done) or await super().is_completed(*args, **more)

    # Newer versions name stop conditions by decorator and take the messages alone from `env_response`.
    returns_messages = hasattr(vf, "stop")

    async def world_reward(completion, state, **_):
        return await asyncio.to_thread(settle, state.get("episode"), completion)

    return LongplayMultiTurnEnv(
        dataset=Dataset.from_list(rows_of(url, env, "train", tasks)),
        eval_dataset=Dataset.from_list(rows_of(url, env, "test", eval_tasks)),
        rubric=vf.Rubric(funcs=[world_reward]),
        max_turns=max_turns,
        **kwargs,
    )
