/** Server-sent events as texts. */

/** Event that carries data alone, as in streams of chat completions. */
export function printData(data: unknown): string {
  const text = JSON.stringify(data);
  return `data: ${text}\n\n`;
}

/** Event that is named by the type of its data. */
export function printEvent<T extends { readonly type: string }>(data: T): string {
  return `event: ${data.type}\n${printData(data)}`;
}
