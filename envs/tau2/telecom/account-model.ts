/** Database of the carrier: plans, customers, lines, bills, devices. It is small, so an episode has a copy of its own. */
import * as kind from '../python/model.ts';
import { type Kind, ModelType } from '../python/model.ts';
import type { Model, PyValue } from '../python/values.ts';

export interface Plan extends Model {
  plan_id: string;
  data_limit_gb: number;
  price_per_month: number;
  data_refueling_price_per_gb: number;
}
/** Line; the fields that an initial action assigns hold whatever it was called with. */
export interface Line extends Model {
  line_id: string;
  phone_number: string;
  status: 'Active' | 'Suspended' | 'Pending Activation' | 'Closed';
  plan_id: string;
  data_used_gb: PyValue;
  data_refueling_gb: number;
  roaming_enabled: boolean;
  contract_end_date: string | null;
  suspension_start_date: string | null;
}
export interface LineItem extends Model {
  description: string;
  amount: number;
  date: string;
  item_type: string;
}
export interface Bill extends Model {
  bill_id: string;
  customer_id: string;
  issue_date: string;
  total_due: number;
  line_items: LineItem[];
  status: 'Draft' | 'Issued' | 'Awaiting Payment' | 'Paid' | 'Overdue' | 'Disputed';
}
export interface Customer extends Model {
  customer_id: string;
  full_name: string;
  date_of_birth: string;
  phone_number: string;
  line_ids: string[];
  bill_ids: string[];
}
export interface Device extends Model {
  device_id: string;
}
export interface Accounts extends Model {
  plans: Plan[];
  customers: Customer[];
  lines: Line[];
  bills: Bill[];
  devices: Device[];
}

/** Date as its text `2025-02-25`. */
const date = kind.text;
/** Time as Python prints it: `2025-01-20 14:30:00`; the file has a `T`. */
const time: Kind = (value, at, report) => {
  const given = kind.text(value, at, report);
  return typeof given === 'string' ? given.replace('T', ' ') : given;
};

function flag(value: boolean): kind.Field {
  return kind.withDefault(kind.bool, () => value);
}

function list(of: Kind): kind.Field {
  return kind.withDefault(kind.listOf(of), () => []);
}

function state(choices: readonly string[], byDefault: string): kind.Field {
  return kind.withDefault(kind.literal(choices, 'enum'), () => byDefault);
}

function amount(): kind.Field {
  return kind.withDefault(kind.float, () => 0);
}

const address = new ModelType(
  'Address',
  { street: kind.text, city: kind.text, state: kind.text, zip_code: kind.text },
  'forbid',
);
const plan = new ModelType(
  'Plan',
  {
    plan_id: kind.text,
    name: kind.text,
    data_limit_gb: kind.float,
    price_per_month: kind.float,
    data_refueling_price_per_gb: kind.float,
  },
  'forbid',
);
const device = new ModelType(
  'Device',
  {
    device_id: kind.text,
    device_type: kind.literal(['phone', 'router', 'tablet', 'watch', 'other'], 'enum'),
    model: kind.text,
    imei: kind.optional(kind.text),
    is_esim_capable: kind.bool,
    activated: flag(false),
    activation_date: kind.optional(time),
    last_esim_transfer_date: kind.optional(time),
  },
  'forbid',
);
const line = new ModelType(
  'Line',
  {
    line_id: kind.text,
    phone_number: kind.text,
    status: state(['Active', 'Suspended', 'Pending Activation', 'Closed'], 'Pending Activation'),
    plan_id: kind.text,
    device_id: kind.optional(kind.text),
    data_used_gb: amount(),
    data_refueling_gb: amount(),
    roaming_enabled: flag(false),
    contract_end_date: kind.optional(date),
    last_plan_change_date: kind.optional(date),
    last_sim_replacement_date: kind.optional(date),
    suspension_start_date: kind.optional(date),
  },
  'forbid',
);
export const lineItem = new ModelType(
  'LineItem',
  { description: kind.text, amount: kind.float, date, item_type: kind.text },
  'forbid',
);
export const bill = new ModelType(
  'Bill',
  {
    bill_id: kind.text,
    customer_id: kind.text,
    period_start: date,
    period_end: date,
    issue_date: date,
    total_due: kind.float,
    due_date: date,
    line_items: list(lineItem.read),
    status: state(['Draft', 'Issued', 'Awaiting Payment', 'Paid', 'Overdue', 'Disputed'], 'Draft'),
  },
  'forbid',
);
const paymentMethod = new ModelType(
  'PaymentMethod',
  {
    method_type: kind.literal(['Credit Card', 'Debit Card', 'PayPal'], 'enum'),
    account_number_last_4: kind.text,
    expiration_date: kind.text,
  },
  'forbid',
);
const customer = new ModelType(
  'Customer',
  {
    customer_id: kind.text,
    full_name: kind.text,
    date_of_birth: kind.text,
    email: kind.text,
    phone_number: kind.text,
    address: address.read,
    account_status: state(['Active', 'Suspended', 'Pending Verification', 'Closed'], 'Pending Verification'),
    payment_methods: list(paymentMethod.read),
    line_ids: list(kind.text),
    bill_ids: list(kind.text),
    created_at: kind.withDefault(time, () => '2025-01-01'),
    last_extension_date: kind.optional(date),
    goodwill_credit_used_this_year: amount(),
  },
  'forbid',
);
export const accounts = new ModelType('TelecomDB', {
  plans: list(plan.read),
  customers: list(customer.read),
  lines: list(line.read),
  bills: list(bill.read),
  devices: list(device.read),
});
