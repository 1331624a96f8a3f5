/** Users of τ²-bench: the script with tools of its own, the one that is a language model, and the judge of retail. */
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { gunzipSync } from 'node:zlib';
import { afterEach, describe, expect, it } from 'vitest';
import { DOMAINS } from '../../../envs/tau2/domains.ts';
import { createEnv, createOracle, start } from '../../../envs/tau2/index.ts';
import { flipRoles } from '../../../envs/tau2/model-user.ts';
import { findRequests } from '../../../envs/tau2/phone-requests.ts';
import { userPrompt } from '../../../envs/tau2/scenario.ts';
import { telecom } from '../../../envs/tau2/telecom/domain.ts';
import { printAgentReply, readAgentCall, readReport } from '../../../src/core/agent-call.ts';
import type { EnvOptions, EnvStep, Session } from '../../../src/core/env.ts';
import { openChatModel } from '../../../src/policy/remote/chat-model.ts';
import { type ScriptedAnswer, startChatServer } from '../../support/chat-server.ts';

const closing: (() => unknown)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0)) await close();
});

const usage = { promptTokens: 0, completionTokens: 0 };
const say = (content: string) => printAgentReply({ content, calls: [], finish: 'stop', usage });
const call = (name: string, args = '{}') =>
  printAgentReply({ content: '', calls: [{ name, arguments: args }], finish: 'calls', usage });
const lastOf = ({ observation }: { readonly observation: string }) =>
  readAgentCall(observation).messages.at(-1)!.content;
const text = (content: string): ScriptedAnswer => ({ message: { role: 'assistant', content } });

describe('the prompt of a user', () => {
  const path = join(process.env.LONGPLAY_GOLDEN ?? '../shared/golden', 'tau2/data/prompts.json.gz');
  it.skipIf(!existsSync(path))("is the original's to the character", () => {
    const recorded = JSON.parse(gunzipSync(readFileSync(path)).toString('utf8')) as Record<
      string,
      { readonly user_system: Readonly<Record<string, string>> }
    >;
    let compared = 0;
    for (const id of ['mock', 'retail', 'airline', 'telecom']) {
      const domain = DOMAINS[id]!;
      for (const [task, prompt] of Object.entries(recorded[id]!.user_system)) {
        const found = domain.tasks().find((one) => one.id === task)!;
        expect(userPrompt(found, domain.tools('user').length > 0)).toBe(prompt);
        compared++;
      }
    }
    expect(compared).toBe(8);
  });
});

describe('requests in words', () => {
  const tools = telecom.tools('user').map(({ tool }) => tool);
  const find = (sentence: string, isOn?: boolean) =>
    findRequests(sentence, tools, { words: telecom.requests!.words, isOn: () => isOn }).map(
      ({ name, args, isDone }) => {
        const values = [...args.values()].map(String);
        return [name, ...values, ...(isDone ? ['done'] : [])].join(' ');
      },
    );

  it.each<[string, readonly string[]]>([
    ['Please toggle airplane mode.', ['toggle_airplane_mode']],
    ['Could you turn off Airplane Mode?', ['toggle_airplane_mode']],
    ['Please run `toggle_roaming` for me', ['toggle_roaming']],
    ['Please enable data roaming.', ['toggle_roaming']],
    ['Turn on your mobile data.', ['toggle_data']],
    ['Please turn off Data Saver mode', ['toggle_data_saver_mode']],
    ['Please switch off Wi-Fi calling', ['toggle_wifi_calling']],
    ['Turn on Wi-Fi', ['toggle_wifi']],
    ['What does your status bar show?', ['check_status_bar']],
    ['Please check the network status.', ['check_network_status']],
    ['Check your network mode preference', ['check_network_mode_preference']],
    ['Please change the network mode to 4G/5G preferred', ['set_network_mode_preference 4g_5g_preferred']],
    ['Set your network mode to 4g_only.', ['set_network_mode_preference 4g_only']],
    ['Please run a speed test.', ['run_speed_test']],
    ['Check the status of your SIM card', ['check_sim_status']],
    ['Please reseat your SIM card, then reboot', ['reseat_sim_card']],
    ['Please reseat the SIM card. Then restart your phone.', ['reseat_sim_card', 'reboot_device']],
    ['Reset your APN settings; reboot the device.', ['reset_apn_settings', 'reboot_device']],
    ['Please disconnect from the VPN', ['disconnect_vpn']],
    ['Please check the permissions of the messaging app.', ['check_app_permissions messaging']],
    ['Grant the messaging app the storage permission', ['grant_app_permission messaging storage']],
    ['Can you try to send a picture message?', ['can_send_mms']],
    ['Please make the payment.', ['make_payment']],
    ['Please pay it', ['make_payment']],
    ['Check the payment request', ['check_payment_request']],
    ['Do not toggle airplane mode.', []],
    ['I have enabled roaming on your line', []],
    ["I'd like you to toggle roaming", ['toggle_roaming']],
    ['Hi! How can I help you today?', []],
    ['Is there anything else?', []],
    ['Grant the permission.', []],
    ['Toggle roaming. Toggle roaming!', ['toggle_roaming']],
  ])('%s', (sentence, calls) => expect(find(sentence)).toEqual(calls));

  it('leave a switch as it is where it stands as wanted', () => {
    expect(find('Turn on roaming', true)).toEqual(['toggle_roaming done']);
    expect(find('Turn on roaming', false)).toEqual(['toggle_roaming']);
    expect(find('Turn off roaming', false)).toEqual(['toggle_roaming done']);
    expect(find('Toggle roaming', true)).toEqual(['toggle_roaming']);
  });

  it('name every tool but the one that takes an object', () => {
    const unnamed = tools.filter(
      ({ name }) => find(`Please use ${name} messaging sms 4g_only.`)[0]?.split(' ')[0] !== name,
    );
    expect(unnamed.map(({ name }) => name)).toEqual(['set_apn_settings']);
  });
});

describe('the scripted user of the carrier', () => {
  const ROAMING = '[mobile_data_issue]user_abroad_roaming_enabled_off[PERSONA:None]';
  const index = telecom.tasks().findIndex(({ id }) => id === ROAMING);
  const open = async () => createEnv({ domain: 'telecom', user: 'scripted' }).open({ env: 'tau2', index, seed: 0 });

  it('does on its phone what it is asked for, reports it, and stops where the task is solved', async () => {
    const session = await open();
    const { messages, tools } = readAgentCall(session.first.observation);
    expect(messages.at(-1)!.content).toMatch(/^I mobile data is not working/);
    expect(tools!.some(({ name }) => name === 'toggle_roaming')).toBe(false);
    const bar = await session.step(say('What does your status bar show?'));
    expect(lastOf(bar)).toMatch(/^Status Bar: /);
    expect(readAgentCall(bar.observation).messages).toHaveLength(1);
    expect(lastOf(await session.step(say('Please turn on data roaming.')))).toMatch(
      /^Data Roaming is now ON\.\nStatus Bar: /,
    );
    expect(lastOf(await session.step(say('Please turn on data roaming.')))).toBe('It is as you want it already.');
    let step: EnvStep | undefined;
    for (let i = 0; i < 6 && step?.kind !== 'terminated'; i++)
      step = await session.step(say('Is there anything else?'));
    expect(step).toMatchObject({ kind: 'terminated', reward: 1, success: true });
    expect(readReport(step!.observation).metrics).toEqual({ ENV_ASSERTION: 1 });
  });

  it('is asked for by the options alone: the carrier is played without a user', async () => {
    const session = await createEnv({ domain: 'telecom' }).open({ env: 'tau2', index, seed: 0 });
    expect(readAgentCall(session.first.observation).messages.at(-1)!.content).toMatch(/^<ticket>/);
  });
});

type Script = (body: Readonly<Record<string, unknown>>, n: number) => ScriptedAnswer | Promise<ScriptedAnswer>;

/** Opens an episode whose user, or judge, is a local stand-in server. */
async function openWith(role: 'user' | 'judge', options: EnvOptions, index: number, script: Script) {
  const server = await startChatServer(script);
  const model = { url: server.url, model: 'stand-in', attempts: 1, timeoutMs: 5000 };
  const all = { ...options, [role]: role === 'user' ? { kind: 'openai', ...model } : model };
  const resources = await start(all, { where: '/test', openChatModel });
  closing.push(() => resources.dispose(), server.close);
  const env = createEnv(all, resources);
  return { server, env, open: async (): Promise<Session> => env.open({ env: 'tau2', index, seed: 3 }) };
}

describe('a user that is a language model', () => {
  it('reads the flipped conversation, and stops the episode by its token', async () => {
    const answers = ['I want a refund.', 'My name is Ann.', 'Bye. ###STOP###'];
    const { server, env, open } = await openWith('user', { domain: 'retail' }, 0, (_, n) => text(answers[n]!));
    expect(env.replay).toBe('never');
    const session = await open();
    expect(lastOf(session.first)).toBe('I want a refund.');
    await session.step(call('list_all_product_types'));
    expect(lastOf(await session.step(say('Who are you?')))).toBe('My name is Ann.');
    const end = await session.step(say('Done.'));
    expect(end).toMatchObject({ kind: 'terminated', reward: 0 });
    expect(lastOf(end)).toMatch(/^Bye\. ###STOP###\n\[user_stop\] reward 0: DB 0/);
    const [system, ...messages] = server.bodies[2]!.messages as { readonly role: string; readonly content: string }[];
    expect(system!.content).toMatch(/<scenario>\nInstructions:\n\tDomain: retail/);
    expect(messages.map(({ role, content }) => `${role}: ${content}`)).toEqual([
      'user: Hi! How can I help you today?',
      'assistant: I want a refund.',
      'user: Who are you?',
      'assistant: My name is Ann.',
      'user: Done.',
    ]);
    expect(server.bodies[0]).not.toHaveProperty('tools');
    expect(server.bodies[0]!.temperature).toBe(0);
  });

  it('that stops with its first words ends the episode: nothing that the agent calls is made', async () => {
    const { open } = await openWith('user', { domain: 'retail' }, 0, () => text('Bye. ###STOP###'));
    const session = await open();
    const gold = createOracle({ domain: 'retail' })({ env: 'tau2', index: 0, seed: 0 });
    const end = await session.step(gold(session.first)!);
    expect(end).toMatchObject({ kind: 'terminated', reward: 0 });
    expect(end.observation).toContain('not made: the episode is over');
    expect(lastOf(end)).toMatch(/^\[user_stop\] reward 0: DB 0/);
  });

  it('has its own tools in telecom, whose results the agent does not see', async () => {
    const toggle = { id: 'x', type: 'function', function: { name: 'toggle_data', arguments: '{}' } };
    const broken = { id: 'y', type: 'function', function: { name: 'toggle_data', arguments: '{"a"' } };
    const { server, open } = await openWith('user', { domain: 'telecom' }, 0, (_, n) =>
      n === 1 ? { message: { role: 'assistant', content: null, tool_calls: [toggle, broken] } } : text(`Text ${n}.`),
    );
    const session = await open();
    const step = await session.step(say('Please toggle your mobile data.'));
    expect(readAgentCall(step.observation).messages).toEqual([{ role: 'user', content: 'Text 2.' }]);
    expect(server.bodies[0]!.tools).toHaveLength(30);
    const sent = server.bodies[2]!.messages as readonly Readonly<Record<string, unknown>>[];
    expect(sent.slice(-3)).toMatchObject([
      { role: 'assistant', tool_calls: [{ id: 'user_0', function: { name: 'toggle_data' } }, { id: 'user_1' }] },
      { role: 'tool', tool_call_id: 'user_0', content: expect.stringMatching(/^Mobile Data is now/) },
      { role: 'tool', tool_call_id: 'user_1', content: expect.stringContaining('are no JSON') },
    ]);
  });

  it('that fails, or writes nothing, makes the episode fail, never a reward of 0', async () => {
    const { server, open } = await openWith('user', { domain: 'airline' }, 0, (_, n) =>
      n === 0 ? text('Hello.') : n < 5 ? text(' ') : { status: 500 },
    );
    const session = await open();
    await expect(Promise.resolve(session.step(say('Yes?')))).rejects.toThrow('wrote nothing, asked 3 times');
    expect(new Set(server.bodies.slice(1).map(({ seed }) => seed)).size).toBe(3);
    const { open: openBroken } = await openWith('user', { domain: 'airline' }, 0, () => ({ status: 500 }));
    await expect(openBroken()).rejects.toMatchObject({ code: 'REMOTE_FAILED' });
  });

  it('is refused where no model can be reached, and before the world is started', async () => {
    const options = { domain: 'retail', user: { kind: 'openai', url: 'http://127.0.0.1:1', model: 'm' } };
    await expect(start(options, { where: '/test' })).rejects.toThrow('cannot be reached here');
    expect(() => createEnv(options).open({ env: 'tau2', index: 0, seed: 0 })).toThrow('must be started');
    expect(createEnv(options).tasks.count).toBe(114);
    const judged = createEnv({ domain: 'retail', judge: { url: 'http://127.0.0.1:1', model: 'm' } });
    expect(() => judged.open({ env: 'tau2', index: 0, seed: 0 })).toThrow('with this judge');
  });

  it('never reads a call of the agent, or its result', () => {
    const agent = { role: 'assistant' as const, content: 'x', calls: [{ id: 'a', name: 'f', args: new Map() }] };
    const result = {
      role: 'tool' as const,
      content: 'secret',
      calls: [],
      answers: { id: 'a', side: 'assistant' as const, error: false },
    };
    expect(flipRoles([agent, result])).toEqual([]);
  });
});

describe('a judge of retail', () => {
  const index = DOMAINS.retail!.tasks().findIndex(({ criteria }) => criteria!.statements.length === 2);
  const judged = (...holds: readonly boolean[]) =>
    text(JSON.stringify({ verdicts: holds.map((one, i) => ({ statement: i + 1, holds: one })) }));

  async function play(session: Session): Promise<EnvStep> {
    const next = createOracle({ domain: 'retail' })({ env: 'tau2', index, seed: 0 });
    let step: EnvStep | Session['first'] = session.first;
    for (let action = next(step); action !== undefined; action = next(step)) step = await session.step(action);
    return step as EnvStep;
  }

  it.each([
    [[true, true], 1],
    [[true, false], 0],
  ])('that finds %j rewards %d', async (holds, reward) => {
    const { server, env, open } = await openWith('judge', { domain: 'retail' }, index, () => judged(...holds));
    const end = await play(await open());
    expect(end).toMatchObject({ kind: 'terminated', reward, success: reward === 1 });
    expect(lastOf(end)).toContain(`[user_stop] reward ${reward}: DB 1, NL_ASSERTION ${reward}`);
    expect(readReport(end.observation).metrics).toEqual({ DB: 1, NL_ASSERTION: reward });
    expect(env.replay).toBe('never');
    const [, { content }] = server.bodies[0]!.messages as [unknown, { readonly content: string }];
    expect(content).toContain('assistant: Hi! How can I help you today?');
    expect(content).toMatch(/assistant calls \w+: \{/);
    expect(content).toContain(`1. ${DOMAINS.retail!.tasks()[index]!.criteria!.statements[0]}`);
    await play(await open()); // the same conversation is judged once
    expect(server.bodies).toHaveLength(1);
  });

  it('that fails makes the episode fail', async () => {
    const { open } = await openWith('judge', { domain: 'retail' }, index, () => text('I cannot tell.'));
    await expect(play(await open())).rejects.toThrow('asked 3 times: expected JSON of an object, got "I cannot tell."');
  });

  it('is not asked where nothing is to be judged, and none leaves the part out', async () => {
    const plain = DOMAINS.retail!.tasks().findIndex(({ criteria }) => criteria!.statements.length === 0);
    const { server, open } = await openWith('judge', { domain: 'retail' }, plain, () => text(''));
    const session = await open();
    await session.step(call('transfer_to_human_agents', '{"summary": "x"}'));
    expect((await session.step(say('Bye.'))).kind).toBe('terminated');
    expect(server.bodies).toHaveLength(0);
    const end = await play(await createEnv({ domain: 'retail' }).open({ env: 'tau2', index, seed: 0 }));
    expect(readReport(end.observation).metrics).toEqual({ DB: 1, notJudged: 2 });
  });
});
