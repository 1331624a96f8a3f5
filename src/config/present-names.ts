/** Names that earlier versions used in configurations, translated into the present ones. */

/** Values that have another name now. */
const RENAMED_VALUES = [{ section: 'policy', key: 'kind', old: 'small', now: 'local' }] as const;

/**
 * A configuration under its present names. Runs, traces and recorded orders keep the names they were written with.
 * @param raw a configuration before it is checked
 * @param onRenamed gets a line for each old name that was found
 * @returns `raw` itself where nothing is old, else a copy
 */
export function withPresentNames(raw: unknown, onRenamed: (line: string) => void): unknown {
  let present = raw;
  for (const { section, key, old, now } of RENAMED_VALUES) {
    if (!isRecord(present)) continue;
    const inner = present[section];
    if (!isRecord(inner) || inner[key] !== old) continue;
    onRenamed(`${section}.${key}: '${old}' is called '${now}' now`);
    present = { ...present, [section]: { ...inner, [key]: now } };
  }
  return present;
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
