/** Database of the user: the phone, and what surrounds it. */
import * as kind from '../python/model.ts';
import { type Field, type Kind, ModelType } from '../python/model.ts';
import type { Model, PyValue } from '../python/values.ts';

export type Technology = 'none' | '2G' | '3G' | '4G' | '5G';
export type Signal = 'none' | 'poor' | 'fair' | 'good' | 'excellent';

export interface ApnSettings extends Model {
  apn_name: 'internet' | 'broken';
  reset_at_reboot: boolean;
  mms_apn: string | null;
  mmsc_url: string | null;
}
export interface VpnDetails extends Model {
  server_address: string | null;
  protocol: string | null;
  server_performance: 'unknown' | Exclude<Signal, 'none'>;
}
export interface AppStatus extends Model {
  app_name: string;
  /** Permissions by name: whether each is granted. */
  permissions: Model;
}
/** Phone; the fields that a tool assigns hold whatever it was called with. */
export interface Device extends Model {
  sim_card_status: 'active' | 'missing' | 'locked_pin' | 'locked_puk';
  sim_card_missing: boolean;
  airplane_mode: boolean;
  network_signal_strength: Signal;
  network_technology_connected: Technology;
  network_connection_status: 'connected' | 'searching' | 'no_service' | 'emergency_only';
  battery_level: bigint;
  data_enabled: boolean;
  roaming_enabled: boolean;
  network_mode_preference: PyValue;
  active_apn_settings: PyValue;
  wifi_enabled: boolean;
  wifi_connected: boolean;
  wifi_ssid: string | null;
  wifi_signal_strength: Signal;
  wifi_calling_enabled: boolean;
  wifi_calling_mms_over_wifi: PyValue;
  data_saver_mode: boolean;
  vpn_enabled_setting: boolean;
  vpn_connected: boolean;
  vpn_details: VpnDetails | null;
  app_statuses: Map<string, AppStatus>;
}
export interface PaymentRequest extends Model {
  bill_id: string;
  amount_due: number;
  paid: boolean;
}
export interface Surroundings extends Model {
  name: PyValue;
  phone_number: PyValue;
  is_abroad: PyValue;
  roaming_allowed: boolean;
  signal_strength: Map<string, Signal>;
  mobile_data_usage_exceeded: boolean;
  line_active: boolean;
  payment_request: PaymentRequest | null;
}
export interface PhoneData extends Model {
  device: Device;
  surroundings: Surroundings;
}

/** Modes of the network that a user can prefer. */
export const NETWORK_MODES = ['4g_5g_preferred', '4g_only', '3g_only', '2g_only'];

const SIGNALS: readonly Signal[] = ['none', 'poor', 'fair', 'good', 'excellent'];
const signal = kind.literal(SIGNALS, 'enum');

function flag(value = false): Field {
  return kind.withDefault(kind.bool, () => value);
}

function choice(choices: readonly string[], byDefault: string): Field {
  return kind.withDefault(kind.literal(choices, 'enum'), () => byDefault);
}

function optionalText(byDefault: string | null): Field {
  return kind.withDefault(kind.orNone(kind.text), () => byDefault);
}

function record(type: ModelType): Field {
  return kind.withDefault(type.read, () => type.of({}));
}

export const apnSettings = new ModelType(
  'APNSettings',
  {
    apn_name: choice(['internet', 'broken'], 'internet'),
    reset_at_reboot: flag(),
    mms_apn: optionalText('mms'),
    mmsc_url: optionalText('http://mms.carrier.com/mms/wapenc'),
    mms_proxy: optionalText(null),
    mms_port: kind.optional(kind.int),
  },
  'forbid',
);
export const vpnDetails = new ModelType(
  'VpnDetails',
  {
    server_address: optionalText(null),
    protocol: optionalText(null),
    server_performance: choice(['unknown', 'poor', 'fair', 'good', 'excellent'], 'unknown'),
  },
  'forbid',
);
const appPermissions = new ModelType(
  'AppPermissions',
  { sms: flag(), storage: flag(), phone: flag(), network: flag() },
  'forbid',
);
const appStatus = new ModelType('AppStatus', { app_name: kind.text, permissions: record(appPermissions) }, 'forbid');
const appStatuses: Kind = kind.dictOf(appStatus.read);
const device = new ModelType(
  'MockPhoneAttributes',
  {
    sim_card_status: choice(['active', 'missing', 'locked_pin', 'locked_puk'], 'active'),
    sim_card_missing: flag(),
    airplane_mode: flag(),
    network_signal_strength: choice(SIGNALS, 'good'),
    network_technology_connected: choice(['none', '2G', '3G', '4G', '5G'], '5G'),
    network_connection_status: choice(['connected', 'searching', 'no_service', 'emergency_only'], 'connected'),
    battery_level: kind.withDefault(kind.int, () => 80n),
    data_enabled: flag(true),
    roaming_enabled: flag(),
    network_mode_preference: choice(NETWORK_MODES, '4g_5g_preferred'),
    active_apn_settings: record(apnSettings),
    wifi_enabled: flag(),
    wifi_connected: flag(),
    wifi_ssid: optionalText(null),
    wifi_signal_strength: kind.withDefault(signal, () => 'none'),
    wifi_calling_enabled: flag(),
    wifi_calling_mms_over_wifi: flag(),
    data_saver_mode: flag(),
    vpn_enabled_setting: flag(),
    vpn_connected: flag(),
    vpn_details: kind.optional(vpnDetails.read),
    app_statuses: appStatuses,
  },
  'forbid',
);
export const paymentRequest = new ModelType(
  'PaymentRequest',
  { bill_id: kind.text, amount_due: kind.float, paid: flag() },
  'forbid',
);
const surroundings = new ModelType(
  'UserSurroundings',
  {
    name: optionalText(null),
    phone_number: optionalText(null),
    is_abroad: flag(),
    roaming_allowed: flag(),
    signal_strength: kind.withDefault(kind.dictOf(signal), () => {
      return new Map([
        ['2G', 'poor'],
        ['3G', 'fair'],
        ['4G', 'good'],
        ['5G', 'excellent'],
      ]);
    }),
    mobile_data_usage_exceeded: flag(),
    line_active: flag(true),
    payment_request: kind.optional(paymentRequest.read),
  },
  'forbid',
);
export const phoneData = new ModelType('TelecomUserDB', { device: device.read, surroundings: record(surroundings) });
