/** The carrier as a domain: 2,285 tasks, 13 tools of the agent, 30 of the user's phone. It can be played without a user. */
import { once, readData, readDataJson } from '../data-files.ts';
import { type Domain, indexTools, readSplits, readTools } from '../domain.ts';
import { createKit, type Side, type Sides, type Toolkit } from '../environment.ts';
import { parseItems } from '../python/json.ts';
import { isLess } from '../python/operations.ts';
import { cloneValue } from '../python/values.ts';
import { readTasks } from '../tasks.ts';
import { type Accounts, accounts } from './account-model.ts';
import * as account from './account-tools.ts';
import {
  type PaymentRequest,
  type PhoneData,
  paymentRequest,
  phoneData,
  type VpnDetails,
  vpnDetails,
} from './phone-model.ts';
import * as setup from './phone-setup.ts';
import * as phone from './phone-tools.ts';

const accountStart = once(() => accounts.create<Accounts>(readDataJson('telecom/db.json.gz')));
const phoneStart = once(() => phoneData.create<PhoneData>(readDataJson('telecom/user_db.json.gz')));

const accountTools = once(() => readTools('telecom', 'assistant'));
const phoneTools = once(() => readTools('telecom', 'user'));
const accountToolkit = once(
  (): Toolkit<account.AccountState> => ({
    className: 'TelecomTools',
    tools: indexTools(accountTools()),
    methods: account.methods,
  }),
);
const phoneToolkit = once(
  (): Toolkit<phone.PhoneState> => ({
    className: 'TelecomUserTools',
    tools: indexTools(phoneTools()),
    methods: { ...setup.methods, ...phone.methods },
  }),
);

/** Details of a connection of the VPN. */
const VPN = { server_address: '192.168.1.1', protocol: 'OpenVPN', server_performance: 'excellent' };

/** Switches of the phone, by the tools that toggle them. */
const SWITCHES: Readonly<Record<string, (device: PhoneData['device']) => boolean>> = {
  toggle_airplane_mode: ({ airplane_mode }) => airplane_mode,
  toggle_data: ({ data_enabled }) => data_enabled,
  toggle_roaming: ({ roaming_enabled }) => roaming_enabled,
  toggle_data_saver_mode: ({ data_saver_mode }) => data_saver_mode,
  toggle_wifi: ({ wifi_enabled }) => wifi_enabled,
  toggle_wifi_calling: ({ wifi_calling_enabled }) => wifi_calling_enabled,
};

/** Labels by the kind of problem that a task's id begins with. */
const PROBLEMS: Readonly<Record<string, string>> = {
  '[service_issue]': 'no service',
  '[mobile_data_issue]': 'mobile data',
  '[mms_issue]': 'picture messages',
};

export const telecom: Domain = {
  id: 'telecom',
  hasSolo: true,
  isSoloByDefault: true,
  requests: {
    words: { app_name: ['messaging', 'browser'], permission: ['sms', 'storage', 'network', 'phone'] },
    isOn: (tool, database) => SWITCHES[tool]?.((database as PhoneData).device),
  },
  // Names on the phone, which its answers do not show before they are needed.
  values: ['messaging', 'browser', 'sms', 'storage', 'phone', 'network'],
  labels: {
    all: Object.values(PROBLEMS),
    of: ({ id }) => Object.entries(PROBLEMS).find(([start]) => id.startsWith(start))![1],
  },
  policy: (isSolo) => joinPolicy(`main_policy${isSolo ? '_solo' : ''}`, 'tech_support_manual'),
  // 14 MB of text: read task by task.
  tasks: once(() => Array.from(parseItems(readData('telecom/tasks.json.gz')), (task) => readTasks([task])[0]!)),
  splits: once(() => readSplits('telecom/split_tasks.json.gz')),
  tools: (side: Side) => (side === 'user' ? phoneTools() : accountTools()),
  open() {
    const accountState: account.AccountState = { db: cloneValue(accountStart()), newBills: 0 };
    const phoneState: phone.PhoneState = { db: cloneValue(phoneStart()), vpn: vpnDetails.of<VpnDetails>(VPN) };
    const sides: Sides = {
      agent: createKit(accountToolkit(), accountState, () => accountState.db),
      user: createKit(phoneToolkit(), phoneState, () => phoneState.db),
      sync: () => syncPhone(accountState.db, phoneState.db),
    };
    return sides;
  },
};

/** The same domain, where the agent gets the support as a workflow instead of a manual. */
export const telecomWorkflow: Domain = {
  ...telecom,
  id: 'telecom-workflow',
  policy: (isSolo) => {
    const suffix = isSolo ? '_solo' : '';
    return joinPolicy(`main_policy${suffix}`, `tech_support_workflow${suffix}`);
  },
};

function joinPolicy(main: string, support: string): string {
  const [mainText, supportText] = [main, support].map((name) => readData(`telecom/${name}.md`));
  return `<main_policy>\n${mainText}\n</main_policy>\n<tech_support_policy>\n${supportText}\n</tech_support_policy>`;
}

/**
 * Brings the phone into line with the account of its number: whether its line is active, may roam, has used up its data. A payment
 * that was made pays its bill; a bill that awaits payment becomes a request on the phone.
 * @throws {PyError} for a number without a line
 */
function syncPhone(db: Accounts, { surroundings }: PhoneData): void {
  const number = surroundings.phone_number;
  if (number === null) return;
  const line = account.findLineByPhone(db, number);
  surroundings.line_active = line.status === 'Active';
  surroundings.roaming_allowed = line.roaming_enabled;
  const limit = account.findPlan(db, line.plan_id).data_limit_gb + line.data_refueling_gb;
  surroundings.mobile_data_usage_exceeded = !isLess(line.data_used_gb, limit, '>=');
  const paid = surroundings.payment_request;
  if (paid?.paid) {
    account.findBill(db, paid.bill_id).status = 'Paid';
    surroundings.payment_request = null;
  }
  if (surroundings.payment_request) return;
  const [bill] = account.findAwaitingPayment(db, account.findCustomerByPhone(db, number));
  if (!bill) return;
  const { bill_id, total_due } = bill;
  surroundings.payment_request = paymentRequest.of<PaymentRequest>({ bill_id, amount_due: total_due });
}
