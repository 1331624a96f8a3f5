/** First line of a text, however its lines end: what is quoted in a message of one line. */
export function firstLineOf(text: string): string {
  return text.split(/[\n\r\u2028\u2029]/, 1)[0]!;
}
