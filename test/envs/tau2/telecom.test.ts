import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { openEnvironment } from '../../../envs/tau2/domain.ts';
import type { Environment, Side } from '../../../envs/tau2/environment.ts';
import * as tau2 from '../../../envs/tau2/index.ts';
import { parsePython } from '../../../envs/tau2/python/json.ts';
import type { PyValue } from '../../../envs/tau2/python/values.ts';
import type { TauTask } from '../../../envs/tau2/tasks.ts';
import type { Accounts } from '../../../envs/tau2/telecom/account-model.ts';
import { telecom, telecomWorkflow } from '../../../envs/tau2/telecom/domain.ts';
import type { ApnSettings, PhoneData } from '../../../envs/tau2/telecom/phone-model.ts';
import type { Env, EnvStep } from '../../../src/core/env.ts';

const taskById = new Map(telecom.tasks().map((task) => [task.id, task]));
const base = telecom.splits().base!.map((id) => taskById.get(id)!);
const sides: readonly Side[] = ['assistant', 'user'];

function args(json: string): Map<string, PyValue> {
  return parsePython(json) as Map<string, PyValue>;
}

/** Calls a tool; its text. */
function call(environment: Environment, side: Side, name: string, json = '{}'): string {
  return environment.call(side, name, args(json)).text;
}

function open(actions: readonly (readonly [side: Side, name: string, json?: string | undefined])[] = []): Environment {
  const environment = openEnvironment(telecom, undefined, false);
  environment.run('user', 'set_user_info', args('{"name": "John Smith", "phone_number": "555-123-2002"}'));
  for (const [side, name, json] of actions) environment.run(side, name, args(json ?? '{}'));
  return environment;
}

function phoneOf(environment: Environment): PhoneData {
  return environment.databaseOf('user') as PhoneData;
}

function isSolved(environment: Environment, { criteria }: TauTask): boolean {
  return criteria!.assertions!.every(({ side, name, args, wanted }) => environment.run(side, name, args) === wanted);
}

describe('tasks of the carrier', () => {
  it('are 2,285, of which base is parted into train and test', () => {
    expect(taskById.size).toBe(2285);
    const { train, test, base: all, small, full } = telecom.splits() as Record<string, string[]>;
    expect([...train!, ...test!].sort()).toEqual([...all!].sort());
    for (const id of [...small!, ...full!]) expect(taskById.has(id)).toBe(true);
  });

  it.each([false, true])('of base are solved by the gold actions, and by no less (solo: %s)', (isSolo) => {
    const mutating = new Set(
      sides.flatMap((side) => telecom.tools(side).filter((one) => one.mutates)).map((one) => one.tool.name),
    );
    let isShorter = 0;
    for (const task of base) {
      const { actions } = task.criteria!;
      const play = (gold: typeof actions) => {
        const environment = openEnvironment(telecom, task, isSolo);
        for (const { side, name, args } of gold!) {
          const { text, error } = environment.call(isSolo ? 'assistant' : side, name, args);
          expect(error, `${task.id}: ${name}: ${text}`).toBe(false);
        }
        return isSolved(environment, task);
      };
      expect(play(actions), task.id).toBe(true);
      const last = actions!.findLastIndex(({ name }) => mutating.has(name));
      if (task.criteria!.basis.includes('ACTION') || last < 0) continue;
      isShorter++;
      expect(play(actions!.toSpliced(last, 1)), task.id).toBe(false);
    }
    expect(isShorter).toBeGreaterThan(90);
  });
});

/** Plays a task by the listed choices alone: the customer is looked up, then the gold actions are made. */
async function playByChoices(env: Env, index: number): Promise<EnvStep> {
  const session = await env.open({ env: 'tau2', index, seed: 0 });
  let step: EnvStep = { kind: 'mid', observation: '', reward: 0 };
  const choose = async (text: string) => {
    const listed = await session.actions!();
    expect(listed.length).toBeLessThanOrEqual(64);
    expect(listed).toContain(text);
    step = await session.step(text);
  };
  for (const text of ['get_customer_by_phone', '555-123-2002']) await choose(text);
  for (const { name, args } of telecom.tasks()[index]!.criteria!.actions!) {
    await choose(name);
    // The text of a summary is up to the policy.
    for (const value of args.values()) await choose(name.startsWith('transfer') ? 'phone' : String(value));
  }
  await choose('done');
  await session.close?.();
  return step;
}

describe('choices of the carrier without a user', () => {
  it('put the gold actions of each base task together', async () => {
    const env = tau2.createEnv({ domain: 'telecom' });
    for (const { id } of base) {
      const end = await playByChoices(
        env,
        telecom.tasks().findIndex((task) => task.id === id),
      );
      expect(end, id).toMatchObject({ kind: 'terminated', reward: 1, success: true });
    }
  });

  it('let a transfer at once solve 20 of 114 tasks, all without service, 12 of them held out', async () => {
    const env = tau2.createEnv({ domain: 'telecom' });
    const test = new Set(env.tasks.split('test'));
    const solved: number[] = [];
    for (const index of env.tasks.sets!.base!) {
      const session = await env.open({ env: 'tau2', index, seed: 0 });
      let last: EnvStep | undefined;
      for (const text of ['transfer_to_human_agents', 'phone', 'done']) last = await session.step(text);
      if (last!.reward > 0) solved.push(index);
    }
    expect(solved).toHaveLength(20);
    expect(solved.filter((index) => test.has(index))).toHaveLength(12);
    expect(new Set(solved.map((index) => env.tasks.label(index)))).toEqual(new Set(['no service']));
  });

  it('are labelled by the kind of problem', () => {
    const { tasks } = tau2.createEnv({ domain: 'telecom' });
    expect(tasks.labels).toEqual(['no service', 'mobile data', 'picture messages']);
    const counts = new Map<string, number>();
    for (let i = 0; i < tasks.count; i++) counts.set(tasks.label(i), (counts.get(tasks.label(i)) ?? 0) + 1);
    expect(counts).toEqual(
      new Map([
        ['mobile data', 254],
        ['no service', 47],
        ['picture messages', 1984],
      ]),
    );
    expect([tasks.split('train').length, tasks.split('test').length]).toEqual([74, 40]);
  });
});

describe('episodes of the carrier', () => {
  it('share nothing that can change', () => {
    const untouched = openEnvironment(telecom, undefined, false);
    const before = sides.map((side) => untouched.digest(side));
    for (const task of base) {
      const environment = openEnvironment(telecom, task, false);
      for (const { side, name, args } of task.criteria!.actions!) environment.call(side, name, args);
    }
    expect(sides.map((side) => untouched.digest(side))).toEqual(before);
    const next = openEnvironment(telecom, undefined, false);
    expect(sides.map((side) => next.digest(side))).toEqual(before);
  });

  it('change by mutating tools only, and answer in words whatever the arguments', () => {
    const all = sides.flatMap((side) => telecom.tools(side).map((one) => ({ side, ...one })));
    const value = fc.constantFrom(
      ...['"C1001"', '"L1002"', '"B1003"', '"messaging"', '"sms"', '2', '2.0', '-1', 'true', 'null', '[]', '{"a": 1}'],
      ...['"4g_only"', '{"apn_name": "broken"}', '{"apn_name": "internet"}', '"555-123-2002"', '""'],
    );
    const given = fc.tuple(fc.constantFrom(...all), fc.array(value, { minLength: 3, maxLength: 3 }), fc.nat(9));
    fc.assert(
      fc.property(fc.constantFrom(...base.slice(0, 40)), fc.array(given, { maxLength: 12 }), (task, calls) => {
        const environment = openEnvironment(telecom, task, false);
        for (const [{ side, tool, mutates }, values, extra] of calls) {
          const names = Object.keys((tool.parameters as { properties?: object }).properties ?? {});
          const list = names.map((name, i) => `"${name}": ${values[i]}`);
          if (extra === 0) list.push('"note": 1');
          const before = sides.map((one) => environment.digest(one));
          const { text, error } = environment.call(side, tool.name, args(`{${list.join(', ')}}`));
          expect(typeof text).toBe('string');
          expect(error).toBe(text.startsWith('Error: '));
          if (!mutates) expect(sides.map((one) => environment.digest(one))).toEqual(before);
        }
      }),
      { numRuns: 60 },
    );
  });
});

describe('the phone', () => {
  it('has a network exactly where SIM, APN and line allow it and airplane mode is off', () => {
    const name = fc.constantFrom(
      ...['toggle_airplane_mode', 'reseat_sim_card', 'toggle_data', 'toggle_roaming', 'reset_apn_settings'],
      ...['reboot_device', 'toggle_wifi', 'connect_vpn', 'disconnect_vpn', 'break_apn_settings', 'unseat_sim_card'],
    );
    const mode = fc.constantFrom('4g_5g_preferred', '4g_only', '3g_only', '2g_only').map((one) => `{"mode": "${one}"}`);
    const lock = fc.constantFrom('pin', 'puk').map((one) => `{"mode": "${one}"}`);
    const step = fc.oneof(
      { weight: 8, arbitrary: name.map((one) => [one, '{}'] as const) },
      { weight: 2, arbitrary: mode.map((json) => ['set_network_mode_preference', json] as const) },
      { weight: 1, arbitrary: lock.map((json) => ['lock_sim_card', json] as const) },
    );
    const technologies = new Map<PyValue, string[]>([
      ['4g_5g_preferred', ['5G', 'excellent']],
      ['4g_only', ['4G', 'good']],
      ['3g_only', ['3G', 'fair']],
      ['2g_only', ['2G', 'poor']],
    ]);
    fc.assert(
      fc.property(fc.array(step, { minLength: 1, maxLength: 15 }), (steps) => {
        const environment = open();
        environment.run('user', 'simulate_network_search', args('{}'));
        for (const [action, json] of steps) environment.run('user', action, args(json));
        const { device } = phoneOf(environment);
        const hasSim = !device.sim_card_missing && device.sim_card_status === 'active';
        const isBroken = (device.active_apn_settings as ApnSettings).apn_name === 'broken';
        const isOn = hasSim && !isBroken && !device.airplane_mode;
        const network = [device.network_technology_connected, device.network_signal_strength];
        expect(network).toEqual(isOn ? technologies.get(device.network_mode_preference) : ['none', 'none']);
        expect(device.network_connection_status).toBe(isOn ? 'connected' : 'no_service');
        const bar = call(environment, 'user', 'check_status_bar');
        expect(bar.includes('✈️ Airplane Mode')).toBe(device.airplane_mode);
        expect(bar.includes('🔒 VPN Connected')).toBe(device.vpn_connected);
        expect(bar.includes('📱 Data Enabled')).toBe(isOn && device.data_enabled);
      }),
      { numRuns: 150 },
    );
  });

  it.each([
    ['4g_5g_preferred', [], '275.00 Mbps (Excellent)'],
    ['4g_only', [], '44.00 Mbps (Good)'],
    ['3g_only', [], '1.50 Mbps (Poor)'],
    ['2g_only', [], '0.05 Mbps (Very Poor)'],
    ['4g_5g_preferred', ['turn_data_saver_mode_on'], '55.00 Mbps (Good)'],
    ['4g_5g_preferred', ['break_vpn'], '27.50 Mbps (Good)'],
    ['4g_5g_preferred', ['break_vpn', 'turn_data_saver_mode_on'], '5.50 Mbps (Fair)'],
  ])('measures its speed: %s %s', (mode, actions, expected) => {
    const environment = open(actions.map((name) => ['user', name]));
    call(environment, 'user', 'set_network_mode_preference', `{"mode": "${mode}"}`);
    expect(call(environment, 'user', 'run_speed_test')).toContain(expected);
  });

  it.each<[string, string?]>([
    ['turn_data_off'],
    ['turn_airplane_mode_on'],
    ['unseat_sim_card'],
    ['lock_sim_card', '{"mode": "puk"}'],
    ['set_network_mode_preference', '{"mode": "2g_only"}'],
    ['set_wifi_calling', '{"enabled": true, "mms_over_wifi": true}'],
    ['break_apn_settings'],
    ['break_apn_mms_setting'],
    ['set_user_location', '{"abroad": true}'],
    ['remove_app_permission', '{"app_name": "messaging", "permission": "sms"}'],
    ['remove_app_permission', '{"app_name": "messaging", "permission": "STORAGE"}'],
  ])('sends picture messages, but not after %s %s', (name, json) => {
    expect(call(open(), 'user', 'can_send_mms')).toBe('Your messaging app can send MMS messages.');
    const environment = open([['user', name, json]]);
    expect(call(environment, 'user', 'can_send_mms')).toBe('Your messaging app cannot send MMS messages.');
  });

  it.each<[string, string?]>([
    ['set_wifi_calling', '{"enabled": true}'],
    ['set_network_mode_preference', '{"mode": "3g_only"}'],
    ['turn_roaming_off'],
    ['remove_app_permission', '{"app_name": "messaging", "permission": "phone"}'],
    ['remove_app_permission', '{"app_name": "browser", "permission": "storage"}'],
    ['turn_data_saver_mode_on'],
  ])('sends picture messages after %s %s too', (name, json) => {
    const environment = open([['user', name, json]]);
    expect(call(environment, 'user', 'can_send_mms')).toBe('Your messaging app can send MMS messages.');
  });

  it('keeps a broken VPN in its episode, and only there', () => {
    const environment = open([['user', 'break_vpn']]);
    call(environment, 'user', 'disconnect_vpn');
    call(environment, 'user', 'connect_vpn');
    expect(call(environment, 'user', 'check_vpn_status')).toContain("<PerformanceLevel.POOR: 'poor'>");
    const other = open();
    call(other, 'user', 'connect_vpn');
    expect(call(other, 'user', 'check_vpn_status')).toContain("<PerformanceLevel.EXCELLENT: 'excellent'>");
  });

  it('keeps APN settings of a wrong type, and every search of the network fails by them', () => {
    const environment = open();
    const wrong = call(environment, 'user', 'set_apn_settings', '{"apn_settings": 2.5}');
    expect(wrong).toBe("Error: 'float' object has no attribute 'apn_name'");
    expect(call(environment, 'user', 'toggle_data')).toBe(wrong);
    expect(call(environment, 'user', 'reboot_device')).toBe("Error: 'float' object has no attribute 'reset_at_reboot'");
    call(environment, 'user', 'set_apn_settings', '{"apn_settings": {}}');
    expect(call(environment, 'user', 'toggle_data')).toMatch(/^Mobile Data is now ON\./);
  });

  it('follows the account: its line, its roaming, its data', () => {
    const environment = open();
    const { surroundings } = phoneOf(environment);
    call(environment, 'assistant', 'suspend_line', '{"customer_id": "C1001", "line_id": "L1002", "reason": ""}');
    expect(surroundings.line_active).toBe(false);
    call(environment, 'assistant', 'disable_roaming', '{"customer_id": "C1001", "line_id": "L1002"}');
    expect(surroundings.roaming_allowed).toBe(false);
    environment.run(
      'assistant',
      'set_data_usage',
      args('{"customer_id": "C1001", "line_id": "L1002", "data_used_gb": 15.0}'),
    );
    expect(surroundings.mobile_data_usage_exceeded).toBe(true);
    call(environment, 'assistant', 'refuel_data', '{"customer_id": "C1001", "line_id": "L1002", "gb_amount": 2}');
    expect(surroundings.mobile_data_usage_exceeded).toBe(false);
  });

  it('pays a bill that the agent asks for', () => {
    const environment = open();
    const ask = (bill: string) =>
      call(environment, 'assistant', 'send_payment_request', `{"customer_id": "C1001", "bill_id": "${bill}"}`);
    expect(ask('B1002')).toBe('Payment request sent to the customer for bill B1002');
    expect(call(environment, 'user', 'check_payment_request')).toBe(
      'You have a payment request for bill B1002 of 150.0 USD.',
    );
    expect(ask('B1001')).toBe('Error: A bill is already awaiting payment for this customer');
    expect(call(environment, 'user', 'make_payment')).toBe('Payment of 150.0 USD has been made for bill B1002.');
    expect(call(environment, 'assistant', 'get_details_by_id', '{"id": "B1002"}')).toContain('"status": "Paid"');
    expect(call(environment, 'user', 'check_payment_request')).toBe('No payment request has been made.');
  });
});

describe('the account', () => {
  it('tells an int from a float where it refuels data', () => {
    const refuel = (amount: string) => {
      const given = `{"customer_id": "C1001", "line_id": "L1002", "gb_amount": ${amount}}`;
      return call(open(), 'assistant', 'refuel_data', given);
    };
    expect(refuel('2')).toContain('added 2 GB of data for line L1002 for $4.00');
    expect(refuel('2.0')).toContain('added 2.0 GB of data for line L1002 for $4.00');
    expect(refuel('0')).toBe('Error: Refuel amount must be positive');
    expect(refuel(`1${'0'.repeat(400)}`)).toBe('Error: int too large to convert to float');
  });

  it('makes a draft of the next bill where there is none, and counts the ids', () => {
    const environment = open();
    for (const line of ['L1004', 'L1005']) {
      call(environment, 'assistant', 'refuel_data', `{"customer_id": "C1002", "line_id": "${line}", "gb_amount": 1.5}`);
    }
    const { bills, customers } = environment.databaseOf('assistant') as Accounts;
    expect(customers[1]!.bill_ids.slice(2)).toEqual(['B00000001']);
    const draft = bills.at(-1)!;
    expect(draft.line_items.map(({ description }) => description)).toEqual([
      'Data refueling: 1.5 GB at $0.1/GB',
      'Data refueling: 1.5 GB at $0.1/GB',
    ]);
    expect(draft.total_due).toBeCloseTo(0.3);
  });

  it('lists bills newest first and takes a limit as a slice', () => {
    const list = (limit: string) => {
      const text = call(open(), 'assistant', 'get_bills_for_customer', `{"customer_id": "C1001"${limit}}`);
      return [...text.matchAll(/"bill_id": "(B\d+)"/g)].map(([, id]) => id);
    };
    expect(list('')).toEqual(['B1003', 'B1002', 'B1001']);
    expect(list(', "limit": 2')).toEqual(['B1003', 'B1002']);
    expect(list(', "limit": -1')).toEqual(['B1003', 'B1002']);
    expect(list(', "limit": 0')).toEqual([]);
    expect(list(', "limit": null')).toEqual(['B1003', 'B1002', 'B1001']);
  });
});

describe('policies of the carrier', () => {
  it('hold the main policy and the support, with a variant for each', () => {
    const all = [telecom, telecomWorkflow].flatMap(({ policy }) => [policy(false), policy(true)]);
    expect(new Set(all).size).toBe(4);
    for (const text of all) {
      expect(text).toMatch(
        /^<main_policy>\n[\s\S]+\n<\/main_policy>\n<tech_support_policy>\n[\s\S]+\n<\/tech_support_policy>$/,
      );
    }
  });
});
