/** Functions on the accounts: the agent's 13 tools, initial actions, checks of the end. Order and words are those of the original. */
import { method } from '../python/calls.ts';
import { typeError, valueError } from '../python/errors.ts';
import { formatFixed, str } from '../python/format.ts';
import { attributeError, isEqual, isLess, isNumber, isTrue, lower, toFloat } from '../python/operations.ts';
import { type PyValue, typeName } from '../python/values.ts';
import type { Accounts, Bill, Customer, Line, Plan } from './account-model.ts';
import * as model from './account-model.ts';

/** Account side of an episode. */
export interface AccountState {
  readonly db: Accounts;
  /** Bills that were made so far: the original draws their ids at random, here they are counted. */
  newBills: number;
}

/** Date of every episode, and the ones that follow from it. */
const TODAY = '2025-02-25';
const CYCLE_END = '2025-02-28';
const NEXT_BILL = {
  period_start: '2025-03-01',
  period_end: '2025-03-31',
  issue_date: '2025-03-01',
  due_date: '2025-03-15',
};
const LAST_BILL = {
  period_start: '2025-01-01',
  period_end: '2025-01-31',
  issue_date: '2025-01-01',
  due_date: '2025-01-15',
};

/** Functions by name; the first 13 are tools. */
export const methods = {
  get_customer_by_phone: method<AccountState>('phone_number', ({ db }, phone) => findCustomerByPhone(db, phone!)),
  get_customer_by_id: method<AccountState>('customer_id', ({ db }, id) => findCustomer(db, id!)),
  get_customer_by_name: method<AccountState>('full_name dob', ({ db }, name, birth) => {
    const isNamed = (customer: Customer) => lower(customer.full_name) === lower(name!);
    return db.customers.filter((customer) => isNamed(customer) && isEqual(customer.date_of_birth, birth!));
  }),
  get_details_by_id: method<AccountState>('id', ({ db }, id) => findDetails(db, id!)),
  suspend_line: method<AccountState>('customer_id line_id reason', ({ db }, customerId, lineId) => {
    const line = findLineOf(db, customerId!, lineId!);
    if (line.status !== 'Active') throw valueError('Line must be active to suspend');
    line.status = 'Suspended';
    line.suspension_start_date = TODAY;
    return answer('Line suspended successfully. $5/month holding fee will apply.', line);
  }),
  resume_line: method<AccountState>('customer_id line_id', ({ db }, customerId, lineId) => {
    const line = findLineOf(db, customerId!, lineId!);
    if (line.status !== 'Suspended' && line.status !== 'Pending Activation') {
      throw valueError('Line must be suspended to resume');
    }
    line.status = 'Active';
    line.suspension_start_date = null;
    return answer('Line resumed successfully', line);
  }),
  get_bills_for_customer: method<AccountState>(
    'customer_id limit',
    ({ db }, customerId, limit) => {
      const bills = findBillsOf(db, findCustomer(db, customerId!));
      const newestFirst = (a: Bill, b: Bill) =>
        Number(a.issue_date < b.issue_date) - Number(a.issue_date > b.issue_date);
      return takeFirst(bills.sort(newestFirst), limit!);
    },
    { limit: 12n },
  ),
  send_payment_request: method<AccountState>('customer_id bill_id', ({ db }, customerId, billId) => {
    const customer = findCustomer(db, customerId!);
    if (findAwaitingPayment(db, customer).length > 0) {
      throw valueError('A bill is already awaiting payment for this customer');
    }
    if (!customer.bill_ids.some((id) => isEqual(id, billId!))) {
      throw valueError(`Bill ${str(billId!)} not found for customer ${str(customerId!)}`);
    }
    const bill = findBill(db, billId!);
    bill.status = 'Awaiting Payment';
    return `Payment request sent to the customer for bill ${bill.bill_id}`;
  }),
  get_data_usage: method<AccountState>('customer_id line_id', ({ db }, customerId, lineId) => {
    const line = findLineOf(db, customerId!, lineId!);
    const plan = findPlan(db, line.plan_id);
    return new Map<string, PyValue>([
      ['line_id', lineId!],
      ['data_used_gb', line.data_used_gb],
      ['data_limit_gb', plan.data_limit_gb],
      ['data_refueling_gb', line.data_refueling_gb],
      ['cycle_end_date', CYCLE_END],
    ]);
  }),
  enable_roaming: method<AccountState>('customer_id line_id', ({ db }, customerId, lineId) => {
    return setRoaming(findLineOf(db, customerId!, lineId!), true);
  }),
  disable_roaming: method<AccountState>('customer_id line_id', ({ db }, customerId, lineId) => {
    return setRoaming(findLineOf(db, customerId!, lineId!), false);
  }),
  transfer_to_human_agents: method<AccountState>('summary', () => 'Transfer successful'),
  refuel_data: method<AccountState>('customer_id line_id gb_amount', (state, customerId, lineId, amount) => {
    return refuelData(state, customerId!, lineId!, amount!);
  }),

  set_data_usage: method<AccountState>('customer_id line_id data_used_gb', ({ db }, customerId, lineId, used) => {
    findLineOf(db, customerId!, lineId!).data_used_gb = used!;
    return `Data usage set to ${str(used!)} GB for line ${str(lineId!)}`;
  }),
  suspend_line_for_overdue_bill: method<AccountState>(
    'customer_id line_id new_bill_id contract_ended',
    ({ db }, customerId, lineId, billId, hasEnded) => suspendForBill(db, customerId!, lineId!, billId!, hasEnded!),
  ),

  assert_data_refueling_amount: method<AccountState>(
    'customer_id line_id expected_amount',
    ({ db }, customerId, lineId, expected) => {
      return Math.abs(findLineOf(db, customerId!, lineId!).data_refueling_gb - floatOf(expected!)) < 1e-6;
    },
  ),
  assert_line_status: method<AccountState>(
    'customer_id line_id expected_status',
    ({ db }, customerId, lineId, expected) => isEqual(findLineOf(db, customerId!, lineId!).status, expected!),
  ),
  assert_overdue_bill_exists: method<AccountState>('customer_id overdue_bill_id', ({ db }, customerId, billId) => {
    const customer = findCustomer(db, customerId!);
    if (!customer.bill_ids.some((id) => isEqual(id, billId!))) {
      throw valueError(`Overdue bill ${str(billId!)} not found`);
    }
    if (findBill(db, billId!).status !== 'Overdue') throw valueError(`Overdue bill ${str(billId!)} is not overdue`);
    return true;
  }),
  assert_no_overdue_bill: method<AccountState>('overdue_bill_id', ({ db }, billId) => {
    const bill = db.bills.find(({ bill_id }) => isEqual(bill_id, billId!));
    return bill === undefined || bill.status === 'Paid';
  }),
};

/** Finds the customer whose own number, or a line's number, is given. @throws {PyError} */
export function findCustomerByPhone(db: Accounts, phone: PyValue): Customer {
  for (const customer of db.customers) {
    if (isEqual(customer.phone_number, phone)) return customer;
    for (const id of customer.line_ids) if (isEqual(findLine(db, id).phone_number, phone)) return customer;
  }
  throw valueError(`Customer with phone number ${str(phone)} not found`);
}

/** Finds the line of a phone number. @throws {PyError} */
export function findLineByPhone(db: Accounts, phone: PyValue): Line {
  const line = db.lines.find(({ phone_number }) => isEqual(phone_number, phone));
  if (!line) throw valueError(`Line with phone number ${str(phone)} not found`);
  return line;
}

/** Finds a plan. @throws {PyError} */
export function findPlan(db: Accounts, id: PyValue): Plan {
  return findById(db.plans, 'plan_id', id, 'Plan');
}

/** Finds a bill. @throws {PyError} */
export function findBill(db: Accounts, id: PyValue): Bill {
  return findById(db.bills, 'bill_id', id, 'Bill');
}

/** Bills of a customer that await payment. */
export function findAwaitingPayment(db: Accounts, customer: Customer): Bill[] {
  return findBillsOf(db, customer).filter(({ status }) => status === 'Awaiting Payment');
}

function findCustomer(db: Accounts, id: PyValue): Customer {
  return findById(db.customers, 'customer_id', id, 'Customer');
}

function findLine(db: Accounts, id: PyValue): Line {
  return findById(db.lines, 'line_id', id, 'Line');
}

function findById<K extends string, T extends Readonly<Record<K, string>>>(
  rows: readonly T[],
  key: K,
  id: PyValue,
  title: string,
): T {
  const row = rows.find((one) => isEqual(one[key], id));
  if (!row) throw valueError(`${title} with ID ${str(id)} not found`);
  return row;
}

function findDetails(db: Accounts, id: PyValue): PyValue {
  if (typeof id !== 'string') throw attributeError(id, 'startswith');
  switch (id[0]) {
    case 'L':
      return findLine(db, id);
    case 'D':
      return findById(db.devices, 'device_id', id, 'Device');
    case 'B':
      return findBill(db, id);
    case 'C':
      return findCustomer(db, id);
    case 'P':
      return findPlan(db, id);
    default:
      throw valueError(`Unknown ID format or type: ${id}`);
  }
}

/** Line that a customer owns. @throws {PyError} */
function findLineOf(db: Accounts, customerId: PyValue, lineId: PyValue): Line {
  const customer = findCustomer(db, customerId);
  if (!customer.line_ids.some((id) => isEqual(id, lineId))) {
    throw valueError(`Line ${str(lineId)} not found for customer ${str(customerId)}`);
  }
  return findLine(db, lineId);
}

function findBillsOf(db: Accounts, customer: Customer): Bill[] {
  return customer.bill_ids.map((id) => findBill(db, id));
}

function answer(message: string, line: Line): PyValue {
  return new Map<string, PyValue>([
    ['message', message],
    ['line', line],
  ]);
}

/** `rows[:limit]`. @throws {PyError} for a limit that is no index */
function takeFirst<T>(rows: readonly T[], limit: PyValue): T[] {
  if (limit === null) return [...rows];
  if (typeof limit !== 'bigint' && typeof limit !== 'boolean') {
    throw typeError('slice indices must be integers or None or have an __index__ method');
  }
  return rows.slice(0, Number(limit));
}

function setRoaming(line: Line, isOn: boolean): string {
  const word = isOn ? 'enabled' : 'disabled';
  if (line.roaming_enabled === isOn) return `Roaming was already ${word}`;
  line.roaming_enabled = isOn;
  return `Roaming ${word} successfully`;
}

function refuelData(state: AccountState, customerId: PyValue, lineId: PyValue, amount: PyValue): PyValue {
  const { db } = state;
  const line = findLineOf(db, customerId, lineId);
  if (isLess(amount, 0n, '<=') || isEqual(amount, 0n)) throw valueError('Refuel amount must be positive');
  const price = findPlan(db, line.plan_id).data_refueling_price_per_gb;
  const charge = floatOf(amount) * price;
  line.data_refueling_gb += floatOf(amount); // stays if the charge fails
  addCharge(state, customerId, charge, `Data refueling: ${str(amount)} GB at $${str(price)}/GB`);
  const cost = `$${formatFixed(charge, 2)}`;
  return new Map<string, PyValue>([
    ['message', `Successfully added ${str(amount)} GB of data for line ${str(lineId)} for ${cost}`],
    ['new_data_refueling_gb', line.data_refueling_gb],
    ['charge', charge],
  ]);
}

/** Adds a charge to the customer's draft of the next bill; makes one where there is none. */
function addCharge(state: AccountState, customerId: PyValue, amount: number, description: string): void {
  const { db } = state;
  const customer = findCustomer(db, customerId);
  let draft = findBillsOf(db, customer).find(({ status }) => status === 'Draft');
  if (!draft) {
    const id = `B${(++state.newBills).toString(16).padStart(8, '0')}`;
    draft = model.bill.of<Bill>({ bill_id: id, customer_id: customerId, total_due: 0n, ...NEXT_BILL });
    db.bills.push(draft);
    customer.bill_ids.push(id);
  }
  draft.line_items.push(model.lineItem.of({ description, amount, date: TODAY, item_type: 'Charge' }));
  draft.total_due += amount;
}

function suspendForBill(
  db: Accounts,
  customerId: PyValue,
  lineId: PyValue,
  billId: PyValue,
  hasEnded: PyValue,
): string {
  const line = findLine(db, lineId);
  if (line.status !== 'Active') throw valueError('Line must be active to suspend for unpaid bill');
  const amount = findPlan(db, line.plan_id).price_per_month;
  if (amount <= 0) throw valueError('Amount must be positive for overdue bill');
  const customer = findCustomer(db, customerId);
  if (findBillsOf(db, customer).some(({ status }) => status === 'Overdue')) {
    throw valueError('Customer already has an overdue bill');
  }
  const description = `Charge for line ${line.line_id}`;
  const bill = model.bill.of<Bill>({
    bill_id: billId,
    customer_id: customerId,
    total_due: amount,
    status: 'Overdue',
    ...LAST_BILL,
  });
  bill.line_items.push(model.lineItem.of({ description, amount, date: TODAY, item_type: 'Charge' }));
  db.bills.push(bill);
  customer.bill_ids.push(bill.bill_id);
  line.status = 'Suspended';
  line.suspension_start_date = TODAY;
  if (isTrue(hasEnded)) line.contract_end_date = LAST_BILL.period_end;
  return `Line ${str(lineId)} suspended for unpaid bill ${bill.bill_id}. Contract ended: ${str(hasEnded)}`;
}

/** Number in arithmetic with a float. @throws {PyError} */
function floatOf(value: PyValue): number {
  if (!isNumber(value)) throw typeError(`unsupported operand type(s) for -: 'float' and '${typeName(value)}'`);
  return toFloat(typeof value === 'boolean' ? BigInt(value) : value);
}
