/** Functions of the phone that are no tools: they prepare an episode, or check its end. */
import { method } from '../python/calls.ts';
import { PyError, valueError } from '../python/errors.ts';
import { repr, str } from '../python/format.ts';
import { isEqual, isLess, isTrue, lookUp, lower } from '../python/operations.ts';
import type { PyValue } from '../python/values.ts';
import { canSendMms, hasMobileData, measureSpeed, readApn, searchNetwork } from './network.ts';
import { connectVpn, onOff, type PhoneState, toggleAirplaneMode, toggleData, toggleRoaming } from './phone-tools.ts';

/** Initial actions by name. A switch is toggled, twice where it stood right: a search of the network belongs to it. */
const setup = {
  set_user_info: method<PhoneState>('name phone_number', ({ db: { surroundings } }, name, phone) => {
    surroundings.name = name!;
    surroundings.phone_number = phone!;
    return null;
  }),
  set_user_location: method<PhoneState>('abroad', ({ db }, isAbroad) => {
    db.surroundings.is_abroad = isAbroad!;
    return null;
  }),
  simulate_network_search: method<PhoneState>('', ({ db }) => {
    searchNetwork(db);
    return null;
  }),
  turn_airplane_mode_on: method<PhoneState>('', ({ db }) => {
    return turn('Airplane Mode', true, () => toggleAirplaneMode(db));
  }),
  turn_airplane_mode_off: method<PhoneState>('', ({ db }) => {
    return turn('Airplane Mode', false, () => toggleAirplaneMode(db));
  }),
  turn_data_on: method<PhoneState>('', ({ db }) => {
    db.device.data_enabled = true;
    return 'Data connection restored.';
  }),
  turn_data_off: method<PhoneState>('', ({ db }) => {
    turn('', false, () => toggleData(db));
    return 'Data connection broken.';
  }),
  turn_roaming_on: method<PhoneState>('', ({ db }) => turn('Data Roaming', true, () => toggleRoaming(db))),
  turn_roaming_off: method<PhoneState>('', ({ db }) => turn('Data Roaming', false, () => toggleRoaming(db))),
  turn_data_saver_mode_on: method<PhoneState>('', ({ db }) => {
    db.device.data_saver_mode = true;
    return 'Data Saver Mode is now ON.';
  }),
  turn_data_saver_mode_off: method<PhoneState>('', ({ db }) => {
    db.device.data_saver_mode = false;
    return 'Data Saver Mode is now OFF.';
  }),
  unseat_sim_card: method<PhoneState>('', ({ db }) => {
    db.device.sim_card_missing = true;
    searchNetwork(db);
    return 'SIM card un-seated successfully.';
  }),
  lock_sim_card: method<PhoneState>('mode', ({ db }, mode) => {
    if (mode === 'pin' || mode === 'puk') db.device.sim_card_status = `locked_${mode}`;
    searchNetwork(db);
    return `SIM card locked successfully in ${str(mode!)} mode.`;
  }),
  break_apn_settings: method<PhoneState>('', ({ db }) => {
    readApn(db.device, 'apn_name').apn_name = 'broken';
    searchNetwork(db);
    return 'APN settings broken. Please call reset_apn_settings() to fix.';
  }),
  break_apn_mms_setting: method<PhoneState>('', ({ db }) => {
    readApn(db.device, 'mmsc_url').mmsc_url = null;
    return 'APN MMS setting broken. Please call reset_apn_settings() to fix.';
  }),
  set_wifi_calling: method<PhoneState>(
    'enabled mms_over_wifi',
    ({ db: { device } }, enabled, overWifi) => {
      if (!isEqual(device.wifi_calling_enabled, enabled!)) device.wifi_calling_enabled = !device.wifi_calling_enabled;
      const text = `Wi-Fi Calling is now ${onOff(isTrue(enabled!))}.`;
      if (overWifi === null) return text;
      device.wifi_calling_mms_over_wifi = overWifi!;
      return `${text}\nMMS over Wi-Fi is now ${onOff(isTrue(overWifi!))}.`;
    },
    { mms_over_wifi: null },
  ),
  break_vpn: method<PhoneState>('', (state) => {
    connectVpn(state);
    const details = state.db.device.vpn_details;
    if (!details) throw new PyError('AttributeError', "'NoneType' object has no attribute 'server_performance'");
    details.server_performance = 'poor';
    return 'VPN connection broken.';
  }),
  remove_app_permission: method<PhoneState>('app_name permission', ({ db }, name, given) => {
    const permissions = lookUp(db.device.app_statuses, name!)?.permissions;
    const permission = lower(given!);
    if (!permissions) return [false, `App '${str(name!)}' not found. Cannot remove permission.`];
    if (!Object.hasOwn(permissions, permission)) {
      return [false, `Permission '${permission}' not tracked for app '${str(name!)}'.`];
    }
    Reflect.set(permissions, permission, false);
    return [true, `Permission '${permission}' removed from app '${str(name!)}'.`];
  }),
};

const STATUSES = ['connected', 'searching', 'no_service', 'emergency_only'];

/** Checks of the end by name: each gives a boolean. */
const checks = {
  assert_airplane_mode_status: method<PhoneState>('expected_status', ({ db }, expected) => {
    return isEqual(db.device.airplane_mode, expected!);
  }),
  assert_service_status: method<PhoneState>('expected_status', ({ db }, expected) => {
    if (typeof expected !== 'string' || !STATUSES.includes(expected)) {
      throw valueError(`${repr(expected!)} is not a valid NetworkStatus`);
    }
    return db.device.network_connection_status === expected;
  }),
  assert_mobile_data_status: method<PhoneState>('expected_status', ({ db }, expected) => {
    return isEqual(hasMobileData(db), expected!);
  }),
  assert_mobile_roaming_status: method<PhoneState>('expected_status', ({ db }, expected) => {
    return isEqual(db.device.roaming_enabled, expected!);
  }),
  assert_mobile_data_saver_mode_status: method<PhoneState>('expected_status', ({ db }, expected) => {
    return isEqual(db.device.data_saver_mode, expected!);
  }),
  assert_internet_speed: method<PhoneState>(
    'expected_speed expected_desc',
    ({ db }, expected, grade) => {
      const speed = measureSpeed(db);
      if (isLess(speed?.mbps ?? 0, expected!, '>=')) return false;
      return grade === null || lower(speed?.grade ?? 'No Connection') === lower(grade!);
    },
    { expected_desc: null },
  ),
  assert_internet_not_excellent: method<PhoneState>('', ({ db }) => measureSpeed(db)?.grade !== 'Excellent'),
  assert_can_send_mms: method<PhoneState>('expected_status', ({ db }, expected) => isEqual(canSendMms(db), expected!)),
  assert_mobile_data_usage_exceeded: method<PhoneState>('expected_status', ({ db }, expected) => {
    return isEqual(db.surroundings.mobile_data_usage_exceeded, expected!);
  }),
};

/** Initial actions and checks by name. */
export const methods = { ...setup, ...checks };

/** Toggles a switch, again where that gave the wrong state. */
function turn(name: string, isOn: boolean, toggle: () => boolean): PyValue {
  if (toggle() !== isOn) toggle();
  return `${name} is now ${onOff(isOn)}.`;
}
