/** The shop as a domain: 114 tasks, 16 tools of the agent, none of the user. */
import { once, readData, readDataJson } from '../data-files.ts';
import { type Domain, indexTools, readSplits, readTools } from '../domain.ts';
import { createKit, type Toolkit } from '../environment.ts';
import { cloneValue } from '../python/values.ts';
import { readTasks } from '../tasks.ts';
import { type Shop, shop } from './model.ts';
import { methods } from './tools.ts';

const start = once(() => shop.create<Shop>(readDataJson('retail/db.json.gz')));
const tools = once(() => readTools('retail', 'assistant'));
const toolkit = once((): Toolkit<Shop> => ({ className: 'RetailTools', tools: indexTools(tools()), methods }));

export const retail: Domain = {
  id: 'retail',
  hasSolo: false,
  policy: once(() => readData('retail/policy.md')),
  tasks: once(() => readTasks(readDataJson('retail/tasks.json.gz'))),
  splits: once(() => readSplits('retail/split_tasks.json')),
  tools: (side) => (side === 'user' ? [] : tools()),
  open() {
    const database = cloneValue(start());
    return { agent: createKit(toolkit(), database, () => database) };
  },
};
