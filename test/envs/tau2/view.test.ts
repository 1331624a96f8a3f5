import { expect, it } from 'vitest';
import * as tau2 from '../../../envs/tau2/index.ts';
import { view } from '../../../envs/tau2/view.ts';
import type { SeenTurn } from '../../../src/core/view.ts';

const env = tau2.createEnv({ domain: 'telecom' });

/** Plays choices, and reads the episode as the local policy does. */
async function read(choices: readonly string[], index = 0) {
  const session = await env.open({ env: 'tau2', index, seed: 0 });
  let state = view.track!.begin(session.first);
  const turns: SeenTurn[] = [];
  for (const action of choices) {
    session.actions!();
    const step = await session.step(action);
    if (step.kind === 'terminated') break;
    const turn: SeenTurn = { action, observation: step.observation, ...(step.partial ? { partial: true } : {}) };
    turns.push(turn);
    state = view.track!.reduce(state, turn);
  }
  const rendered = view.render(session.first, turns, state);
  const again = [...turns].reduce(view.track!.reduce, view.track!.begin(session.first));
  expect(again).toEqual(state);
  return { text: rendered.segments.join(''), rendered, candidate: (action: string) => view.candidate!(action, state) };
}

it('begins with the ticket in known words, and without the policy', async () => {
  const { text } = await read([]);
  expect(text).toMatch(/^ask .*mobile data .*abroad/);
  expect(text.split(' ').length).toBeLessThan(40);
});

it('shows the status bar once, and the last answer of each tool', async () => {
  const { text } = await read(['toggle_wifi', 'check_sim_status', 'toggle_airplane_mode', 'check_sim_status']);
  expect(text.slice(text.indexOf(' | '))).toBe(
    ' | bar airplane mode 80 | toggle wifi wi fi now on | toggle airplane mode airplane mode now on' +
      ' | check sim status sim card active working',
  );
});

it('shows a call that is being put together, and ids as kinds with numbers', async () => {
  const { text, candidate } = await read(['get_customer_by_phone', '555-123-2002', 'get_details_by_id']);
  expect(text).toMatch(/ \| call get details by$/);
  expect(candidate('L1002')).toBe('line 2');
  expect(candidate('C1001')).toBe('customer 1');
});

it('distinguishes tools that were called, and mentions what they answered', async () => {
  const { rendered, candidate } = await read(['check_sim_status']);
  expect(candidate('check_sim_status')).toBe('check sim status again');
  expect(candidate('toggle_data')).toBe('toggle data');
  const [place] = rendered.mentions('check_sim_status');
  expect(rendered.segments[place!]).toContain('sim card active working');
  expect(rendered.mentions('toggle_data')).toEqual([]);
});

it('reads replies as JSON as it reads choices', async () => {
  const reply = {
    content: '',
    calls: [{ name: 'toggle_wifi', arguments: '{}' }],
    finish: 'calls',
    usage: { promptTokens: 0, completionTokens: 0 },
  };
  expect((await read([JSON.stringify(reply)])).text).toBe((await read(['toggle_wifi'])).text);
});
