/** The airline as a domain: 50 tasks, 14 tools of the agent, none of the user. */
import { once, readData, readDataJson } from '../data-files.ts';
import { type Domain, indexTools, readSplits, readTools } from '../domain.ts';
import { createKit, type Toolkit } from '../environment.ts';
import { cloneValue } from '../python/values.ts';
import { readTasks } from '../tasks.ts';
import { type Airline, airline as database } from './model.ts';
import { methods } from './tools.ts';

const start = once(() => database.create<Airline>(readDataJson('airline/db.json.gz')));
const tools = once(() => readTools('airline', 'assistant'));
const toolkit = once((): Toolkit<Airline> => ({ className: 'AirlineTools', tools: indexTools(tools()), methods }));

export const airline: Domain = {
  id: 'airline',
  hasSolo: false,
  policy: once(() => readData('airline/policy.md')),
  tasks: once(() => readTasks(readDataJson('airline/tasks.json.gz'))),
  splits: once(() => readSplits('airline/split_tasks.json')),
  tools: (side) => (side === 'user' ? [] : tools()),
  open() {
    const db = cloneValue(start());
    return { agent: createKit(toolkit(), db, () => db) };
  },
};
