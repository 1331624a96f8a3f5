import { mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { describe, expect, it } from 'vitest';
import { readOutcome } from '../../src/core/agent-call.ts';
import { readTaskList } from '../../src/core/task-list.ts';
import { readAgentOptions } from '../../src/gateway/agent-options.ts';

const here = pathToFileURL(join(tmpdir(), 'agent.mjs'));

describe('options of an agent', () => {
  it.each([
    [{}, "agent: give one of 'module'"],
    [{ module: 'a.mjs', command: ['a'] }, "agent: give one of 'module'"],
    [{ modul: 'a.mjs' }, 'agent: modul: expected one of module, command'],
    [{ command: 'python agent.py' }, 'agent: command: expected a list of words'],
    [{ url: 'localhost' }, 'agent: url: expected a URL, e.g. http://127.0.0.1:3000/init'],
    [{ url: 'http://a', command: ['a'] }, "agent: give one of 'module'"],
    [{ module: 'a.mjs', host: '0.0.0.0' }, 'agent: host: expected an address of this machine'],
    [{ module: 'a.mjs', tasks: 0 }, 'agent: tasks: expected a number, the path of a JSONL file, or a list, got 0'],
    [{ module: 'a.mjs', replay: 'always' }, 'agent: replay: expected never or exact'],
    [{ module: 'a.mjs', rewardAtHorizon: true }, 'agent: rewardAtHorizon: expected keep or drop'],
  ])('%j is refused by name', (options, message) => {
    expect(() => readAgentOptions(options)).toThrow(message);
  });
  it('have defaults', () => {
    expect(readAgentOptions({ module: 'a.mjs' })).toMatchObject({ replay: 'never', rewardAtHorizon: 'keep' });
  });
});

describe('tasks of an agent', () => {
  it('are a number, of which the last tenth is held out', () => {
    const { table, task } = readTaskList(20, here, 'agent');
    expect([table.count, table.split('test'), task(3)]).toEqual([20, [18, 19], { index: 3 }]);
  });
  it('are a list, whose entries may name their split', () => {
    const { table, task } = readTaskList([{ split: 'test' }, 'b', { split: 'train' }], here, 'agent');
    expect([table.split('test'), table.split('train'), task(1)]).toEqual([[0], [1, 2], 'b']);
  });
  it('are the lines of a file beside the module', () => {
    const folder = mkdtempSync(join(tmpdir(), 'tasks-'));
    writeFileSync(join(folder, 'tasks.jsonl'), '{"q": 1}\n\n{"q": 2}\n');
    const { table, task } = readTaskList('tasks.jsonl', pathToFileURL(join(folder, 'agent.mjs')), 'agent');
    expect([table.count, task(1)]).toEqual([2, { q: 2 }]);
    writeFileSync(join(folder, 'tasks.jsonl'), '{"q": 1}\n{"q": \n');
    expect(() => readTaskList('tasks.jsonl', pathToFileURL(join(folder, 'agent.mjs')), 'agent')).toThrow(
      'tasks.jsonl:2: expected JSON',
    );
  });
  it.each([[undefined], [[]], [0], [{}]])('%j is refused', (given) => {
    expect(() => readTaskList(given, here, 'agent')).toThrow('agent: tasks: expected a number, a list of one or more');
  });
});

describe('the outcome of an agent', () => {
  it.each([
    [{ reward: 0.5 }, { reward: 0.5, success: true, metrics: {} }],
    [{ reward: 0 }, { reward: 0, success: false, metrics: {} }],
    [
      { reward: 1, success: false, metrics: { calls: 3 } },
      { reward: 1, success: false, metrics: { calls: 3 } },
    ],
    [1, { reward: 1, success: true, metrics: {} }],
    [undefined, undefined],
  ])('%j', (value, outcome) => {
    expect(readOutcome(value)).toEqual(outcome);
  });
  it.each([
    ['done', 'got "done"'],
    [{ reward: Number.NaN }, 'got reward NaN'],
    [{ reward: 1, success: 1 }, 'got success 1'],
    [{ reward: 1, metrics: { a: 'b' } }, 'got metrics'],
  ])('%j is refused', (value, message) => {
    expect(() => readOutcome(value)).toThrow(message);
  });
});
