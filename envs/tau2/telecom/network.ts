/** State of the phone's network, and what follows from it: mobile data, speed, picture messages, the status bar. */
import { formatFixed, roundFloat, str } from '../python/format.ts';
import { attributeError, isTrue, lookUp } from '../python/operations.ts';
import { Model } from '../python/values.ts';
import type { ApnSettings, Device, PhoneData, Signal, Technology } from './phone-model.ts';

const SIGNAL_ICONS: Readonly<Record<Signal, string>> = {
  none: '📵 No Signal',
  poor: '📶¹ Poor',
  fair: '📶² Fair',
  good: '📶³ Good',
  excellent: '📶⁴ Excellent',
};
/** Mean speeds in Mbps: halves of the sums of the slowest and the fastest. */
const SPEEDS: Readonly<Record<Technology, number>> = {
  none: 0,
  '2G': (0.1 + 0.4) / 2,
  '3G': (1 + 5) / 2,
  '4G': (10 + 100) / 2,
  '5G': (50 + 500) / 2,
};
const SIGNAL_FACTORS: Readonly<Record<Signal, number>> = { none: 0, poor: 0.2, fair: 0.5, good: 0.8, excellent: 1 };
/** Technology of a preference; others, which a wrong call can leave behind, get 4G. */
const PREFERRED: ReadonlyMap<string, Technology> = new Map([
  ['4g_5g_preferred', '5G'],
  ['3g_only', '3G'],
  ['2g_only', '2G'],
]);
/** Grades of a speed, each below its bound in Mbps. */
const GRADES = [
  [1, 'Very Poor', 'Connection is very slow. Basic web browsing might be difficult.'],
  [5, 'Poor', 'Connection is slow. Web browsing may be sluggish, streaming difficult.'],
  [25, 'Fair', 'Connection is okay for web browsing and some standard definition streaming.'],
  [100, 'Good', 'Connection is good for most activities, including HD streaming.'],
  [Number.POSITIVE_INFINITY, 'Excellent', 'Connection is very fast.'],
] as const;

/** SIM's status; a card that is not in its place is missing, whatever its status. */
export function simStatus(device: Device): Device['sim_card_status'] {
  return device.sim_card_missing ? 'missing' : device.sim_card_status;
}

/** APN's settings. @throws {PyError} where a wrong call has put something else there: an `AttributeError` that names `field` */
export function readApn(device: Device, field: string): ApnSettings {
  const settings = device.active_apn_settings;
  if (!(settings instanceof Model)) throw attributeError(settings, field);
  return settings as ApnSettings;
}

/** Searches the network: sets connection, technology and signal. @throws {PyError} where the APN's settings are none */
export function searchNetwork({ device, surroundings }: PhoneData): void {
  if (simStatus(device) === 'active') {
    const preference = device.network_mode_preference;
    const signals = surroundings.signal_strength;
    let technology = (typeof preference === 'string' ? PREFERRED.get(preference) : undefined) ?? '4G';
    if (technology === '5G' && (signals.get('5G') ?? 'none') === 'none') technology = '4G';
    connect(device, 'connected', technology, signals.get(technology) ?? 'none');
  } else disconnect(device);
  if (device.airplane_mode) disconnect(device);
  if (readApn(device, 'apn_name').apn_name === 'broken') disconnect(device);
  if (!surroundings.line_active) disconnect(device);
}

function disconnect(device: Device): void {
  connect(device, 'no_service', 'none', 'none');
}

function connect(
  device: Device,
  status: Device['network_connection_status'],
  technology: Technology,
  signal: Signal,
): void {
  device.network_connection_status = status;
  device.network_technology_connected = technology;
  device.network_signal_strength = signal;
}

/** True where mobile data works. */
export function hasMobileData({ device, surroundings }: PhoneData): boolean {
  if (device.airplane_mode || device.network_signal_strength === 'none') return false;
  if (device.network_connection_status === 'no_service') return false;
  if (isTrue(surroundings.is_abroad) && !(device.roaming_enabled && surroundings.roaming_allowed)) return false;
  return device.data_enabled && !surroundings.mobile_data_usage_exceeded;
}

/** Result of a speed test. */
export interface Speed {
  /** Megabits a second. */
  readonly mbps: number;
  readonly grade: string;
  readonly advice: string;
}

/** Measures the speed of mobile data; undefined without a connection. */
export function measureSpeed(phone: PhoneData): Speed | undefined {
  if (!hasMobileData(phone)) return undefined;
  const { device } = phone;
  const isSlowVpn = device.vpn_connected && device.vpn_details?.server_performance === 'poor';
  let factor = isSlowVpn ? 0.1 : 1;
  if (device.data_saver_mode) factor *= 0.2;
  const mean = SPEEDS[device.network_technology_connected];
  const mbps = roundFloat(mean * SIGNAL_FACTORS[device.network_signal_strength] * factor, 2);
  const [, grade, advice] = GRADES.find(([bound]) => mbps < bound)!;
  return { mbps, grade, advice };
}

/** Text of a speed test. */
export function formatSpeed(speed: Speed | undefined): string {
  if (!speed) return 'Speed test failed: No Connection.';
  return `Speed Test Result: ${formatFixed(speed.mbps, 2)} Mbps (${speed.grade}). ${speed.advice}`;
}

/** True where a picture message can be sent. @throws {PyError} where the APN's settings are none */
export function canSendMms(phone: PhoneData): boolean {
  const { device } = phone;
  if (!hasMobileData(phone)) return false;
  if (device.network_technology_connected === '2G') return false;
  if (device.wifi_calling_enabled && isTrue(device.wifi_calling_mms_over_wifi)) return false;
  if (readApn(device, 'mmsc_url').mmsc_url === null) return false;
  const permissions = lookUp(device.app_statuses, 'messaging')?.permissions;
  return permissions !== undefined && isGranted(permissions, 'storage') && isGranted(permissions, 'sms');
}

/** True where an app has a permission. */
export function isGranted(permissions: Model, name: string): boolean {
  return Reflect.get(permissions, name) === true;
}

/** Line with the status bar, which most answers of the phone end with. */
export function formatStatusBar({ device }: PhoneData): string {
  const icons: string[] = [];
  if (device.airplane_mode) icons.push('✈️ Airplane Mode');
  else {
    const technology = device.network_technology_connected;
    icons.push(SIGNAL_ICONS[device.network_signal_strength]);
    if (technology !== 'none') icons.push(technology);
    if (technology !== 'none' && device.data_enabled) {
      icons.push('📱 Data Enabled');
      if (device.data_saver_mode) icons.push('🔽 Data Saver');
    } else icons.push('📵 Data Disabled');
  }
  if (device.wifi_enabled && device.wifi_connected) {
    icons.push(device.wifi_ssid ? `📡 Connected to ${device.wifi_ssid}` : '📡 Enabled');
  }
  if (device.vpn_connected) icons.push('🔒 VPN Connected');
  icons.push(`🔋 ${str(device.battery_level)}%`);
  return `Status Bar: ${icons.join(' | ')}`;
}
