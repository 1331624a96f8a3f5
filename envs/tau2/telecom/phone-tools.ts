/** Tools of the user: 30 functions of the phone. Order and words are those of the original. */
import { method } from '../python/calls.ts';
import { repr, str } from '../python/format.ts';
import { attributeError, lookUp, lower } from '../python/operations.ts';
import { fieldsOf, type PyValue } from '../python/values.ts';
import {
  canSendMms,
  formatSpeed,
  formatStatusBar,
  isGranted,
  measureSpeed,
  readApn,
  searchNetwork,
  simStatus,
} from './network.ts';
import {
  type ApnSettings,
  apnSettings,
  type Device,
  NETWORK_MODES,
  type PhoneData,
  type VpnDetails,
} from './phone-model.ts';

/** User's side of an episode. */
export interface PhoneState {
  readonly db: PhoneData;
  /** Details that each VPN connection of the episode has: one object, so what breaks them breaks later connections too. */
  readonly vpn: VpnDetails;
}

const SIM_TEXTS: Readonly<Record<Device['sim_card_status'], string>> = {
  active: 'Your SIM card is active and working.',
  missing: 'No SIM card detected in the phone.',
  locked_pin: 'The SIM card is locked with a PIN code.',
  locked_puk: 'The SIM card is locked with a PUK code.',
};

/** Tools by name. */
export const methods = {
  check_status_bar: method<PhoneState>('', ({ db }) => formatStatusBar(db)),
  check_network_status: method<PhoneState>('', ({ db }) => formatNetwork(db.device)),
  check_network_mode_preference: method<PhoneState>('', ({ db }) => {
    return `Network Mode Preference: ${readMode(db.device.network_mode_preference)}`;
  }),
  set_network_mode_preference: method<PhoneState>('mode', ({ db }, mode) => setMode(db, mode!)),
  run_speed_test: method<PhoneState>('', ({ db }) => formatSpeed(measureSpeed(db))),
  toggle_airplane_mode: method<PhoneState>('', ({ db }) => {
    return withStatusBar(db, `Airplane Mode is now ${onOff(toggleAirplaneMode(db))}.`);
  }),
  check_sim_status: method<PhoneState>('', ({ db }) => SIM_TEXTS[simStatus(db.device)]),
  reseat_sim_card: method<PhoneState>('', ({ db }) => {
    db.device.sim_card_missing = false;
    searchNetwork(db);
    return withStatusBar(db, 'SIM card re-seated successfully.');
  }),
  toggle_data: method<PhoneState>('', ({ db }) => {
    return withStatusBar(db, `Mobile Data is now ${onOff(toggleData(db))}.`);
  }),
  toggle_roaming: method<PhoneState>('', ({ db }) => {
    return withStatusBar(db, `Data Roaming is now ${onOff(toggleRoaming(db))}.`);
  }),
  check_data_restriction_status: method<PhoneState>('', ({ db }) => {
    return db.device.data_saver_mode ? 'Data Saver mode is ON (limits data usage).' : 'Data Saver mode is OFF.';
  }),
  toggle_data_saver_mode: method<PhoneState>('', ({ db }) => {
    db.device.data_saver_mode = !db.device.data_saver_mode;
    return withStatusBar(db, `Data Saver Mode is now ${onOff(db.device.data_saver_mode)}.`);
  }),
  check_apn_settings: method<PhoneState>('', ({ db }) => {
    const { apn_name, mmsc_url } = readApn(db.device, 'model_copy');
    const url = mmsc_url || 'Not Set';
    const advice = '(These are technical settings, usually best left unchanged.)';
    return `Current APN Name: ${apn_name}\nMMSC URL (for picture messages): ${url}\n${advice}`;
  }),
  set_apn_settings: method<PhoneState>('apn_settings', ({ db }, settings) => {
    const apn = settings instanceof Map ? apnSettings.create<ApnSettings>(settings) : settings!;
    db.device.active_apn_settings = apn; // stays where it is something else, and then fails
    const text = `APN settings set to: ${readApn(db.device, 'apn_name').apn_name}`;
    searchNetwork(db);
    return withStatusBar(db, text);
  }),
  reset_apn_settings: method<PhoneState>('', ({ db }) => {
    readApn(db.device, 'reset_at_reboot').reset_at_reboot = true;
    searchNetwork(db);
    return withStatusBar(db, 'APN settings will reset at reboot.');
  }),
  check_wifi_status: method<PhoneState>('', ({ db: { device } }) => {
    if (!device.wifi_enabled) return 'Wi-Fi is turned OFF.';
    if (!device.wifi_connected) return 'Wi-Fi is ON but not connected to any network.';
    const signal = `Signal strength: ${device.wifi_signal_strength}.`;
    return `Wi-Fi is ON and connected to '${str(device.wifi_ssid)}'. ${signal}`;
  }),
  toggle_wifi: method<PhoneState>('', ({ db }) => {
    const { device } = db;
    if (device.airplane_mode) return withStatusBar(db, 'Cannot change Wi-Fi settings while Airplane Mode is ON.');
    device.wifi_enabled = !device.wifi_enabled;
    if (!device.wifi_enabled) dropWifi(device);
    return withStatusBar(db, `Wi-Fi is now ${onOff(device.wifi_enabled)}.`);
  }),
  check_wifi_calling_status: method<PhoneState>('', ({ db }) => {
    return `Wi-Fi Calling is currently turned ${onOff(db.device.wifi_calling_enabled)}.`;
  }),
  toggle_wifi_calling: method<PhoneState>('', ({ db }) => {
    db.device.wifi_calling_enabled = !db.device.wifi_calling_enabled;
    return withStatusBar(db, `Wi-Fi Calling is now ${onOff(db.device.wifi_calling_enabled)}.`);
  }),
  check_vpn_status: method<PhoneState>('', ({ db }) => formatVpn(db.device)),
  connect_vpn: method<PhoneState>('', (state) => {
    if (!connectVpn(state)) return 'VPN already connected.';
    return withStatusBar(state.db, 'VPN connected successfully.');
  }),
  disconnect_vpn: method<PhoneState>('', ({ db }) => {
    const wasConnected = db.device.vpn_connected;
    dropVpn(db.device);
    return withStatusBar(
      db,
      wasConnected ? 'VPN disconnected successfully.' : 'No active VPN connection to disconnect.',
    );
  }),
  check_installed_apps: method<PhoneState>('', ({ db }) => {
    return `The following apps are installed on the phone: ${[...db.device.app_statuses.keys()].join(', ')}`;
  }),
  check_app_status: method<PhoneState>('app_name', ({ db }, name) => {
    const granted = findGranted(db.device, name!);
    if (!granted) return `App '${str(name!)}' not found on this phone.`;
    const title = `Status for App: ${str(name!)}`;
    if (granted.length === 0) return `${title}\n - Permissions: None granted.`;
    return [title, ' - Permissions Granted:', ...granted.map((one) => `   - ${one}`)].join('\n');
  }),
  check_app_permissions: method<PhoneState>('app_name', ({ db }, name) => {
    const granted = findGranted(db.device, name!);
    if (!granted) return `App '${str(name!)}' not found on this phone.`;
    if (granted.length === 0) return `App '${str(name!)}' currently has no permissions granted.`;
    return `App '${str(name!)}' has permission for: ${granted.join(', ')}.`;
  }),
  grant_app_permission: method<PhoneState>('app_name permission', ({ db }, name, permission) => {
    return withStatusBar(db, grantPermission(db.device, name!, permission!));
  }),
  can_send_mms: method<PhoneState>('', ({ db }) => {
    return `Your messaging app ${canSendMms(db) ? 'can' : 'cannot'} send MMS messages.`;
  }),
  reboot_device: method<PhoneState>('', ({ db }) => {
    const lines: string[] = [];
    if (readApn(db.device, 'reset_at_reboot').reset_at_reboot) {
      lines.push('Resetting APN settings...');
      db.device.active_apn_settings = apnSettings.of({});
    }
    lines.push('Restarting network services...');
    db.device.network_connection_status = 'searching';
    searchNetwork(db);
    return withStatusBar(db, lines.join('\n'));
  }),
  check_payment_request: method<PhoneState>('', ({ db: { surroundings } }) => {
    const request = surroundings.payment_request;
    if (!request) return 'No payment request has been made.';
    return `You have a payment request for bill ${request.bill_id} of ${str(request.amount_due)} USD.`;
  }),
  make_payment: method<PhoneState>('', ({ db: { surroundings } }) => {
    const request = surroundings.payment_request;
    if (!request) return 'You do not have a payment request.';
    request.paid = true;
    return `Payment of ${str(request.amount_due)} USD has been made for bill ${request.bill_id}.`;
  }),
};

/** Text of a switch. */
export function onOff(isOn: boolean): 'ON' | 'OFF' {
  return isOn ? 'ON' : 'OFF';
}

function withStatusBar(phone: PhoneData, text: string): string {
  return `${text}\n${formatStatusBar(phone)}`;
}

/** Toggles airplane mode; gives the new state. On or off, Wi-Fi is dropped; the VPN is dropped by turning it on. */
export function toggleAirplaneMode(phone: PhoneData): boolean {
  const { device } = phone;
  device.airplane_mode = !device.airplane_mode;
  if (device.airplane_mode) {
    dropWifi(device);
    dropVpn(device);
  } else {
    device.network_connection_status = 'searching';
    if (device.wifi_enabled) dropWifi(device);
  }
  searchNetwork(phone);
  return device.airplane_mode;
}

/** Toggles mobile data; gives the new state. */
export function toggleData(phone: PhoneData): boolean {
  const { device } = phone;
  device.data_enabled = !device.data_enabled;
  searchNetwork(phone);
  return device.data_enabled;
}

/** Toggles roaming; gives the new state. */
export function toggleRoaming(phone: PhoneData): boolean {
  const { device } = phone;
  device.roaming_enabled = !device.roaming_enabled;
  searchNetwork(phone);
  return device.roaming_enabled;
}

/** Connects the VPN; false where it was connected. */
export function connectVpn({ db: { device }, vpn }: PhoneState): boolean {
  if (device.vpn_connected) return false;
  device.vpn_connected = true;
  device.vpn_details = vpn;
  return true;
}

function dropVpn(device: Device): void {
  if (!device.vpn_connected) return;
  device.vpn_connected = false;
  device.vpn_details = null;
}

function dropWifi(device: Device): void {
  device.wifi_connected = false;
  device.wifi_ssid = null;
  device.wifi_signal_strength = 'none';
}

function formatNetwork(device: Device): string {
  const lines = [
    `Airplane Mode: ${onOff(device.airplane_mode)}`,
    `SIM Card Status: ${simStatus(device)}`,
    `Cellular Connection: ${device.network_connection_status}`,
    `Cellular Signal: ${device.network_signal_strength}`,
    `Cellular Network Type: ${device.network_technology_connected}`,
    `Mobile Data Enabled: ${yesNo(device.data_enabled)}`,
    `Data Roaming Enabled: ${yesNo(device.roaming_enabled)}`,
    `Wi-Fi Radio: ${onOff(device.wifi_enabled)}`,
    `Wi-Fi Connected: ${yesNo(device.wifi_connected)}`,
  ];
  if (device.wifi_connected) lines.push(`Connected Wi-Fi Network: ${str(device.wifi_ssid)}`);
  return lines.join('\n');
}

function yesNo(isYes: boolean): 'Yes' | 'No' {
  return isYes ? 'Yes' : 'No';
}

/** Text of a preference. @throws {PyError} for a value that a wrong call has left behind */
function readMode(mode: PyValue): string {
  if (typeof mode !== 'string') throw attributeError(mode, 'value');
  return mode;
}

/** Sets the preferred mode. A text must be one of the modes; any other value is set, and fails afterwards. */
function setMode(phone: PhoneData, mode: PyValue): string {
  if (typeof mode !== 'string' || NETWORK_MODES.includes(mode)) {
    phone.device.network_mode_preference = mode;
    searchNetwork(phone);
    if (mode !== null) return withStatusBar(phone, `Preferred Network Mode set to: ${readMode(mode)}`);
  }
  const choices = `Please use one of: ${NETWORK_MODES.join(', ')}`;
  return withStatusBar(phone, `Failed to set network mode: '${str(mode)}' is not a valid option. ${choices}`);
}

function formatVpn(device: Device): string {
  if (!device.vpn_connected) {
    return device.vpn_enabled_setting
      ? 'VPN is turned ON in settings, but currently not connected.'
      : 'VPN is turned OFF.';
  }
  const details = device.vpn_details;
  if (!details) return 'VPN is ON and connected (no specific details available).';
  // The original prints a Python dictionary with an enum's member in it.
  const performance = details.server_performance;
  const member = `<PerformanceLevel.${performance.toUpperCase()}: ${repr(performance)}>`;
  const fields = `'server_address': ${repr(details.server_address)}, 'protocol': ${repr(details.protocol)}`;
  return `VPN is ON and connected. Details: {${fields}, 'server_performance': ${member}}`;
}

/** Permissions that an app has; undefined where it is not installed. @throws {PyError} for a name without a hash */
function findGranted(device: Device, name: PyValue): string[] | undefined {
  const permissions = lookUp(device.app_statuses, name)?.permissions;
  if (!permissions) return undefined;
  const granted = fieldsOf(permissions).filter(([permission]) => isGranted(permissions, permission));
  return granted.map(([permission]) => permission.replaceAll('_', ' '));
}

function grantPermission(device: Device, name: PyValue, given: PyValue): string {
  const permissions = lookUp(device.app_statuses, name)?.permissions;
  const permission = lower(given);
  if (!permissions) return `Error. App '${str(name)}' not found. Cannot grant permission.`;
  if (!Object.hasOwn(permissions, permission)) {
    const known = repr(Object.keys(permissions));
    return `Error. Permission '${permission}' not tracked for app '${str(name)}', available permissions: ${known}`;
  }
  Reflect.set(permissions, permission, true);
  return `Success. Permission '${permission}' granted to app '${str(name)}'.`;
}
