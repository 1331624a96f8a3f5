/** True for a number that can be a token's id: what a server calls one is fed to a model. */
export function isTokenId(value: unknown): value is number {
  return Number.isInteger(value) && (value as number) >= 0 && (value as number) < 2 ** 31;
}
